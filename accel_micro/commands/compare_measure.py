"""`accel-micro compare --measure`: fresh processes for what stored results leave open, both sides by turns."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from accel_micro.measure.records import Case, Record

if TYPE_CHECKING:
    from pathlib import Path

    from accel_micro.asv_plugin.opening import Where
    from accel_micro.comparison.compared import Compared, Comparison
    from accel_micro.comparison.deciding import Decision, Event, Pair
    from accel_micro.results import Measured, Trial

    Subject = tuple[Where, Case]

INTERRUPTED: Final = 130
BUDGET_MINUTES: Final = 10.0


class Measuring:
    """Measures pairs by turns: those of `decide`, or the undecided rows of a comparison.

    It is what `compare.compare` takes as `measure`.

    Args:
        config, results: as for `interleaved`.
        budget_seconds: for measuring; making the environments of the builds ready is not counted.
        started, ended: told of each process, as `report.progress.Listener` is.

    Attributes:
        interrupted: somebody pressed Ctrl-C; what was measured is saved, and judged.
    """

    def __init__(
        self,
        config: "Path | None",
        results: "Path | None",
        budget_seconds: float,
        *,
        started: Callable[[Case, int, int], None],
        ended: Callable[[Record], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config, self._results, self._budget_seconds = config, results, budget_seconds
        self._started, self._ended, self._now = started, ended, now
        self._records: dict[Subject, list[Record]] = {}
        self._processes = 0
        self._began: float | None = None
        self.interrupted = False

    def __call__(self, comparison: "Comparison", rows: "Sequence[Compared]") -> "Sequence[Compared]":
        """The rows with verdicts of fresh processes alone, where these could tell; else as they were.

        Raises:
            SessionError: they cannot be measured here; the message is one sentence.
        """
        _check(comparison)
        decisions = self.decide(pairs_of(rows), comparison.scope.machines[0], alpha=comparison.alpha)
        return self._rows(rows, decisions)

    def decide(
        self, pairs: "Sequence[Pair[Subject]]", machine: str, *, alpha: float = 0.01, partial: bool = False
    ) -> "list[Decision[Subject]]":
        """Measure pairs on this machine, known by that name, until each is decided or the budget ends.

        Args:
            partial: a build that cannot be run costs its own pairs only; their decisions say why.

        Raises:
            SessionError: they cannot be measured here; the message is one sentence.
        """
        from accel_micro.asv_plugin.interleaving import interleaved
        from accel_micro.comparison.deciding import decide

        subjects = [subject for pair in pairs for subject in (pair.baseline, pair.contender)]
        with interleaved(
            self._config,
            places=list(dict.fromkeys(place for place, _ in subjects)),
            devices=sorted({case.device for _, case in subjects}),
            clocks=sorted({clock for pair in pairs for clock in pair.clocks}),
            results=self._results,
            machine=machine,
            partial=partial,
        ) as measure:

            def process(subject: "Subject") -> Record:
                with self._noticing_ctrl_c():
                    record = measure(*subject)
                self._processes += 1
                self._records.setdefault(subject, []).append(record)
                self._ended(record)
                return record

            def renew(subjects: "Sequence[Subject]") -> None:
                with self._noticing_ctrl_c():
                    measure.renew([place for place, _ in subjects])

            self._began = self._now()
            return decide(
                pairs,
                process,
                budget_seconds=self._budget_seconds,
                alpha=alpha,
                now=self._now,
                tell=self._tell,
                renew=renew,
            )

    @contextlib.contextmanager
    def _noticing_ctrl_c(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted = True
            raise

    def _tell(self, event: "Event[Subject]") -> None:
        from accel_micro.comparison.deciding import Turn
        from accel_micro.stats.looks import PLAN

        if not isinstance(event, Turn):
            return
        left = 2 * (PLAN.processes[-1] - event.number + 1) * event.open
        if self._processes and self._began is not None:
            seconds = max(self._now() - self._began, 1e-9)
            left = min(left, int(event.seconds_left * self._processes / seconds))
        self._started(event.subject[1], self._processes + 1, self._processes + max(left, 1))

    def _rows(self, rows: "Sequence[Compared]", decisions: "Sequence[Decision[Subject]]") -> "list[Compared]":
        found = {(_subjects(decision.pair), decision.clock): decision for decision in decisions}
        return [self._row(row, found[_subjects_of(row), row.pair.clock]) for row in rows]

    def _row(self, row: "Compared", decision: "Decision[Subject]") -> "Compared":
        if decision.stopped == "failed":
            return replace(row, verdict=replace(row.verdict, reason=decision.verdict.reason))
        pair, count = decision.pair, len(decision.contender)
        fresh = replace(
            row.pair,
            baseline=self._trial(row.pair.baseline, pair.baseline, count),
            contender=self._trial(row.pair.contender, pair.contender, count),
            conditions="interleaved",
        )
        if not fresh.can_tell:
            return row
        return replace(row, pair=fresh, verdict=decision.verdict)

    def _trial(self, stored: "Trial", subject: "Subject", count: int) -> "Trial":
        records = self._records.get(subject, [])[:count]
        return replace(stored, processes=tuple(measured(record, stored.key.clock) for record in records))


def pairs_of(rows: "Sequence[Compared]") -> "list[Pair[Subject]]":
    """What is measured for these rows: a process reads all clocks of a case, so they are one pair.

    In the order of the largest differences first, which is that of undecided rows.
    """
    from accel_micro.comparison.deciding import Pair

    clocks: dict[tuple[Subject, Subject], list[str]] = {}
    tolerances: dict[tuple[Subject, Subject], float] = {}
    for row in rows:
        subjects = _subjects_of(row)
        clocks.setdefault(subjects, []).append(row.pair.clock)
        tolerances[subjects] = row.tolerance
    return [Pair(*each, tuple(of), tolerances[each]) for each, of in clocks.items()]


def measured(record: Record, clock: str) -> "Measured":
    """A process as it will be read back from the results."""
    from accel_micro.results import Measured

    process = record.clocks[clock]
    return Measured(
        samples=tuple(process.samples),
        session=record.session,
        started=record.started,
        flags=tuple(flag.name for flag in process.flags),
        precision=tuple(record.precision.items()),
    )


def _check(comparison: "Comparison") -> None:
    from accel_micro.asv_plugin.embedding import WRONG_USE, SessionError

    if comparison.kind == "machine":
        raise SessionError("two machines cannot be measured from one of them; measure on each", WRONG_USE)
    from accel_micro.asv_plugin.machine import is_this

    machine = comparison.scope.machines[0]
    if not is_this(machine):
        raise SessionError(f"these are results of machine {machine}, which is not this one", WRONG_USE)


def _subjects(pair: "Pair[Subject]") -> "tuple[Subject, Subject]":
    return pair.baseline, pair.contender


def _subjects_of(row: "Compared") -> "tuple[Subject, Subject]":
    from accel_micro.asv_plugin.opening import Where

    keys = row.pair.baseline.key, row.pair.contender.key
    first, second = ((Where(key.build, key.environment), key.case) for key in keys)
    return first, second
