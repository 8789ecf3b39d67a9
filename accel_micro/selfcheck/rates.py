"""False alarms, misses and cost of ways to compare, from processes that were measured in rounds. Pure.

A round has one process of each level by each method: twice the same work, and the same with 2, 5 and 10 % more. A
method judges as many rounds as it needs, from a beginning; comparisons that begin at different rounds overlap.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, stdev
from typing import Final, NamedTuple

from accel_micro.stats import student

BASELINE: Final = "A"
LEVELS: Final[Mapping[str, int]] = {"A": 0, "A again": 0, "+2 %": 2, "+5 %": 5, "+10 %": 10}
"""What was planted: calls of the op more in a hundred."""

PRECISION: Final = 0.01
_MOST_PROCESSES: Final = 100_000


@dataclass(frozen=True)
class Process:
    """One process: its samples, seconds per call, and the seconds it took."""

    samples: tuple[float, ...]
    seconds: float


@dataclass
class Rounds:
    """Processes by op, method and level, in the order of rounds; None where there is no time."""

    processes: dict[tuple[str, str, str], list[Process | None]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, op: str, method: str, level: str, process: Process | None) -> None:
        """Append a process of the next round."""
        self.processes.setdefault((op, method, level), []).append(process)

    def ops(self, method: str) -> list[str]:
        """Ops that the method has read."""
        return list(dict.fromkeys(op for op, of, _ in self.processes if of == method))

    def pairs(self, op: str, method: str, level: str) -> list[tuple[Process, Process]]:
        """Processes of the baseline and of a level by rounds, without those in which one failed."""
        first = self.processes.get((op, method, BASELINE), [])
        second = self.processes.get((op, method, level), [])
        return [(a, b) for a, b in zip(first, second, strict=False) if a is not None and b is not None]


class Judged(NamedTuple):
    """What a comparison said, and the rounds that it used. `open`: it said that it cannot tell."""

    called: str
    rounds: int
    open: bool = False


Judge = Callable[[Sequence[tuple[Process, Process]]], Judged]
"""Handed the rounds from a beginning to the end; takes as many as it needs."""


@dataclass(frozen=True)
class Method:
    """A way to compare: whose processes it takes, the fewest rounds it needs, and its rule."""

    name: str
    reads: str
    fewest: int
    judge: Judge
    step: int = 1


@dataclass(frozen=True)
class Rate:
    """A method at a level, over all ops.

    Attributes:
        comparisons: made. slower, faster, open: so many said so; the others said that nothing differs.
        seconds: that the processes of one comparison took, on average, both sides together.
    """

    method: str
    level: str
    comparisons: int
    slower: int
    faster: int
    open: int
    seconds: float

    @property
    def alarms(self) -> float:
        """Share that called a difference, in whatever direction."""
        return (self.slower + self.faster) / self.comparisons if self.comparisons else math.nan

    @property
    def found(self) -> float:
        """Share that called the contender slower."""
        return self.slower / self.comparisons if self.comparisons else math.nan


def rate(rounds: Rounds, method: Method, level: str) -> Rate:
    """All comparisons that the data give."""
    judged: list[Judged] = []
    seconds: list[float] = []
    for op in rounds.ops(method.reads):
        pairs = rounds.pairs(op, method.reads, level)
        for begin in range(0, len(pairs) - method.fewest + 1, method.step):
            one = method.judge(pairs[begin:])
            judged.append(one)
            used = pairs[begin : begin + one.rounds]
            seconds.append(sum(a.seconds + b.seconds for a, b in used))
    return Rate(
        method.name,
        level,
        len(judged),
        sum(one.called == "slower" for one in judged),
        sum(one.called == "faster" for one in judged),
        sum(one.open for one in judged),
        fmean(seconds) if seconds else math.nan,
    )


def rates(rounds: Rounds, methods: Iterable[Method], levels: Mapping[str, int] = LEVELS) -> Iterator[Rate]:
    """Each method at each level but the baseline itself."""
    for method in methods:
        for level in levels:
            if level != BASELINE:
                yield rate(rounds, method, level)


@dataclass(frozen=True)
class Precision:
    """What it takes a method to know a time within ±1 %.

    Attributes:
        spread: standard deviation of the logs of what processes report. processes: needed, None: more than are sane.
        seconds: of one process, and of as many as are needed.
    """

    method: str
    op: str
    spread: float
    processes: int | None
    process_seconds: float

    @property
    def seconds(self) -> float:
        """Seconds of as many processes as are needed; infinite where no number is enough."""
        return math.inf if self.processes is None else self.processes * self.process_seconds


def precision(rounds: Rounds, reads: str, op: str) -> Precision | None:
    """From the processes without planted work; None where there are fewer than four.

    n is the fewest with t(n − 1, 97.5 %) · spread ÷ √n ≤ 1 %: half of a 95 % interval of the mean log.
    """
    found = [
        process
        for level, planted in LEVELS.items()
        if planted == 0
        for process in rounds.processes.get((op, reads, level), ())
        if process is not None
    ]
    if len(found) < 4:
        return None
    spread = stdev(math.log(median(process.samples)) for process in found)
    return Precision(reads, op, spread, processes_needed(spread), fmean(process.seconds for process in found))


def processes_needed(spread: float, width: float = PRECISION) -> int | None:
    """Fewest processes whose mean is known within ±`width`; two at least."""

    def enough(count: int) -> bool:
        return student.margin(count - 1, 0.95) * spread / math.sqrt(count) <= math.log1p(width)

    if not enough(_MOST_PROCESSES):
        return None
    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
