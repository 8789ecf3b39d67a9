"""Measuring pairs until each is decided: which process is next, when is looked, and when to stop.

Pure: it is handed what measures and a clock. The order of each pair's processes is ABBA (baseline, contender |
contender, baseline | …), so that a machine that gets slower and slower slows both sides alike. Pairs take turns,
so that one pair's processes are spread over time. Before each turn `renew` is told what is measured in it, so that
a pair never has two processes that share more than their build (a fork server).

Only processes measured here are judged. Those stored before, in another session, may have chosen the pairs, and
pooling them would judge twice what looked suspicious by chance.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, Literal, TypeVar

from accel_micro.measure.records import Record
from accel_micro.stats.judging import judge, q_values
from accel_micro.stats.looks import PLAN, Plan, spent
from accel_micro.stats.verdict import Verdict

AT_ONCE: Final = 8
"""Pairs that take turns. A budget that is too short for all then still brings the first of them to a look."""

Stopped = Literal["decided", "looks", "budget", "interrupted", "failed"]
"""Why no more was measured: a verdict; the last look was taken; the budget ended; Ctrl-C; a process without times."""

T = TypeVar("T")
Samples = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Pair(Generic[T]):
    """Two things to be compared, each as `measure` takes it, and the clocks by which; one process reads them all."""

    baseline: T
    contender: T
    clocks: tuple[str, ...]
    tolerance: float = 0.02


@dataclass(frozen=True)
class Decision(Generic[T]):
    """What became of a pair by one clock.

    Attributes:
        verdict: its `q_value` is that of the family of all pairs and clocks, over all looks.
        baseline, contender: for each complete process its samples, seconds per call.
        stopped: why no more was measured. looks: that were taken.
    """

    pair: Pair[T]
    clock: str
    verdict: Verdict
    baseline: Samples
    contender: Samples
    stopped: Stopped
    looks: int


@dataclass(frozen=True)
class Turn(Generic[T]):
    """A process is about to start.

    Attributes:
        subject: what it measures. number: of the pair's processes a side, from 1; of: at the next look.
        open, total: pairs that are not decided, and all.
        seconds_left: of the budget.
    """

    subject: T
    pair: Pair[T]
    number: int
    of: int
    open: int
    total: int
    seconds_left: float


@dataclass(frozen=True)
class Looked(Generic[T]):
    """Pairs were judged; `decided` are those whose verdict is new."""

    decided: tuple[Decision[T], ...]
    open: int
    total: int


Event = Turn[T] | Looked[T]


def decide(
    pairs: Sequence[Pair[T]],
    measure: Callable[[T], Record],
    *,
    budget_seconds: float,
    alpha: float = 0.01,
    equivalence_alpha: float = 0.05,
    plan: Plan = PLAN,
    at_once: int = AT_ONCE,
    now: Callable[[], float] = time.monotonic,
    tell: Callable[[Event[T]], None] | None = None,
    renew: Callable[[Sequence[T]], None] | None = None,
) -> list[Decision[T]]:
    """Measure until every pair is decided, or the plan, the budget or the user's patience ends.

    Over all looks together, the false-discovery rate of regressions and improvements among all pairs and clocks is at
    most `alpha` (see `stats.looks`), and a difference as large as the tolerance is called invariant with a probability
    of at most `equivalence_alpha`. A pair that one clock has decided is measured on for its other clocks, and that
    verdict stays.

    Args:
        pairs: in the order in which they matter: where the budget ends early, the last ones have fewest processes.
        measure: one process of one side; a record without times ends its pair. KeyboardInterrupt ends all of it.
        budget_seconds: no process is started later than that after the beginning.
        at_once: pairs that take turns between two looks.
        tell: is told of each process and look.
        renew: is called before each turn with what is measured in it, each once.

    Returns:
        A decision for each clock of each pair, in order.
    """
    comparison = _Comparison(pairs, measure, budget_seconds, alpha, equivalence_alpha, plan, now, tell, renew)
    return comparison.run(at_once)


class _OutOfBudget(Exception):
    pass


@dataclass
class _Line(Generic[T]):
    """A pair by one clock."""

    clock: str
    baseline: list[tuple[float, ...]] = field(default_factory=list)
    contender: list[tuple[float, ...]] = field(default_factory=list)
    spent: float = 1.0
    verdict: Verdict | None = None
    looks: int = 0
    looked_at: int = 0
    stopped: Stopped | None = None
    failure: str = ""

    @property
    def processes(self) -> int:
        return len(self.contender)


@dataclass
class _State(Generic[T]):
    pair: Pair[T]
    lines: list[_Line[T]]
    processes: int = 0

    @property
    def open(self) -> bool:
        return any(line.stopped is None for line in self.lines)

    def open_lines(self) -> Iterator[_Line[T]]:
        return (line for line in self.lines if line.stopped is None)


class _Comparison(Generic[T]):
    def __init__(
        self,
        pairs: Sequence[Pair[T]],
        measure: Callable[[T], Record],
        budget_seconds: float,
        alpha: float,
        equivalence_alpha: float,
        plan: Plan,
        now: Callable[[], float],
        tell: Callable[[Event[T]], None] | None,
        renew: Callable[[Sequence[T]], None] | None,
    ) -> None:
        self.states = [_State(pair, [_Line[T](clock) for clock in pair.clocks]) for pair in pairs]
        self.measure, self.alpha, self.equivalence_alpha = measure, alpha, equivalence_alpha
        self.plan, self.now, self.tell = plan, now, tell or (lambda event: None)
        self.renew = renew or (lambda subjects: None)
        self.end = now() + budget_seconds

    def run(self, at_once: int) -> list[Decision[T]]:
        why: Stopped = "looks"
        try:
            for index, processes in enumerate(self.plan.processes):
                waiting = [state for state in self.states if state.open]
                for start in range(0, len(waiting), at_once):
                    group = waiting[start : start + at_once]
                    self._measure_until(processes, group)
                    self._look(group, self.plan.shares[index])
        except _OutOfBudget:
            why = "budget"
        except KeyboardInterrupt:
            why = "interrupted"
        self._look(self.states, None)
        for state in self.states:
            for line in state.open_lines():
                line.stopped = why
        return [self._decision(state, line) for state in self.states for line in state.lines]

    def _measure_until(self, processes: int, group: Sequence[_State[T]]) -> None:
        while turn := [state for state in group if state.open and state.processes < processes]:
            if self.now() < self.end:
                self.renew(
                    list(dict.fromkeys(s for each in turn for s in (each.pair.baseline, each.pair.contender)))
                )
            for state in turn:
                self._measure_both(state, processes)

    def _measure_both(self, state: _State[T], of: int) -> None:
        pair = state.pair
        order = ("baseline", "contender") if state.processes % 2 == 0 else ("contender", "baseline")
        read: dict[str, Mapping[str, tuple[float, ...]]] = {}
        for side in order:
            seconds_left = self.end - self.now()
            if seconds_left <= 0:
                raise _OutOfBudget
            subject = pair.baseline if side == "baseline" else pair.contender
            number = state.processes + 1
            self.tell(Turn(subject, pair, number, of, self._open, len(self.states), seconds_left))
            record = self.measure(subject)
            read[side] = {clock: process.samples for clock, process in record.clocks.items()}
            for line in state.open_lines():
                if not read[side].get(line.clock):
                    line.stopped, line.failure = "failed", f"{side}: {_why(record, line.clock)}"
            if not state.open:
                return
        state.processes += 1
        for line in state.open_lines():
            line.baseline.append(read["baseline"][line.clock])
            line.contender.append(read["contender"][line.clock])

    def _look(self, group: Sequence[_State[T]], share: float | None) -> None:
        """Judge what is open of a group; without a share for the last time, with all that is left of the level."""
        looked: list[tuple[_State[T], _Line[T], float]] = []
        for state in group:
            for line in state.open_lines():
                same = line.processes == line.looked_at
                used = self.plan.last_share(line.looks, same_data=same) if share is None else share
                if not line.processes or not used:
                    continue
                line.looks += not same
                line.looked_at = line.processes
                looked.append((state, line, used))
        strictest = self._level(called=1)
        for state, line, used in looked:
            line.verdict = self._judged(state, line, used, strictest)
            line.spent = spent(line.verdict.p_value, used)
        lines = [line for state in self.states for line in state.lines]
        adjusted = dict(zip(map(id, lines), q_values([line.spent for line in lines]), strict=True))
        level = self._level(called=sum(q_value <= self.alpha for q_value in adjusted.values()))
        decided = []
        for state, line, used in looked:
            verdict = line.verdict
            if verdict is None or level != strictest:
                verdict = self._judged(state, line, used, level)
            line.verdict = replace(verdict, q_value=adjusted[id(line)])
            if verdict.decided:
                line.stopped = "decided"
                decided.append(self._decision(state, line))
        self.tell(Looked(tuple(decided), self._open, len(self.states)))

    def _level(self, called: int) -> float:
        """Up to which p-value Benjamini and Hochberg's procedure calls different, where it calls so many of all."""
        return self.alpha * max(called, 1) / max(sum(len(state.lines) for state in self.states), 1)

    def _judged(self, state: _State[T], line: _Line[T], share: float, level: float) -> Verdict:
        return judge(
            line.baseline,
            line.contender,
            alpha=share * level,
            tolerance=state.pair.tolerance,
            equivalence_alpha=share * self.equivalence_alpha,
            turns=True,
        )

    @property
    def _open(self) -> int:
        return sum(state.open for state in self.states)

    def _decision(self, state: _State[T], line: _Line[T]) -> Decision[T]:
        verdict = line.verdict or judge(
            line.baseline, line.contender, tolerance=state.pair.tolerance, turns=True
        )
        if line.failure:
            verdict = replace(verdict, kind="inconclusive", processes_needed=None, reason=line.failure)
        return Decision(
            state.pair,
            line.clock,
            replace(verdict, q_value=1.0 if verdict.q_value is None else verdict.q_value),
            tuple(line.baseline),
            tuple(line.contender),
            line.stopped or "looks",
            line.looks,
        )


def _why(record: Record, clock: str) -> str:
    if record.failure is not None:
        return f"{record.failure.kind}: {record.failure.detail}".removesuffix(": ")
    return record.skipped or f"no time by the {clock} clock"
