"""Which operators of ATen a call of an op runs: found by running it, not by reading its name."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from accel_micro.definition import Op


def operators(op: Op) -> tuple[str, ...]:
    """Names such as `aten.addmm`, in the order of their first call, of a forward and of its backward.

    The smallest shape is run once on the CPU, in float32 or the first dtype that the op has. An op that does not exist
    there has none.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    from accel_micro.measure.inputs import Inputs, Timed

    found: dict[str, None] = {}

    class Noting(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(
            self,
            func: Any,
            types: Sequence[Any],
            args: Sequence[Any] = (),
            kwargs: Mapping[str, Any] | None = None,
        ) -> Any:
            found[str(func).rpartition(".")[0]] = None  # aten.addmm.default
            return func(*args, **(kwargs or {}))

    dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
    inputs = Inputs(torch.device("cpu"), getattr(torch, dtype), differentiate=op.backward)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            built = op.build(inputs, op.arguments(op.smallest_shape))
            call: Callable[[], Any] = built.call if isinstance(built, Timed) else built
            with torch.set_grad_enabled(op.backward), Noting():  # type: ignore[no-untyped-call]
                result = call()
            if op.backward:
                seed = torch.ones_like(result)
                with Noting():  # type: ignore[no-untyped-call]
                    torch.autograd.grad(result, inputs.leaves, seed, allow_unused=True)
        except (NotImplementedError, RuntimeError):
            return tuple(found)
    return tuple(found)
