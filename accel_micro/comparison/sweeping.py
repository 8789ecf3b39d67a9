"""Measuring two sides over sizes until it is known where one overtakes the other: what is next, and when to stop.

Pure: it is handed what measures and a clock. A few sizes from end to end come first, smallest first; then those
between which the faster side changes, halved again and again (`stats.crossover.refine`). The order of each size's
processes is ABBA (baseline, contender | contender, baseline | …), and sizes take turns, so that the processes of one
are spread over time. No two processes of one case share a fork server: `renew` is called where they would.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Literal, TypeVar

from accel_micro.measure.records import Record
from accel_micro.stats.crossover import (
    ALPHA,
    CLEAR_PROCESSES,
    LOOKS,
    MOST_SIZES,
    Call,
    Crossing,
    call,
    crossings,
    refine,
)
from accel_micro.sweep import Sweep

CLOCK: Final = "throughput"
"""By which sides are compared: what users wait for. Others that a process reads tell what bounds it."""

FACTOR: Final = 1.2
"""An interval is narrow enough when its ends are no farther apart."""

AT_ONCE: Final = 8
"""Sizes that take turns, those of other ops among them."""

LINES_AT_ONCE: Final = 2
"""Lines that are brought to their first look together, so that a budget too short for all answers the first of them."""

SLOW_SECONDS: Final = 20.0
"""A size is left out where a process is expected to take longer."""

_CALLS: Final = 50
"""Of a slow op a process makes about so many: some before, twenty to warm up, twenty samples, some after."""

_DISTURBED: Final = ("waited for a core", "noisy")
"""Flags of processes of which a few decide nothing."""

_WORTH: Final = 1.3
"""A last size in place of one that is too slow must be that many times the size before it."""

_LARGER_TOO: Final = ("timed out", "out of memory")
"""Failures that larger sizes would have too; those that do not exist would not exist either."""

_REFINES: Final = 2
"""Rank of sizes that are not among the first, and of further looks."""

Which = Literal["baseline", "contender"]
Stopped = Literal["done", "budget", "interrupted"]
T = TypeVar("T")
Samples = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Line(Generic[T]):
    """What is swept: a subject, as `measure` takes it, and its sizes."""

    subject: T
    sweep: Sweep


@dataclass(frozen=True)
class Turn(Generic[T]):
    """A process is about to start. `number` counts all of them from 1; seconds_left: of the budget."""

    subject: T
    which: Which
    size: int
    number: int
    seconds_left: float


@dataclass(frozen=True)
class Size:
    """A measured size.

    Attributes:
        call: which side is faster there; None when a side has no time.
        records: of each side, one a process; only complete turns of both.
        failure: why there is no time, a sentence, else empty.
        looks: that were taken.
    """

    size: int
    call: Call | None
    baseline: tuple[Record, ...]
    contender: tuple[Record, ...]
    failure: str = ""
    looks: int = 0

    def seconds(self, which: Which) -> float | None:
        """Geometric mean of the medians of a side's processes, seconds per call."""
        return middle(self.baseline if which == "baseline" else self.contender, CLOCK)


@dataclass(frozen=True)
class Swept(Generic[T]):
    """What became of a line.

    Attributes:
        sizes: in order. crossings: in order.
        stopped: why no more was measured. left_out: why larger sizes were not, a sentence, else empty.
        seconds_a_process: mean; 0 before the first.
    """

    line: Line[T]
    sizes: tuple[Size, ...]
    crossings: tuple[Crossing, ...]
    stopped: Stopped
    left_out: str = ""
    seconds_a_process: float = 0.0

    @property
    def calls(self) -> dict[int, Call]:
        """By size, of those that have one."""
        return {size.size: size.call for size in self.sizes if size.call is not None}

    @property
    def open(self) -> tuple[int, ...]:
        """Sizes outside of crossings that are not decided."""
        inside = {size for one in self.crossings for size in one.open}
        return tuple(
            size for size, each in self.calls.items() if each.faster == "open" and size not in inside
        )


def middle(records: Sequence[Record], clock: str) -> float | None:
    """Geometric mean of the medians of processes by one clock, seconds per call; None when none read it."""
    medians = [record.clocks[clock].median_seconds for record in records if clock in record.clocks]
    return statistics.geometric_mean(medians) if medians else None


def sweep(
    lines: Sequence[Line[T]],
    measure: Callable[[T, Which, int], Record],
    *,
    budget_seconds: float,
    alpha: float = ALPHA,
    tolerance: float = 0.02,
    factor: float = FACTOR,
    now: Callable[[], float] = time.monotonic,
    tell: Callable[[Turn[T]], None] | None = None,
    renew: Callable[[], None] | None = None,
) -> list[Swept[T]]:
    """Measure until every crossing is known to within the factor, or is as narrow as it gets, or the budget ends.

    For each line, the probability that any of its sizes is called for the wrong side is at most `alpha`.

    Args:
        measure: one process of one side of a line at a size. KeyboardInterrupt ends all of it; what was measured is
            kept.
        budget_seconds: no process is started later than that after the beginning.
        tell: is told of each process. renew: is called before a process would come from a server that its case had.

    Returns:
        One for each line, in order.
    """
    return _Sweeping(lines, measure, budget_seconds, alpha, tolerance, factor, now, tell, renew).run()


