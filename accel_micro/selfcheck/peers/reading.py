"""Stopwatches held against a witness, one after the other, with the witness before and after each."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import fmean, median
from time import perf_counter
from typing import Any, Final

from accel_micro.selfcheck.peers import stopwatches
from accel_micro.selfcheck.peers.stopwatches import Stopwatch
from accel_micro.selfcheck.peers.witnesses import KnownSpin
from accel_micro.selfcheck.truth import MOVED, Reading, Timed

OURS: Final = "ours"
_OURS_BUDGET_SECONDS: Final = 0.75
_OURS_BLOCKS: Final = 10


def read_case(
    row: Timed,
    watches: Sequence[Stopwatch],
    call: Callable[[], Any],
    truth: Callable[[], float],
    regimes: Mapping[str, Callable[[], float]],
    together: int = 1,
) -> None:
    """Each harness once, the witness before and after it. What a harness raises is its own failure.

    Where the witness does not agree with itself, since the work itself became faster or slower meanwhile, those
    harnesses read once more.

    Args:
        regimes: the witness in other states, by their name. Each is read now, which the facts keep, and again right
            behind every harness that calls so: work that the cache half holds may take longer before than after.
        together: harnesses between two readings of the witness.
    """
    states = _States(regimes)
    row.facts |= states.last
    before = truth()
    for first in range(0, len(watches), together):
        among = watches[first : first + together]
        read, after = _read_some(row, among, call, states), truth()
        if abs(_moved(before, after)) > MOVED:
            before = after
            read, after = _read_some(row, among, call, states), truth()
        for name, one in read.items():
            moved = _moved(before, after)
            row.readings[name] = replace(one, truth=(before + after) / 2, moved=moved)
        before = after


def _moved(before: float, after: float) -> float:
    """Relative change; 0 of what takes no time, such as a call that launches no kernel."""
    return after / before - 1 if before > 0 else 0.0


class _States:
    """The witness in other states of the device. `last`: what it read there last, where it could."""

    def __init__(self, reads: Mapping[str, Callable[[], float]]) -> None:
        self._reads = reads
        self.last: dict[str, float] = {}
        for name in reads:
            self._read(name)

    def again(self, name: str) -> tuple[float, float]:
        """What it read last, and what it reads now."""
        before = self.last[name]
        self._read(name)
        return before, self.last[name]

    def _read(self, name: str) -> None:
        with suppress(RuntimeError, ValueError):  # no memory to flush with, or the profiler saw nothing
            self.last[name] = self._reads[name]()


def _read_some(
    row: Timed, watches: Sequence[Stopwatch], call: Callable[[], Any], states: _States
) -> dict[str, Reading]:
    """What each that could read the call read, still without the plain witness."""
    read: dict[str, Reading] = {}
    for watch in watches:
        try:
            read[watch.name] = _read_one(watch, call, states)
        except Exception as error:  # one harness must not end the case
            row.refused[watch.name] = f"{type(error).__name__}: {first_line(error)}"
            continue
        row.refused.pop(watch.name, None)
    return read


def _read_one(watch: Stopwatch, call: Callable[[], Any], states: _States) -> Reading:
    """A reading; again where the witness in the harness's own state read something else behind it than last."""
    for _ in range(2):
        start = perf_counter()
        seconds = watch.read(call)
        spent = perf_counter() - start
        if watch.regime not in states.last:
            return Reading(seconds, 0.0, spent=spent)
        before, after = states.again(watch.regime)
        if abs(_moved(before, after)) <= MOVED:
            break
    return Reading(seconds, 0.0, (before + after) / 2, spent)


def first_line(error: BaseException) -> str:
    """The first line of its message, cut."""
    lines = str(error).strip().splitlines()
    return lines[0][:140] if lines else ""


@dataclass(frozen=True)
class Known:
    """A harness's reading of a spin that notes how long each of its calls was.

    Attributes:
        reported: seconds per call that it reports.
        blocks: for each block that it timed by its clock, seconds per call, and what the calls of that block noted.
        spent: seconds that the reading took. counted: of these, spent in calls whose times count.
    """

    reported: float
    blocks: tuple[tuple[float, float], ...]
    spent: float
    counted: float

    @property
    def errors(self) -> list[float]:
        """Relative, of each block."""
        return [read / known - 1 for read, known in self.blocks]


def known_readings(device: Any, spin: KnownSpin) -> dict[str, Callable[[], Known]]:
    """Who reads a spin, ours first. Inside the session of the CPU."""
    return {
        OURS: lambda: _ours(device, spin),
        stopwatches.TIMER: lambda: _by_timer(spin),
        stopwatches.TIMEIT: lambda: _by_timeit(spin),
        stopwatches.ASV: lambda: _by_asv(spin),
    }


def _blocks(spin: KnownSpin, read: Sequence[float], calls: int) -> tuple[tuple[float, float], ...]:
    """The blocks were the last that the spin was called for, one after the other."""
    lengths = spin.lengths[-calls * len(read) :]
    return tuple(
        (seconds, fmean(lengths[number * calls : (number + 1) * calls]))
        for number, seconds in enumerate(read)
    )


def _ours(device: Any, spin: KnownSpin) -> Known:
    from accel_micro.measure.sampling import Sampler

    spin.lengths.clear()
    start = perf_counter()
    sampler = Sampler(device, spin, _OURS_BUDGET_SECONDS)
    process = sampler.read("throughput")
    spent = perf_counter() - start
    counted = process.blocks_taken * process.calls_per_block * process.raw_median_seconds
    _, block, _ = sampler.block_of("throughput")
    blocks = []
    for _ in range(_OURS_BLOCKS):
        spin.lengths.clear()
        seconds = block()
        blocks.append((seconds, fmean(spin.lengths)))
    return Known(process.median_seconds, tuple(blocks), spent, min(counted, spent))


def _by_timer(spin: KnownSpin) -> Known:
    from torch.utils.benchmark import Timer

    start = perf_counter()
    found = Timer("call()", globals={"call": spin}).blocked_autorange()
    spent = perf_counter() - start
    calls = found.number_per_run
    read = [seconds / calls for seconds in found.raw_times]
    return Known(float(found.median), _blocks(spin, read, calls), spent, sum(found.raw_times))


def _by_timeit(spin: KnownSpin) -> Known:
    import timeit

    start = perf_counter()
    calls, seconds = timeit.Timer(spin).autorange()
    spent = perf_counter() - start
    return Known(seconds / calls, _blocks(spin, [seconds / calls], calls), spent, seconds)


def _by_asv(spin: KnownSpin) -> Known:
    start = perf_counter()
    samples, calls = stopwatches.asv_process(spin)
    spent = perf_counter() - start
    return Known(median(samples), _blocks(spin, samples, calls), spent, calls * sum(samples))
