"""Stopwatches of other harnesses, each with its defaults: seconds per call of a call.

Their own code reads the clock; nothing is imitated. What is not installed says so in one sentence. `brief` gives each
a quarter of its default time or less, for tables of hundreds of cases.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Final, Literal

from accel_micro.devices.base import Call, QueueTooShort

Regime = Literal["", "queued", "cold"]


class Absent(RuntimeError):
    """The harness is not installed, or not for this device; the message says so in one sentence."""


@dataclass(frozen=True)
class Stopwatch:
    """A harness that reads a call.

    Attributes:
        name: of the harness, and of which of its ways. done: what it does, in words.
        regime: the state in which it calls: the cache flushed, calls queued behind each other, or neither.
        read: seconds per call. Raises Absent, and whatever the call or the harness raises.
    """

    name: str
    done: str
    read: Callable[[Call], float]
    regime: Regime = ""


TIMER: Final = "torch.utils.benchmark"
TIMEIT: Final = "timeit"
ASV: Final = "asv time_"
DO_BENCH: Final = "triton do_bench"
DO_BENCH_GRAPH: Final = "triton do_bench_cudagraph"

_BRIEF_TIMER_SECONDS: Final = 0.05
_BRIEF_DO_BENCH: Final = (6, 25)
_BRIEF_GRAPH: Final = 5
_BRIEF_SAMPLES: Final = 5


def stopwatches(kind: str, *, brief: bool = False) -> list[Stopwatch]:
    """Those that time a call of this kind of device inside a process; the brief ones are those that wait for it."""
    timer = partial(by_timer, seconds=_BRIEF_TIMER_SECONDS) if brief else by_timer
    common = [Stopwatch(TIMER, "Timer.blocked_autorange(), median", timer)]
    if not brief:
        common += [
            Stopwatch(TIMEIT, "Timer.autorange(); nothing is waited for", by_timeit),
            Stopwatch(
                ASV, "TimeBenchmark of asv_runner with a setup, median; nothing is waited for", as_asv_does
            ),
        ]
    if kind != "cuda":
        return common
    return [
        Stopwatch(
            DO_BENCH,
            "do_bench: the cache is flushed before each call, events around it; mean",
            partial(by_do_bench, milliseconds=_BRIEF_DO_BENCH) if brief else by_do_bench,
            "cold",
        ),
        Stopwatch(
            DO_BENCH_GRAPH,
            "do_bench_cudagraph: a graph of calls between events; mean",
            partial(by_do_bench_graph, milliseconds=_BRIEF_GRAPH) if brief else by_do_bench_graph,
            "queued",
        ),
        *common,
    ]


def by_timer(call: Call, seconds: float = 0.2) -> float:
    """`torch.utils.benchmark`, which synchronises around each block."""
    try:
        from torch.utils.benchmark import Timer
    except ImportError as error:  # it wants setuptools, for code that is written in C++
        raise Absent(f"torch.utils.benchmark cannot be imported: {error}") from None
    timer = Timer("call()", globals={"call": call})
    return float(timer.blocked_autorange(min_run_time=seconds).median)


def by_timeit(call: Call) -> float:
    """The standard library's: as many calls as take 0.2 seconds."""
    import timeit

    calls, seconds = timeit.Timer(call).autorange()
    return seconds / calls


def asv_process(call: Call) -> tuple[list[float], int]:
    """Samples of asv's own benchmark type for a method with a setup, as a process of `asv run` takes them.

    And the calls of a sample.
    """
    from asv_runner.benchmarks.time import TimeBenchmark

    class Source:
        timeout = 60.0

        def setup(self) -> None:
            """asv calls it before each sample; what matters is that there is one."""

        def time_call(self) -> None:
            call()

    source = Source()
    benchmark: Any = TimeBenchmark("time_call", source.time_call, [source])
    benchmark.do_setup()
    read = benchmark.run()
    return [float(sample) for sample in read["samples"]], int(read["number"])


def as_asv_does(call: Call) -> float:
    """The median of a process."""
    return median(asv_process(call)[0])


def _triton(name: str) -> Callable[..., Any]:
    try:
        from triton import testing
    except ImportError as error:
        raise Absent(f"triton is not installed: {error}") from None
    function: Callable[..., Any] = getattr(testing, name)
    return function


def by_do_bench(call: Call, milliseconds: tuple[int, int] = (25, 100)) -> float:
    """Milliseconds of `triton.testing.do_bench`, in seconds; given are those of its warm-up and its reading."""
    warmup, rep = milliseconds
    return 1e-3 * float(_triton("do_bench")(call, warmup=warmup, rep=rep))


def by_do_bench_graph(call: Call, milliseconds: int = 20) -> float:
    """Milliseconds of `triton.testing.do_bench_cudagraph`, in seconds; given are those of a graph, run ten times."""
    return 1e-3 * float(_triton("do_bench_cudagraph")(call, rep=milliseconds))


def named(kind: str) -> dict[str, Stopwatch]:
    """The stopwatches by name."""
    return {one.name: one for one in stopwatches(kind)}


class Ours:
    """Our clocks of a device that is inside its session, read in turns after one warm-up, as a case of the suite is.

    The first that is asked reads all, and what the others then say costs no time; asked again, each is read anew.

    Attributes:
        facts: of the last reading: seconds of dispatch, and throughput over the larger of dispatch and device, where
            these were read.
    """

    def __init__(self, device: Any, budget_seconds: float = 0.75, *, brief: bool = False) -> None:
        self._device = device
        self._budget_seconds = budget_seconds
        self._samples = _BRIEF_SAMPLES if brief else None
        self._clocks = [clock for clock in ("dispatch", "device", "throughput") if clock in device.clocks]
        self._call: Call | None = None
        self._read: dict[str, float] = {}
        self._unreadable: dict[str, str] = {}
        self.facts: dict[str, float] = {}

    @property
    def stopwatches(self) -> list[Stopwatch]:
        """Those that a witness can be held against: the device clock and throughput, as far as there are such."""
        done = {
            "device": "a graph of calls behind a busy queue, between events",
            "throughput": "calls back to back; the slope over n and 3n where they are queued",
        }
        return [
            Stopwatch(
                f"ours, {clock}",
                done[clock],
                partial(self.read, clock),
                "queued" if clock == "device" else "",
            )
            for clock in done
            if clock in self._clocks
        ]

    def read(self, clock: str, call: Call) -> float:
        """Median seconds per call. Raises QueueTooShort, and what the call raises."""
        if call is not self._call or clock not in {*self._read, *self._unreadable}:
            self._read_all(call)
        if clock in self._unreadable:
            raise QueueTooShort(self._unreadable.pop(clock))
        return self._read.pop(clock)

    def _read_all(self, call: Call) -> None:
        from accel_micro.measure.process import SAMPLES
        from accel_micro.measure.sampling import Sampler

        self._call = call
        sampler = Sampler(self._device, call, self._budget_seconds)
        processes, self._unreadable = sampler.read_together(self._clocks, self._samples or SAMPLES)
        self._read = {clock: process.median_seconds for clock, process in processes.items()}
        found = {"dispatch": self._read.get("dispatch"), "over_larger": sampler.throughput_over_larger}
        self.facts = {name: value for name, value in found.items() if value is not None}