class _OutOfBudget(Exception):
    pass


@dataclass
class _Size:
    """A size under measurement. `target`: processes a side at its next look; server: of its last process."""

    size: int
    first: bool
    records: dict[Which, list[Record]] = field(default_factory=lambda: {"baseline": [], "contender": []})
    call: Call | None = None
    failure: str = ""
    looks: int = 0
    looked_at: int = 0
    target: int = LOOKS.processes[0]
    server: int = -1

    @property
    def processes(self) -> int:
        return len(self.records["contender"])

    @property
    def decided(self) -> bool:
        return self.call is not None and self.call.faster != "open"

    @property
    def under_way(self) -> bool:
        return not self.failure and not self.decided and self.processes < self.target

    @property
    def rank(self) -> int:
        """What is measured earlier has the lower: sizes from end to end, then what refines them."""
        return _REFINES if not self.first or self.looks else 0 if self.processes < CLEAR_PROCESSES else 1

    def samples(self, which: Which) -> Samples:
        return tuple(tuple(record.clocks[CLOCK].samples) for record in self.records[which])

    def fastest_seconds(self) -> float:
        """Of the slower side: something else that runs meanwhile makes samples slower, never faster."""
        return max(
            min(sample for record in records for sample in record.clocks[CLOCK].samples)
            for records in self.records.values()
        )

    @property
    def undisturbed(self) -> bool:
        return not any(
            flag.name in _DISTURBED
            for records in self.records.values()
            for record in records
            for flag in record.clocks[CLOCK].flags
        )

    @property
    def work(self) -> tuple[float, float]:
        """FLOPs and bytes of a call."""
        known = self.records["contender"][0].work
        return (known.flops, known.bytes) if known is not None else (0.0, 0.0)


@dataclass
class _Line(Generic[T]):
    line: Line[T]
    factor: float
    waiting: list[int]
    sizes: dict[int, _Size] = field(default_factory=dict)
    left_out: str = ""
    seconds: list[float] = field(default_factory=list)

    @property
    def calls(self) -> dict[int, Call]:
        return {size: each.call for size, each in sorted(self.sizes.items()) if each.call is not None}

    def wanted(self) -> list[_Size]:
        """Sizes that need a process; new ones among them are added."""
        largest = self.sizes[max(self.sizes)] if self.sizes else None
        if self.waiting and (largest is None or largest.processes or largest.failure):
            self._add(self.waiting.pop(0), first=True)
        if not self.under_way():
            for size in self.refinements():
                each = self._add(size)
                each.target = next(count for count in LOOKS.processes if count > each.processes)
        return self.under_way()

    def under_way(self) -> list[_Size]:
        return [each for each in self.sizes.values() if each.under_way]

    def refinements(self) -> list[int]:
        return refine(self.calls, self.factor, self._between)

    def _add(self, size: int, first: bool = False) -> _Size:
        return self.sizes.setdefault(size, _Size(size, first))

    def _between(self, low: int, high: int) -> int | None:
        size = self.line.sweep.between(low, high) if len(self.sizes) < MOST_SIZES else None
        return None if size in self.sizes else size

    def cut(self, reason: str) -> None:
        """Leave larger sizes out."""
        if self.waiting:
            self.waiting.clear()
            self.left_out = reason

    def shorten(self) -> None:
        """Leave out sizes that would take too long, by how the work grew from the size before the last to the last."""
        timed = [each for _, each in sorted(self.sizes.items()) if each.processes]
        if not self.waiting or len(timed) < 2:
            return
        size, ratio = timed[-1].size, timed[-1].size / timed[-2].size
        grew = [new / old for new, old in zip(timed[-1].work, timed[-2].work, strict=True) if old > 0]
        growth = max(1.0, math.log(max([ratio, *grew])) / math.log(ratio))
        room = (SLOW_SECONDS / (_CALLS * timed[-1].fastest_seconds())) ** (1 / growth)
        following = self.waiting[0]
        if following <= size * room:
            return
        last = self.line.sweep.at_most(max(size * room, size))
        replacing = _WORTH * size <= last < following
        largest = last if replacing else size
        self.cut(f"above {largest} a process would take more than {SLOW_SECONDS:.0f} s")
        if replacing:
            self.waiting.append(last)


