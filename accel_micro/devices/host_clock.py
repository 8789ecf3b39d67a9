"""Accelerators that offer a synchronisation and nothing else that has been proven: throughput and latency only."""

from accel_micro.devices.base import Device


class HostClockAccelerator(Device):
    """`torch.xpu`, timed by the host clock between two synchronisations."""

    kind = "xpu"
    asynchronous = True
    minimum_warmup_seconds = 0.5

    def unavailable(self) -> str | None:
        import torch

        if not hasattr(torch, "xpu") or not torch.xpu.is_available():  # torch has it since 2.3
            return "this torch build or machine has no Intel GPU (xpu)"
        index = int(self.name.partition(":")[2] or 0)
        count = torch.xpu.device_count()
        return None if index < count else f"{self.name} does not exist: there are {count} Intel GPUs"

    def synchronize(self) -> None:
        import torch

        torch.xpu.synchronize(self.name)
