"""Apple's GPU. Calls only encode commands; the GPU begins in earnest when the host asks for the result.

So host and GPU work mostly one after the other, and there is no trustworthy clock of the GPU: `torch.mps.Event` is a
stamp that a callback on the host makes, can run backwards and can deadlock (pytorch issues 162872, 193578, 196395).
Throughput is the slope over n, 2n and 3n calls. Dispatch is the same loop, its clock stopped before the
synchronisation. The GPU's own time lies between their difference, if it did nothing meanwhile, and all of throughput,
if it worked throughout.

Written from torch's source and public reports, and tested against a simulation of them: no Mac has run this yet.
"""

import os
import platform
from typing import Any, Final

from accel_micro.devices.base import Call, Device, Queue, QueueTooShort
from accel_micro.devices.tensors import bytes_of_result
from accel_micro.host import apple

OLDEST_MACOS: Final = (12, 3)
FALLBACK: Final = "PYTORCH_ENABLE_MPS_FALLBACK"
_SHARE_OF_MEMORY: Final = 0.1
_ENCODE_SECONDS: Final = 5e-3
_MOST_ENCODED: Final = 500


class Mps(Device):
    """The GPU of a Mac with Apple silicon."""

    kind = "mps"
    clocks = ("throughput", "latency", "dispatch")
    asynchronous = True
    serial = True
    slope_points = (1, 2, 3)
    minimum_warmup_seconds = 1.0
    has_float64 = False

    def unavailable(self) -> str | None:
        if self.name not in ("mps", "mps:0"):
            return "there is one mps device; write mps without an index"
        if platform.system() != "Darwin":
            return "mps needs macOS on an Apple GPU"
        if platform.machine() != "arm64":
            if apple.is_translated():
                return "this Python is built for x86-64 and runs through Rosetta; mps needs an arm64 Python"
            return "mps is timed on Apple silicon with an arm64 Python, and this is an x86-64 one"
        version = platform.mac_ver()[0]
        if _numbers(version) < OLDEST_MACOS:
            return f"mps needs macOS 12.3 or newer, and this is {version or 'an unknown version'}"
        if os.environ.get(FALLBACK, "0") not in ("", "0"):
            return f"{FALLBACK} is set, so ops may run on the CPU unseen; unset it"
        import torch

        if not torch.backends.mps.is_built():
            return f"this torch build ({torch.__version__}) was made without mps"
        return None if torch.backends.mps.is_available() else "torch finds no GPU that Metal supports"

    def synchronize(self) -> None:
        import torch

        torch.mps.synchronize()

    def most_calls(self, result: Any) -> int | None:
        """Encoded commands hold the memory of their results: a tenth of what Metal recommends, at most."""
        size, total = bytes_of_result(result), self.total_memory_bytes()
        return None if not size or total is None else max(1, int(_SHARE_OF_MEMORY * total / size))

    def queue(self, call: Call, period: int = 1) -> Queue:
        return Encoding(self, call)

    def event_pair(self, call: Call) -> float:
        raise NotImplementedError("torch.mps.Event can run backwards and can deadlock")

    def free_memory_bytes(self) -> int | None:
        import torch

        total = self.total_memory_bytes()
        return None if total is None else max(0, total - int(torch.mps.driver_allocated_memory()))

    def total_memory_bytes(self) -> int | None:
        """What Metal recommends to use at most; the memory is the machine's."""
        import torch

        ask = getattr(torch.mps, "recommended_max_memory", None)  # since torch 2.5
        return int(ask()) if ask is not None else None

    def describe(self) -> dict[str, str | int | float]:
        facts: dict[str, str | int | float] = {
            "model": apple.chip() or "Apple GPU",
            "macos": platform.mac_ver()[0],
        }
        memory = self.total_memory_bytes()
        return facts if memory is None else {**facts, "memory_bytes": memory}

    def precision(self) -> dict[str, str | int | bool]:
        """Modes, and what slows a Mac: asked for anew each time, since it changes from minute to minute."""
        import torch

        state = {
            "power_source": apple.power_source(),
            "low_power_mode": apple.low_power_mode(),
            "thermal_pressure": apple.thermal_pressure(),
        }
        variables = ("PYTORCH_MPS_FAST_MATH", "PYTORCH_MPS_PREFER_METAL")
        return {
            "threads": torch.get_num_threads(),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            **{name: value for name, value in state.items() if value is not None},
            **{name: os.environ[name] for name in variables if name in os.environ},
        }


class Encoding:
    """MPS's dispatch: the loop of a block, its clock stopped before the synchronisation. See `base.Queue`."""

    device_flags: tuple[tuple[str, str], ...] = ()

    def __init__(self, device: Mps, call: Call) -> None:
        self._device = device
        self._call = call
        self._calls = 0

    def dispatch_calls(self) -> int:
        if not self._calls:
            seconds = min(self.dispatch(3) for _ in range(3))
            most = self._device.most_calls(self._call())
            self._device.synchronize()
            calls = min(_MOST_ENCODED, round(_ENCODE_SECONDS / max(seconds, 1e-9)))
            self._calls = max(1, calls if most is None else min(calls, most))
        return self._calls

    def dispatch(self, calls: int) -> float:
        device, call = self._device, self._call
        device.synchronize()
        start = device.now()
        for _ in range(calls):
            call()
        seconds = device.now() - start
        device.synchronize()
        return seconds / calls

    def device_at_most(self) -> float:
        raise QueueTooShort("torch.mps.Event stamps the host, so there is no clock of the device")

    def device_calls(self, block_seconds: float) -> int:
        raise QueueTooShort("torch.mps.Event stamps the host, so there is no clock of the device")

    def device(self, calls: int) -> float:
        raise QueueTooShort("torch.mps.Event stamps the host, so there is no clock of the device")

    def busy_share(self) -> float | None:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
