"""Several GPUs on paper in place of `torch.cuda`: a virtual clock, a queue each, events, graphs, memory, and NVML.

A kernel goes to the card that is current when it is launched, takes as long as that card's clock lets it, and is waited
for by whoever synchronises that very card. What is done on which card is in `log`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from accel_micro.devices import cuda_profiler, cuda_queue
from accel_micro.devices.cuda import Cuda
from tests.fake import Clock, OnPaper

HERTZ = 2e9
LAUNCH_SECONDS = 2e-6
UUIDS = ("5f3a2b1c-0000-4000-8000-000000000001", "9e8d7c6b-0000-4000-8000-000000000002")


class Gpus:
    """The state of all cards.

    Attributes:
        hertz: clock of a card's cores at a time.
        ticks: how many ticks a spin of so many cycles counts; others than all of them are a spin that does not spin.
    """

    def __init__(self, clock: Clock, count: int = 2) -> None:
        self.clock = clock
        self.count = count
        self.free_at = [0.0] * count
        self.current = 0
        self.log: list[tuple[str, int]] = []
        self.hertz: Callable[[int, float], float] = lambda card, seconds: HERTZ
        self.ticks: Callable[[float], float] = lambda cycles: cycles
        self.spin_hertz: float | None = None
        self.captured: list[float] | None = None
        self.graph_repeats: Callable[[int], int] = lambda count: count
        self.allocated = [100 * (card + 1) for card in range(count)]

    def launch(self, what: str, cycles: float, hertz: float | None = None) -> None:
        """Enqueue work of that many cycles on the current card."""
        self.clock.work(LAUNCH_SECONDS)
        self.log.append((what, self.current))
        if self.captured is not None:
            self.captured.append(cycles)
            return
        start = max(self.free_at[self.current], self.clock.seconds)
        self.free_at[self.current] = start + cycles / (hertz or self.hertz(self.current, start))

    def call(self, host_seconds: float, device_seconds: float) -> Callable[[], None]:
        """An op that keeps the host and a card at its full clock busy for that long."""

        def run() -> None:
            self.clock.work(host_seconds - LAUNCH_SECONDS)
            self.launch("call", device_seconds * HERTZ)

        return run

    def synchronize(self, card: int | None = None) -> None:
        which = self.current if card is None else card
        self.log.append(("synchronise", which))
        self.clock.seconds = max(self.clock.seconds, self.free_at[which])

    @contextmanager
    def device(self, card: int) -> Iterator[None]:
        before, self.current = self.current, card
        try:
            yield
        finally:
            self.current = before

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        assert stream.card == self.current, "a stream belongs to a card"
        yield

    @contextmanager
    def graph(self, graph: "Graph", stream: Any) -> Iterator[None]:
        assert stream.card == self.current
        self.captured = graph.cycles
        try:
            yield
        finally:
            self.captured = None

    def sleep(self, cycles: int) -> None:
        self.launch("spin", self.ticks(cycles), self.spin_hertz)

    def properties(self, card: int) -> Any:
        return SimpleNamespace(
            name="Paper H100", uuid=UUIDS[card], total_memory=1000, multi_processor_count=1, major=9, minor=0,
            gcnArchName="gfx942:sramecc+",
        )  # fmt: skip

    def install(self, monkeypatch: pytest.MonkeyPatch, hip: str | None = None) -> None:
        """Let torch.cuda be these, as a ROCm build where `hip` is given."""
        fake = SimpleNamespace(
            is_available=lambda: True,
            device_count=lambda: self.count,
            synchronize=self.synchronize,
            device=self.device,
            Stream=lambda: SimpleNamespace(card=self.current),
            current_stream=lambda: SimpleNamespace(card=self.current),
            stream=self.stream,
            Event=lambda enable_timing: Event(self),
            CUDAGraph=lambda: Graph(self),
            graph=self.graph,
            _sleep=self.sleep,
            get_device_properties=self.properties,
            mem_get_info=lambda card: (self.allocated[card], 1000),
            memory_allocated=lambda: self.allocated[self.current],
            reset_peak_memory_stats=lambda: None,
            max_memory_allocated=lambda: 2 * self.allocated[self.current],
        )
        monkeypatch.setattr(torch, "cuda", fake)
        monkeypatch.setattr(torch.version, "hip", hip)
        monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
        monkeypatch.setattr(cuda_queue, "perf_counter", lambda: self.clock.seconds)
        # The profiler is no part of the paper; without it the device clock says that gaps are counted.
        monkeypatch.setattr(cuda_profiler, "device_events", _no_profiler)


def _no_profiler(*arguments: Any) -> list[Any]:
    raise RuntimeError("another profiler holds CUPTI")


class Event:
    """Stamped on the card that is current when it is recorded, when the work before it is done."""

    def __init__(self, gpus: Gpus) -> None:
        self._gpus = gpus
        self._at = 0.0

    def record(self) -> None:
        self._gpus.clock.work(LAUNCH_SECONDS)
        self._at = max(self._gpus.free_at[self._gpus.current], self._gpus.clock.seconds)

    def query(self) -> bool:
        return self._at <= self._gpus.clock.seconds

    def synchronize(self) -> None:
        self._gpus.clock.seconds = max(self._gpus.clock.seconds, self._at)

    def elapsed_time(self, other: "Event") -> float:
        """Milliseconds."""
        return 1e3 * (other._at - self._at)


class Graph:
    """What was captured, run again by one launch."""

    def __init__(self, gpus: Gpus) -> None:
        self._gpus = gpus
        self.cycles: list[float] = []

    def replay(self) -> None:
        count = self._gpus.graph_repeats(len(self.cycles))
        self._gpus.launch("replay", sum(self.cycles[:count]), self._gpus.spin_hertz)


class CudaOnPaper(OnPaper, Cuda):
    """The real device, on the clock of the cards."""

    def __init__(self, name: str, clock: Clock) -> None:
        super().__init__(name)
        self.clock = clock


class PaperNvml(SimpleNamespace):
    """As much of pynvml as a watch asks of these cards. Each question costs the host `cost` seconds.

    Attributes:
        held: reasons, as bits, for which a card's clock is held down at a time. asked: names of questions.
        counts: the driver counts for how long its limit on power held the clock down, from `counted`, nanoseconds.
    """

    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, gpus: Gpus, cost: float = 10e-6) -> None:
        self.gpus, self.cost = gpus, cost
        self.held: Callable[[int, float], int] = lambda card, seconds: 0
        self.counted: Callable[[float], int] | None = None
        self.asked: list[str] = []
        self.open = 0

    def _answer(self, name: str, value: Any) -> Any:
        self.asked.append(name)
        self.gpus.clock.seconds += self.cost
        return value

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's names
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:  # noqa: N802
        return UUIDS.index(uuid.removeprefix("GPU-"))

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, card: int) -> int:  # noqa: N802
        return int(self._answer("reasons", self.held(card, self.gpus.clock.seconds)))

    def nvmlDeviceGetViolationStatus(self, card: int, policy: int) -> Any:  # noqa: N802
        if self.counted is None or policy != 0:
            raise RuntimeError("Not Supported")
        nanoseconds = self.counted(self.gpus.clock.seconds)
        return self._answer("counter", SimpleNamespace(referenceTime=0, violationTime=nanoseconds))

    def nvmlDeviceGetClockInfo(self, card: int, kind: int) -> int:  # noqa: N802
        return int(self._answer("clock", round(self.gpus.hertz(card, self.gpus.clock.seconds) / 1e6)))

    def nvmlDeviceGetTemperature(self, card: int, kind: int) -> int:  # noqa: N802
        return int(self._answer("temperature", 60 + card))

    def nvmlDeviceGetEnforcedPowerLimit(self, card: int) -> int:  # noqa: N802
        return 500_000

    def nvmlDeviceGetPowerManagementDefaultLimit(self, card: int) -> int:  # noqa: N802
        return 700_000
