"""Which operators run while a call does. Imports torch."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_NO_WORK: Final = ("profiler",)
"""Namespaces of operators that only mark a place, such as the start of an optimizer's step."""


class Noting(TorchDispatchMode):
    """Runs every operator as it is, and keeps the names of those that run kernels.

    In inference mode operators such as `aten.linear`, which autograd takes apart, arrive whole: they are taken apart
    here, so that the same layer shows the same operators in training and in inference.

    Attributes:
        found: names such as `aten.addmm`, in the order of their first call.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: dict[str, None] = {}

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if _only_made_of_others(func.name()):
            with self:
                return func.decompose(*args, **(kwargs or {}))
        name = str(func).rpartition(".")[0]  # aten.addmm.default
        if not name.startswith(_NO_WORK):
            self.found[name] = None
        return func(*args, **(kwargs or {}))


def _only_made_of_others(name: str) -> bool:
    """Whether an operator such as `aten::linear` has no kernel of its own on a CPU."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return has_kernel(name, "CompositeImplicitAutograd") and not has_kernel(name, "CPU")
