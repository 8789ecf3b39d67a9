"""The model that is captured, made ready under a setting."""

import importlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from accel_micro.models import NAMES, build
from accel_micro.models.model import Batch, Model

_RESTORED_SHARE: Final = 0.2
"""Of the free memory, that a copy of weights and state may take."""


class WrongModel(ValueError):
    """The name leads to no model; the message says why."""


def load(name: str, device: str, dtype: str) -> Model:
    """A reference network, or what `package.module:function` returns when it is called with the device's name.

    Raises:
        WrongModel: neither.
    """
    if ":" not in name:
        if name not in NAMES:
            raise WrongModel(
                f"unknown model {name!r}; known: {', '.join(NAMES)}. Your own is named package.module:function."
            )
        return build(name, device, dtype)
    function = imported(name)
    made = function(device)
    if not isinstance(made, Model):
        raise WrongModel(f"{name} returned a {type(made).__name__}, not an accel_micro.models.model.Model")
    return made


def imported(name: str) -> Any:
    """What `package.module:function` names. Raises WrongModel."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise WrongModel(f"{name} cannot be imported: {error}") from None


def prepare(switches: Mapping[str, str]) -> None:
    """Set what of torch is set for the whole process, before any thread is started."""
    import torch

    def on(name: str) -> bool | None:
        return {"on": True, "off": False}.get(switches.get(name, ""))

    if (value := on("flush_denormal")) is not None:
        # Threads inherit the mode from the one that starts them, so it is set before there are any.
        torch.set_flush_denormal(value)
    if "threads" in switches:
        torch.set_num_threads(int(switches["threads"]))
    if (value := on("onednn")) is not None:
        torch.backends.mkldnn.enabled = value  # type: ignore[assignment]
    if (value := on("nnpack")) is not None:
        torch.backends.nnpack.set_flags(value)  # type: ignore[no-untyped-call]
    if (value := on("tf32")) is not None:
        torch.backends.cuda.matmul.allow_tf32 = value
        torch.backends.cudnn.allow_tf32 = value
    if (value := on("cudnn_benchmark")) is not None:
        torch.backends.cudnn.benchmark = value


def change(model: Model, switches: Mapping[str, str]) -> None:
    """Set what of the model and its optimizer is asked for.

    Raises:
        WrongModel: its optimizer has no such switch.
    """
    import torch

    if switches.get("channels_last") == "on":
        model.module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    for name in ("foreach", "fused"):
        if name not in switches:
            continue
        for group in model.optimizer.param_groups:
            if name not in group:
                raise WrongModel(f"{type(model.optimizer).__name__} has no switch {name}")
            group[name] = switches[name] == "on"


def changed(batch: Batch, switches: Mapping[str, str]) -> Batch:
    """The batch in the layout that is asked for."""
    import torch

    if switches.get("channels_last") == "on" and batch.inputs.dim() == 4:
        return Batch(batch.inputs.contiguous(memory_format=torch.channels_last), batch.target)
    return batch


class Snapshot:
    """Weights and state of the optimizer as they are now, to be put back before each block.

    Else one trains the same batch for hundreds of steps, until gradients are too small for the format, and slow.

    Args:
        lazy: keep them on the CPU: torch_xla makes a clone another name of the same memory, which the next step takes
            for its results ("buffer is deleted", 2.9).
    """

    def __init__(self, model: Model, free_bytes: int | None, lazy: bool = False) -> None:
        tensors = list(_state(model))
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        fits = free_bytes is None or size < _RESTORED_SHARE * free_bytes
        self._kept = [
            (tensor, tensor.detach().cpu() if lazy else tensor.detach().clone())
            for tensor in (tensors if fits else ())
        ]

    def restore(self) -> None:
        """Put them back."""
        import torch

        with torch.no_grad():
            for tensor, kept in self._kept:
                tensor.copy_(kept)


def _state(model: Model) -> Iterator[Any]:
    import torch

    yield from model.module.parameters()
    yield from model.module.buffers()
    for state in model.optimizer.state.values():
        yield from (value for value in state.values() if isinstance(value, torch.Tensor))
