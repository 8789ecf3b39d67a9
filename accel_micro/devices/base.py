"""The protocol every backend implements. Nothing outside `devices/` asks what kind of device it has in hand."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from time import perf_counter
from types import MappingProxyType
from typing import Any, Protocol

from accel_micro.host.caches import Cache

Call = Callable[[], Any]


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """Silence what native code prints meanwhile: torch's profiler announces every start and stop."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a descriptor is what is needed
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


@dataclass
class Counted:
    """What a backend counted during a block. The default is that of a backend which counts nothing.

    Attributes:
        executions: how often the device was told to compute; None: not counted.
        finished: executions that had ended when the block ended; None: not counted.
        compilations: programs compiled meanwhile, which took `compile_seconds`.
        on_host: ops that ran on the CPU, since the backend has no kernel for them.
    """

    executions: int | None = None
    finished: int | None = None
    compilations: int = 0
    compile_seconds: float | None = None
    on_host: tuple[str, ...] = ()


@dataclass(frozen=True)
class WatchState:
    """What a device's driver says at a moment.

    Attributes:
        reasons: why it holds the clock down.
        held_seconds: for how long it has done so until now, by reason, where it counts that.
        hertz, celsius: clock of the cores and temperature.
    """

    reasons: tuple[str, ...] = ()
    held_seconds: Mapping[str, float] = field(default_factory=dict)
    hertz: float | None = None
    celsius: float | None = None


class Watch(Protocol):
    """Asks the driver between blocks; each question takes some ten microseconds and waits for no work."""

    def read(self) -> WatchState:
        """The state now."""
        ...

    def facts(self) -> Mapping[str, float]:
        """What does not change, and what a reading costs."""
        ...


class Unwatched(RuntimeError):
    """The driver cannot be asked about this device; the message is one sentence."""


class UnknownDevice(ValueError):
    """The name is no device that accel_micro times; the message lists those it does."""


class DeviceUnavailable(RuntimeError):
    """The device is known and this machine does not have it; the message says why."""


class QueueTooShort(RuntimeError):
    """The device's launch queue cannot hold even one call while it is kept busy, so the clock cannot be read."""


class Queue(Protocol):
    """Reads the dispatch and device clocks of one call, behind a device that is kept busy meanwhile.

    Attributes:
        device_flags: names and details of flags that the way of reading the device clock deserves.
    """

    device_flags: tuple[tuple[str, str], ...]

    def dispatch_calls(self) -> int:
        """Calls a dispatch block may have. Raises QueueTooShort."""
        ...

    def dispatch(self, calls: int) -> float:
        """Host seconds to enqueue one call, over `calls` calls. Raises QueueTooShort."""
        ...

    def device_at_most(self) -> float:
        """Seconds per call that the device needs, the gaps between kernels counted. Raises QueueTooShort.

        Cheaper than the device clock, and leaves nothing behind: neither a graph nor a profiler that was used.
        """
        ...

    def device_calls(self, block_seconds: float) -> int:
        """Calls of a device block of about that length. Raises QueueTooShort."""
        ...

    def device(self, calls: int) -> float:
        """Seconds per call from the device's first work to its last, over `calls` calls."""
        ...

    def busy_share(self) -> float | None:
        """Share of that time in which the device was busy; the rest it needs from kernel to kernel. None: unknown.

        More than 1 where `device` times a faster way of doing the same than the call's own.
        """
        ...


