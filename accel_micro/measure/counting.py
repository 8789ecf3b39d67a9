"""The work of a call: its FLOPs by torch's counter, and the bytes that it reads and writes."""

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accel_micro.devices.base import Call
from accel_micro.devices.tensors import address, size_bytes, storage_address
from accel_micro.measure import flops
from accel_micro.measure.inputs import Inputs
from accel_micro.measure.prepared import Prepared


def count(
    prepared: Prepared, stated: Mapping[str, float], inputs: Inputs, outputs: Sequence[Any]
) -> tuple[float, float, bool]:
    """FLOPs by torch's counter and bytes read and written, each once, unless stated; whether it is cuDNN's."""
    counted, convolves = _counted_flops(prepared.call)
    moved = stated.get("bytes")
    if moved is None:
        read, written = moved_by_backward(prepared, outputs) if prepared.forward else (inputs.made, outputs)
        moved = bytes_of([*read, *written])
    return stated.get("flops", counted), moved, convolves


def bytes_of(tensors: Sequence[Any]) -> float:
    """Of tensors together, those at one address once."""
    unique = {address(tensor): tensor for tensor in tensors}
    return float(sum(size_bytes(tensor) for tensor in unique.values()))


def moved_by_backward(prepared: Prepared, gradients: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Tensors that a backward reads, what forward saved and the gradients that come in; and the gradients it writes.

    A gradient that is handed on as it came (that of a sum's operand) is neither read nor written.
    """
    import torch

    saved: list[Any] = []

    def note(tensor: Any) -> Any:
        saved.append(tensor.detach())
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor)
    with contextlib.suppress(NotImplementedError), uncompiled(), hooks:
        assert prepared.forward is not None
        prepared.forward()
    handed_on = {storage_address(t) for t in gradients} & {storage_address(t) for t in prepared.upstream}
    given, made = (
        [t for t in tensors if storage_address(t) not in handed_on]
        for tensors in (prepared.upstream, gradients)
    )
    return [*saved, *given], made


@contextlib.contextmanager
def uncompiled() -> Iterator[None]:
    """Compiled functions run as they were written: one that once ran in a mode or a hook is not compiled after it.

    Raises:
        NotImplementedError: something was compiled, and this torch, older than 2.6, cannot be told not to use it.
    """
    import torch

    if "torch._dynamo" not in sys.modules:
        yield
    elif hasattr(torch.compiler, "set_stance"):
        with torch.compiler.set_stance("force_eager"):
            yield
    else:
        raise NotImplementedError("compiled code cannot be run uncompiled")


def _counted_flops(call: Call) -> tuple[float, bool]:
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import FlopCounterMode

    names: list[str] = []

    class Seen(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    try:
        counter = FlopCounterMode(display=False, custom_mapping=flops.formulas())
        with uncompiled(), counter, Seen():  # type: ignore[no-untyped-call]
            call()
        return float(counter.get_total_flops()), any("conv" in name or "_rnn" in name for name in names)
    except Exception:  # a counter that fails on some op must not cost its timing
        return 0.0, False
