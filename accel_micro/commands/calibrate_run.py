"""The processes of a calibration: which case is next, and until when."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from accel_micro.measure.records import Case, Record

CLOCK: Final = "throughput"
"""By which a calibration reads: the one that every device has, and that stands for a case in tables."""

_AT_ONCE: Final = 2

Measure = Callable[[Case, int], Record]
"""One process of a case, in a lane: see `asv_plugin.interleaving.Measure`."""

Stopped = Literal["time", "processes", "interrupted", "nothing left"]


@dataclass
class Measured:
    """One case of a calibration, and what its processes left."""

    case: Case
    records: list[Record] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Turn:
    """A process is about to start: the `number`-th of about `total`."""

    case: Case
    number: int
    total: int


@dataclass(frozen=True)
class Run:
    """What was measured on a device.

    Attributes:
        cases: those that have a time, in the order in which they took turns.
        failed: one record of each case that has none, or that broke off.
        stopped: why no more was measured. seconds: how long it took.
    """

    cases: tuple[Measured, ...]
    failed: tuple[Record, ...]
    stopped: Stopped
    seconds: float


def run(
    candidates: Sequence[Case],
    measure: Measure,
    *,
    cases: int,
    seconds: float | None,
    processes: int | None = None,
    most_seconds: float | None = None,
    comparisons: int = 0,
    tell: Callable[[Turn], None] | None = None,
    ended: Callable[[Record], None] | None = None,
    renew: Callable[[Sequence[int]], None] | None = None,
    now: Callable[[], float] = time.monotonic,
) -> Run:
    """Measure cases in turns, two processes of each at a time, as a comparison does: A B, and next time B A.

    No two processes of a case share a server: both of a turn are in lanes of their own, and these are renewed
    before each turn, as those of a comparison are.

    Args:
        candidates: the first `cases` of them are measured; one that has no time is replaced by the next.
        measure: one process in lane 0 or 1. KeyboardInterrupt ends the run; what was measured is kept.
        seconds: no process is started later than that. processes: of a case at most. One of both must be given.
        most_seconds: as long as there are fewer than so many `comparisons` of a case with itself, processes are
            started until then.
        renew: is called before each turn with the lanes that processes will be in.

    Raises:
        ValueError: neither `seconds` nor `processes` is given.
    """
    if seconds is None and processes is None:
        raise ValueError("seconds or processes must be given")
    loop = _Loop(candidates, measure, cases, seconds, processes, tell, ended, now)
    loop.most_seconds, loop.comparisons = most_seconds, comparisons
    loop.renew = renew or loop.renew
    return loop.run()


class _Loop:
    def __init__(
        self,
        candidates: Sequence[Case],
        measure: Measure,
        cases: int,
        seconds: float | None,
        processes: int | None,
        tell: Callable[[Turn], None] | None,
        ended: Callable[[Record], None] | None,
        now: Callable[[], float],
    ) -> None:
        self.waiting: Iterator[Case] = iter(candidates)
        self.measure, self.now = measure, now
        self.seconds, self.processes = seconds, processes
        self.tell, self.ended = tell or (lambda turn: None), ended or (lambda record: None)
        self.renew: Callable[[Sequence[int]], None] = lambda lanes: None
        self.most_seconds: float | None = None
        self.comparisons = 0
        self.begin = now()
        self.number = 0
        self.cases: list[Measured] = []
        self.failed: list[Record] = []
        for _ in range(cases):
            self._take_next()

    def run(self) -> Run:
        stopped = self._measure_all()
        measured = tuple(case for case in self.cases if case.records)
        return Run(measured, tuple(self.failed), stopped, self.now() - self.begin)

    def _measure_all(self) -> Stopped:
        try:
            while self.cases:
                if self.processes is not None and all(
                    len(each.records) >= self.processes for each in self.cases
                ):
                    return "processes"
                if self.seconds is None or self.now() - self.begin < self._end(self.seconds):
                    self.renew(range(_AT_ONCE))
                for measured in list(self.cases):
                    for lane in range(_AT_ONCE):
                        if self.seconds is not None and self.now() - self.begin >= self._end(self.seconds):
                            return "time"
                        if self.processes is not None and len(measured.records) >= self.processes:
                            break
                        if not self._measure(measured, lane):
                            break
        except KeyboardInterrupt:
            return "interrupted"
        return "nothing left"

    def _end(self, seconds: float) -> float:
        """Seconds from the beginning after which no process is started, as things stand."""
        from accel_micro.stats.false_alarms import FEWEST_GROUPS, GROUP

        size = FEWEST_GROUPS * len(GROUP)
        if self.most_seconds is None:
            return seconds
        enough = sum(len(each.records) // size for each in self.cases) >= self.comparisons
        return seconds if enough else max(seconds, self.most_seconds)

    def _measure(self, measured: Measured, lane: int) -> bool:
        self.number += 1
        self.tell(Turn(measured.case, self.number, self._total()))
        began = self.now()
        record = self.measure(measured.case, lane)
        self.ended(record)
        if not (CLOCK in record.clocks and record.clocks[CLOCK].samples):
            self.failed.append(record)
            self.cases.remove(measured)
            self._take_next()
            return False
        measured.records.append(record)
        measured.times.append(began)
        measured.seconds.append(self.now() - began)
        return True

    def _take_next(self) -> None:
        case = next(self.waiting, None)
        if case is not None:
            self.cases.append(Measured(case))

    def _total(self) -> int:
        """About how many processes there will be, for a bar."""
        total = self.number
        if self.processes is not None:
            missing = (self.processes - len(each.records) for each in self.cases)
            total = self.number - 1 + sum(each for each in missing if each > 0)
        if self.seconds is not None and self.number > 1:
            spent = self.now() - self.begin
            by_time = self.number + int(
                (max(self.seconds, spent) - spent) * (self.number - 1) / max(spent, 1e-9)
            )
            total = by_time if self.processes is None else min(total, by_time)
        return max(total, self.number)