class Device:
    """A backend. The base class is a synchronous device with a host clock; backends override what differs.

    Attributes:
        name: as the user wrote it, with an index if there was one: `"cuda:1"`.
        kind: the name without index.
        clocks: the clocks it offers, a subset of `measure.CLOCKS`.
        asynchronous: calls return before their work is done.
        minimum_warmup_seconds: the least warm-up (clock ramp, autotuning).
        lazy: a call only describes its work; what is dropped or overwritten before the step is marked never runs.
        serial: the device hardly works while calls are enqueued, so throughput is dispatch and device time in a row.
        slope_points: multiples of n calls whose times give the slope that throughput is.
        on_cpu: its work runs on the cores of the host, and slows as the host does.
        lacks: why a clock is not offered here, by its name, where it depends on the machine.
        watch: asks the driver, inside a session and where that is possible; unwatched: else why not, a sentence.
        has_float64: it can compute the float64 reference of a case that is too large for the CPU.
    """

    kind: str = ""
    clocks: tuple[str, ...] = ("throughput", "latency")
    asynchronous: bool = False
    lazy: bool = False
    serial: bool = False
    slope_points: tuple[int, ...] = (1, 3)
    on_cpu: bool = False
    minimum_warmup_seconds: float = 0.1
    has_float64: bool = True
    watch: Watch | None = None
    unwatched: str | None = None
    lacks: Mapping[str, str] = MappingProxyType({})

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

    def block(self) -> AbstractContextManager[Counted]:
        """Entered around a block, its synchronisations included; what it yields is filled in when it is left."""
        return nullcontext(Counted())

    def most_calls(self, result: Any) -> int | None:
        """Most calls of a block, given the result of one: queued calls may each hold memory. None: no limit."""
        return None

    def session(self) -> AbstractContextManager[None]:
        """Entered before the inputs are made and left after the last block: stream, thread count, modes."""
        return nullcontext()

    def probe_host_speed(self) -> float:
        """Run a fixed piece of host work and return its rate (spins per second)."""
        from accel_micro.devices.spin import spin_rate

        return spin_rate(self.now)

    def waited_seconds(self) -> float:
        """Seconds that threads of this process waited for a core so far, summed over them; see `waiting`."""
        from accel_micro.devices.waiting import waited_seconds

        return waited_seconds()

    def own_waited_seconds(self) -> float:
        """Of these, seconds that the thread that asks waited; 0 where that is not known."""
        return 0.0

    def probe_device_speed(self) -> float | None:
        """Clock of the device's cores in hertz from a fixed piece of device work; None where there is no such probe."""
        return None

    def queue(self, call: Call, period: int = 1) -> Queue:
        """The reader of this call's dispatch and device clocks.

        Args:
            period: calls after which the same inputs come again; what is replayed must hold whole periods.

        Raises:
            NotImplementedError: the backend has neither clock.
        """
        raise NotImplementedError(f"{self.name} has no dispatch or device clock")

    def event_pair(self, call: Call) -> float:
        """Seconds between two events around one call on an idle device, as others time. Never a clock of ours.

        Raises:
            NotImplementedError: the backend has no such events; the message is the reason.
        """
        raise NotImplementedError(f"{self.name} has no events")

    def spin(self) -> tuple[Call, Callable[[], float]] | None:
        """A call of fixed length, and what reads that length by the device's own clock, seconds; None: it has none."""
        return None

    def peak_memory_bytes(self, call: Call) -> int | None:
        """Most memory that one call holds at once beyond what was held before it; None when it cannot be known."""
        return None

    def free_memory_bytes(self) -> int | None:
        """Memory that could be allocated now."""
        return None

    def total_memory_bytes(self) -> int | None:
        """Size of the device's memory."""
        return None

    def last_level_cache(self) -> Cache | None:
        """The largest caches between this device's cores and its memory; None where nothing is known of them."""
        return None

    def card(self) -> str:
        """What tells this device from others of its model in the same host; empty where there is but one."""
        return ""

    def describe(self) -> dict[str, str | int | float]:
        """Facts about the device that do not change from minute to minute: model, driver, memory, limits."""
        return {}

    def precision(self) -> dict[str, str | int | bool]:
        """Modes that change what is computed or how fast: TF32, cudnn.benchmark, threads."""
        return {}


def repeat(device: Device, call: Call, calls: int) -> None:
    """Call that often, each a step of its own where the device marks steps."""
    if type(device).mark_step is Device.mark_step:  # a loop without it costs a fast call nothing
        for _ in range(calls):
            call()
    else:
        for _ in range(calls):
            device.mark_step(call())
