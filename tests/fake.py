"""A device and a clock that exist on paper: time passes only where a test says so."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from accel_micro.devices.base import Device

SPIN_SECONDS = 1e-3


@dataclass
class Clock:
    """Virtual time in seconds, and the speed of the host as a function of it."""

    seconds: float = 0.0
    speed: Callable[[float], float] = lambda seconds: 1.0
    log: list[str] = field(default_factory=list)

    def work(self, seconds: float) -> None:
        """Let the host work; at half speed it takes twice as long."""
        self.seconds += seconds / self.speed(self.seconds)


class OnPaper(Device):
    """Put before a real device's class: that device on virtual time, with nothing that disturbs it."""

    clock: Clock

    def now(self) -> float:
        self.clock.seconds += 20e-9
        return self.clock.seconds

    def waited_seconds(self) -> float:
        return 0.0

    def probe_host_speed(self) -> float:
        before = self.clock.seconds
        self.clock.work(SPIN_SECONDS)
        return SPIN_SECONDS / (self.clock.seconds - before) * 1e6


class FakeDevice(Device):
    """Enqueues work of `device_seconds`; the host needs `host_seconds` a call and `sync_seconds` a synchronisation.

    The first call after a probe needs `waking_seconds` more: a worker thread of torch's that slept meanwhile.
    """

    kind = "fake"

    def __init__(
        self,
        clock: Clock,
        *,
        host_seconds: float = 10e-6,
        device_seconds: float = 0.0,
        sync_seconds: float = 0.0,
        asynchronous: bool = False,
        forgets_to_wait: bool = False,
        waking_seconds: float = 0.0,
    ) -> None:
        super().__init__("fake")
        self.clock = clock
        self.host_seconds = host_seconds
        self.device_seconds = device_seconds
        self.sync_seconds = sync_seconds
        self.asynchronous = asynchronous
        self.forgets_to_wait = forgets_to_wait
        self.waking_seconds = waking_seconds
        self.asleep = False
        self.busy_until = 0.0
        self.calls = 0

    def unavailable(self) -> str | None:
        return None

    def now(self) -> float:
        self.clock.seconds += 20e-9  # reading a clock takes time too, else loops on it would never end
        return self.clock.seconds

    def synchronize(self) -> None:
        self.clock.log.append("synchronise")
        if not self.forgets_to_wait:
            self.clock.seconds = max(self.clock.seconds, self.busy_until)
        self.clock.work(self.sync_seconds)

    def waited_seconds(self) -> float:
        return 0.0

    def probe_host_speed(self) -> float:
        self.clock.log.append("probe")
        before = self.clock.seconds
        self.clock.work(SPIN_SECONDS)
        self.asleep = True
        return SPIN_SECONDS / (self.clock.seconds - before) * 1e6

    def call(self) -> Any:
        """The op under test."""
        self.clock.log.append("call")
        self.calls += 1
        self.clock.work(self.host_seconds + (self.waking_seconds if self.asleep else 0.0))
        self.asleep = False
        start = max(self.clock.seconds, self.busy_until)
        self.busy_until = start + self.device_seconds
        if not self.asynchronous:
            self.clock.seconds = self.busy_until
