"""Accelerators that offer a synchronisation and nothing else that has been proven: throughput and latency only.

Apple's MPS and Intel's XPU. Their events are not used: those of MPS are stamps of a host callback, not of the device.
"""

import os
import platform

from accel_micro.devices.base import Device


class HostClockAccelerator(Device):
    """`torch.mps` or `torch.xpu`, timed by the host clock between two synchronisations."""

    asynchronous = True
    minimum_warmup_seconds = 0.5

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.kind = name.partition(":")[0]
        self.has_float64 = self.kind != "mps"

    def unavailable(self) -> str | None:
        if self.kind == "mps":
            return self._mps_unavailable()
        import torch

        if not hasattr(torch, "xpu") or not torch.xpu.is_available():  # torch has it since 2.3
            return "this torch build or machine has no Intel GPU (xpu)"
        index = int(self.name.partition(":")[2] or 0)
        count = torch.xpu.device_count()
        return None if index < count else f"{self.name} does not exist: there are {count} Intel GPUs"

    def _mps_unavailable(self) -> str | None:
        if platform.system() != "Darwin":
            return "mps needs macOS on an Apple GPU"
        if platform.machine() != "arm64":
            return "this Python is built for x86-64; mps needs an arm64 Python (Rosetta emulates the other)"
        version = tuple(int(part) for part in (platform.mac_ver()[0] or "0.0").split(".")[:2])
        if version < (12, 3):
            return "mps needs macOS 12.3 or newer"
        if os.environ.get("PYTORCH_ENABLE_MPS_FALLBACK", "0") != "0":
            return "PYTORCH_ENABLE_MPS_FALLBACK is set, so ops may run on the CPU unseen; unset it"
        import torch

        return None if torch.backends.mps.is_available() else "this torch build has no mps backend"

    def synchronize(self) -> None:
        import torch

        if self.kind == "mps":
            torch.mps.synchronize()
        else:
            torch.xpu.synchronize(self.name)
