"""The protocol every backend implements. Nothing outside `devices/` asks what kind of device it has in hand."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import Any

Call = Callable[[], Any]


class UnknownDevice(ValueError):
    """The name is no device that accel_micro times; the message lists those it does."""


class DeviceUnavailable(RuntimeError):
    """The device is known and this machine does not have it; the message says why."""


@dataclass(frozen=True)
class QueueReading:
    """What one block read behind a queue that was busy while it was being filled.

    Attributes:
        dispatch_seconds: host seconds to enqueue one call.
        device_seconds: device-busy seconds per call, None when it was not read.
        valid: the queue was still busy when enqueueing ended, so neither number waited for the other.
    """

    dispatch_seconds: float
    device_seconds: float | None
    valid: bool


class Device:
    """A backend. The base class is a synchronous device with a host clock; backends override what differs.

    Attributes:
        name: as the user wrote it, with an index if there was one: `"cuda:1"`.
        kind: the name without index.
        clocks: the clocks it offers, a subset of `measure.CLOCKS`.
        asynchronous: calls return before their work is done.
        minimum_warmup_seconds: the least warm-up (clock ramp, autotuning).
    """

    kind: str = ""
    clocks: tuple[str, ...] = ("throughput", "latency")
    asynchronous: bool = False
    minimum_warmup_seconds: float = 0.1

    def __init__(self, name: str) -> None:
        self.name = name

    def unavailable(self) -> str | None:
        """None when this machine has the device, else a sentence that says why not."""
        raise NotImplementedError

    def now(self) -> float:
        """The host clock, seconds."""
        return perf_counter()

    def synchronize(self) -> None:
        """Wait until all queued work is done."""

    def mark_step(self, result: Any) -> None:
        """Called after each call of a block with its result; lazy devices cut their graph here."""

    def session(self) -> AbstractContextManager[None]:
        """Entered before the inputs are made and left after the last block: stream, thread count, modes."""
        return nullcontext()

    def probe_host_speed(self) -> float:
        """Run a fixed piece of host work and return its rate (spins per second)."""
        from accel_micro.devices.spin import spin_rate

        return spin_rate(self.now)

    def probe_device_speed(self) -> float | None:
        """Clock of the device's cores in hertz from a fixed piece of device work; None where there is no such probe."""
        return None

    def read_queue(self, call: Call, calls: int) -> QueueReading:
        """Enqueue `calls` calls behind a busy queue and read the dispatch and device clocks.

        Raises:
            NotImplementedError: the backend has neither clock.
        """
        raise NotImplementedError(f"{self.name} has no dispatch or device clock")

    def peak_memory_bytes(self, call: Call) -> int | None:
        """Most memory that one call holds at once beyond what was held before it; None when it cannot be known."""
        return None

    def free_memory_bytes(self) -> int | None:
        """Memory that could be allocated now."""
        return None

    def total_memory_bytes(self) -> int | None:
        """Size of the device's memory."""
        return None

    def describe(self) -> dict[str, str | int | float]:
        """Facts about the device that do not change from minute to minute: model, driver, memory, limits."""
        return {}

    def precision(self) -> dict[str, str | int | bool]:
        """Modes that change what is computed or how fast: TF32, cudnn.benchmark, threads."""
        return {}
