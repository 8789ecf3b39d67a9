"""Names to devices."""

from collections.abc import Sequence
from typing import Any, Final

from accel_micro.device_names import kind_of
from accel_micro.devices.base import Device, UnknownDevice

DEVICE_KINDS: Final[tuple[str, ...]] = ("cpu", "cuda", "mps", "xla", "xpu")
"""Kinds of device that accel_micro times. ROCm builds of torch call their device `cuda` too."""

NOT_TIMED: Final[dict[str, str]] = {
    "meta": "meta tensors have no data, so nothing runs that could be timed",
    "hpu": "Gaudi needs a vendor's bridge whose synchronisation accel_micro has not proven",
    "ipu": "the IPU backend was removed from PyTorch",
    "vulkan": "Vulkan serves inference of exported mobile models and has no eager ops to compare",
    "mkldnn": "it is a tensor layout of the CPU; time device cpu",
    "hip": "ROCm builds of torch call their device cuda; time device cuda",
    "mtia": "MTIA is not sold, and its synchronisation could not be proven",
    "maia": "Maia is not sold, and its synchronisation could not be proven",
    "opengl": "torch names this type and has no backend for it",
    "opencl": "torch names this type and has no backend for it",
    "ideep": "torch names this type and has no backend for it",
    "fpga": "torch names this type and has no backend for it",
    "ort": "it was renamed to maia",
    "ve": "torch names this type and has no backend for it",
    "lazy": "lazy tensors are a mechanism, not a device; time device xla",
    "privateuseone": "it is the slot of a backend outside torch; name the device as that backend does",
}
"""Torch's other device types, each with the reason why it is not timed."""


def wrong_name(name: str, kinds: Sequence[str] = DEVICE_KINDS) -> str | None:
    """None where the name is a kind, with or without an index; else what is wrong with it, without a full stop."""
    _, colon, index = name.partition(":")
    if kind_of(name) in kinds and (not colon or index.isdecimal()):
        return None
    return f"unknown device {name!r}; known: {', '.join(kinds)} (cuda:1 is the second GPU)"


def get(name: str) -> Device:
    """The device of that name, such as `"cpu"` or `"cuda:1"`, whether or not this machine has it.

    The device of a backend outside torch is known by the name it gave itself, once it is imported.

    Raises:
        UnknownDevice: no such device; the message lists those known, or says why torch's own type is not timed.
    """
    kind = kind_of(name)
    if kind in NOT_TIMED:
        raise UnknownDevice(f"device {kind!r} is not timed: {NOT_TIMED[kind]}.")
    kinds = DEVICE_KINDS
    if kind not in kinds and kind.isidentifier() and _is_named_backend(kind):
        kinds = (*kinds, kind)
    if sentence := wrong_name(name, kinds):
        raise UnknownDevice(f"{sentence}.")
    if kind == "cpu":
        from accel_micro.devices.cpu import Cpu

        return Cpu(name)
    if kind == "cuda":
        from accel_micro.devices.cuda import Cuda

        return Cuda(name)
    if kind == "xla":
        from accel_micro.devices.xla import Xla

        return Xla(name)
    if kind == "mps":
        from accel_micro.devices.mps import Mps

        return Mps(name)
    from accel_micro.devices.accelerator import Accelerator

    return Accelerator(name)


def _is_named_backend(kind: str) -> bool:
    """Whether a backend outside torch is loaded in this process and gave its device this name."""
    from accel_micro.devices.accelerator import named_backend

    return kind == named_backend()


def available() -> dict[str, dict[str, Any]]:
    """For each kind of device its `clocks` and `unavailable`: None, or why this machine does not have it.

    Of several of a kind it is the one that this process is told to use, see `chosen`. `lacks` says of clocks that are
    not offered why that is so here, where more can be said than that the kind has none.
    """
    from accel_micro.devices.chosen import name_of

    found: dict[str, dict[str, Any]] = {}
    for kind in DEVICE_KINDS:
        device = get(name_of(kind))
        found[kind] = {"unavailable": device.unavailable(), "clocks": list(device.clocks)}
        if device.lacks:
            found[kind]["lacks"] = dict(device.lacks)
    return found
