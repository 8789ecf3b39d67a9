"""The facts of a machine as far as they are about one device."""

from collections.abc import Mapping
from typing import Any

from accel_micro.device_names import index_of, kind_of
from accel_micro.devices import DeviceUnavailable, UnknownDevice, wrong_name
from accel_micro.host import cards

_MAKERS = {"cuda": ("NVIDIA", "AMD"), "xpu": ("Intel",), "mps": ("Apple",)}


def only(facts: Mapping[str, Any], device: str) -> dict[str, Any]:
    """The facts without the GPUs that a run on this device does not use.

    Raises:
        UnknownDevice: there is no such device.
        DeviceUnavailable: this machine shows none of that index, or which one it is cannot be told.
    """
    kind = kind_of(device)
    if sentence := wrong_name(device):
        raise UnknownDevice(sentence)
    gpu = dict(facts.get("gpu", {}))
    devices = [each for each in gpu.get("devices", []) if each.get("vendor") in _MAKERS.get(kind, ())]
    if kind == "cuda" or (kind in cards.WITH_CARDS and devices):  # no tool lists the others
        try:
            card = cards.find(kind, index_of(device))
        except cards.UnknownOrder as reason:
            raise DeviceUnavailable(str(reason)) from None
        devices = [each for each in devices if card is not None and each.get("index") == card.number]
        if not devices:
            raise DeviceUnavailable(f"this machine shows no {device}")
    on_bus = [each for each in gpu.get("pci", []) if each.get("vendor") in _MAKERS.get(kind, ())]
    return {**facts, "gpu": {**gpu, "devices": devices, "pci": on_bus}}