class _Sweeping(Generic[T]):
    def __init__(
        self,
        lines: Sequence[Line[T]],
        measure: Callable[[T, Which, int], Record],
        budget_seconds: float,
        alpha: float,
        tolerance: float,
        factor: float,
        now: Callable[[], float],
        tell: Callable[[Turn[T]], None] | None,
        renew: Callable[[], None] | None,
    ) -> None:
        self.lines = [_Line(line, factor, list(line.sweep.grid())) for line in lines]
        self.measure, self.alpha, self.tolerance = measure, alpha, tolerance
        self.now, self.tell, self.renew = now, tell or (lambda turn: None), renew or (lambda: None)
        self.end = now() + budget_seconds
        self.number = 0
        self.server = 0

    def run(self) -> list[Swept[T]]:
        stopped: Stopped = "done"
        try:
            while turn := self._turn():
                for line, each in turn:
                    self._measure_both(line, each)
        except _OutOfBudget:
            stopped = "budget"
        except KeyboardInterrupt:
            stopped = "interrupted"
        return [self._swept(line, stopped) for line in self.lines]

    def _turn(self) -> list[tuple[_Line[T], _Size]]:
        """The sizes of the next turn, and of each line one before a second of any.

        Lines are brought to their first look one pair after the other, and are then refined all together. Fresh
        servers are started when every size that is due had a process of the present ones.
        """
        ranked = []
        for number, line in enumerate(self.lines):
            for place, each in enumerate(sorted(line.wanted(), key=lambda one: one.rank)):
                refines = each.rank == _REFINES
                due = (refines, 0 if refines else number // LINES_AT_ONCE, each.rank)
                ranked.append((due, place, number, each))
        ranked.sort(key=lambda one: one[:3])
        if not ranked:
            return []
        ranked = [one for one in ranked if one[0][:2] == ranked[0][0][:2]]
        fresh = [one for one in ranked if one[3].server != self.server]
        if not fresh or fresh[0][0] > ranked[0][0]:
            if self.now() >= self.end:
                raise _OutOfBudget
            self.renew()
            self.server += 1
            fresh = ranked
        return [(self.lines[number], each) for _, _, number, each in fresh[:AT_ONCE]]

    def _measure_both(self, line: _Line[T], each: _Size) -> None:
        order: tuple[Which, Which] = (
            ("baseline", "contender") if each.processes % 2 == 0 else ("contender", "baseline")
        )
        read: dict[Which, Record] = {}
        each.server = self.server
        for which in order:
            began = self.now()
            if began >= self.end:
                raise _OutOfBudget
            self.number += 1
            self.tell(Turn(line.line.subject, which, each.size, self.number, self.end - began))
            record = self.measure(line.line.subject, which, each.size)
            line.seconds.append(self.now() - began)
            if CLOCK not in record.clocks or not record.clocks[CLOCK].samples:
                self._fail(line, each, which, record)
                return
            read[which] = record
        for which, record in read.items():
            each.records[which].append(record)
        if each.processes == 1:
            line.shorten()
        self._look(each)

    def _fail(self, line: _Line[T], each: _Size, which: Which, record: Record) -> None:
        each.failure = f"{which}: {_why(record)}"
        each.call = None
        skipped = record.failure is None
        if skipped or (record.failure and record.failure.kind in _LARGER_TOO):
            line.cut(f"from {each.size} on, {each.failure}")

    def _look(self, each: _Size) -> None:
        """Decide a size where a look is due, and before the first where it is clear already."""
        due = each.processes == each.target
        if not due and not (each.looks == 0 and each.processes >= CLEAR_PROCESSES):
            return
        found = self._called(each, LOOKS.shares[each.looks])
        if due or found.clear:
            each.looks += due
            each.call, each.looked_at = found, each.processes

    def _look_last(self, each: _Size) -> None:
        """Decide what is open with all that is left of its level: nothing more will be measured."""
        share = LOOKS.last_share(each.looks, same_data=each.processes == each.looked_at)
        if each.processes and not each.failure and not each.decided and share:
            each.call = self._called(each, share)

    def _called(self, each: _Size, share: float) -> Call:
        return call(
            each.samples("baseline"),
            each.samples("contender"),
            share=share,
            alpha=self.alpha,
            tolerance=self.tolerance,
            undisturbed=each.undisturbed,
        )

    def _swept(self, line: _Line[T], stopped: Stopped) -> Swept[T]:
        unfinished = bool(line.waiting or line.under_way() or line.refinements())
        for each in line.sizes.values():
            self._look_last(each)
        calls = line.calls
        return Swept(
            line=line.line,
            sizes=tuple(
                Size(
                    each.size,
                    each.call,
                    tuple(each.records["baseline"]),
                    tuple(each.records["contender"]),
                    each.failure,
                    each.looks,
                )
                for _, each in sorted(line.sizes.items())
                if each.call is not None or each.failure
            ),
            crossings=tuple(crossings(calls)),
            stopped=stopped if unfinished else "done",
            left_out=line.left_out,
            seconds_a_process=statistics.fmean(line.seconds) if line.seconds else 0.0,
        )


def _why(record: Record) -> str:
    if record.failure is not None:
        return f"{record.failure.kind}: {record.failure.detail}".removesuffix(": ")
    return record.skipped or f"no time by the {CLOCK} clock"
