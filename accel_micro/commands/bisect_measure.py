"""What runs the blocks of a bisection: processes of a case of the suite, by turns, on any of the builds."""

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from accel_micro.commands.bisect_ahead import Expected, Prepared
from accel_micro.measure.records import Record
from accel_micro.results.questions import Question

if TYPE_CHECKING:
    from accel_micro.asv_plugin.interleaving import Measure
    from accel_micro.asv_plugin.opening import Where

WORKS: Final = 1.0
FAILS: Final = 2.0
"""What stands for a process that works and one that does not, where that is what is searched."""

_LEAST_ERROR: Final = 1e-18
"""For the error of a result that is exactly the reference: a search takes logarithms."""

Note = Callable[[str, str], None]
"""Told the id of a build and why it gave nothing."""


@contextlib.contextmanager
def measuring(
    question: Question, config: Path | None, results: Path | None, note: Note, say: Callable[[str], None]
) -> Iterator[Prepared]:
    """What runs the blocks of a question about a case. Builds are installed when they are first asked for.

    Raises:
        SessionError: the first build cannot be had now, or the device is in use. Raised inside the block too.
    """
    from accel_micro.asv_plugin.embedding import variables
    from accel_micro.asv_plugin.interleaving import interleaved
    from accel_micro.asv_plugin.opening import Where
    from accel_micro.builds.ahead import Ahead
    from accel_micro.builds.index import VARIANT_VARIABLE
    from accel_micro.measure import CLOCKS

    assert question.case is not None
    clocks = (question.metric,) if question.metric in CLOCKS else ("throughput",)
    first = next(iter(question.ids(question.starts[0])))
    with (
        contextlib.closing(Ahead(say)) as ahead,
        variables({VARIANT_VARIABLE: question.variant or None}),
        interleaved(
            config,
            places=[Where(first), Where(question.builds[-1].id)],
            devices=[question.case.device],
            clocks=clocks,
            results=results,
            partial=True,
            ahead=ahead,
        ) as measure,
    ):
        yield _Blocks(
            measure, question, note, say, Where, Expected(ahead, lambda id_: measure.job(Where(id_)))
        )


class _Blocks:
    def __init__(
        self,
        measure: "Measure",
        question: Question,
        note: Note,
        say: Callable[[str], None],
        where: "Callable[[str], Where]",
        expected: "Expected",
    ) -> None:
        self._measure, self._question, self._note, self._say = measure, question, note, say
        self._where, self.expected = where, expected
        self._ready: dict[str, bool] = {}

    def __call__(self, builds: Sequence[str]) -> list[float | None]:
        """See `bisect.Runner`."""
        needed = [build for build in dict.fromkeys(builds) if build not in self._ready]
        self.expected.needed(needed)
        working = [build for build in dict.fromkeys(builds) if self._is_ready(build)]
        self.expected.pause()
        # Processes that are forked from one server agree better than those of two: each gets one of its own.
        lanes = range(max(Counter(builds).values()))
        self._measure.renew([self._where(build) for build in working], lanes)
        values: list[float | None] = []
        turns: Counter[str] = Counter()
        for build in builds:
            values.append(self._value(build, turns[build]) if build in working else None)
            turns[build] += 1
        return values

    def _is_ready(self, build: str) -> bool:
        if build not in self._ready:
            version = self._question.version(build)
            self._say(f"making torch {version} ready")
            self.expected.finish(build)
            why = self._measure.add(self._where(build))
            if why is not None:
                self._note(build, why)
            self._ready[build] = why is None
            if why is None:
                # What a build's first process finds cold would follow the build, and not the order of the block.
                self._value(build, 0)
        return self._ready[build]

    def _value(self, build: str, lane: int) -> float | None:
        assert self._question.case is not None
        record = self._measure(self._where(build), self._question.case, lane)
        value, why = value_of(record, self._question)
        if why:
            self._note(build, why)
        return value


def value_of(record: Record, question: Question) -> tuple[float | None, str]:
    """What a process says to the question, and where it says nothing or failed, why."""
    if record.skipped is not None:
        return None, record.skipped
    failure = record.failure
    told = "" if failure is None else f"{failure.kind}: {failure.detail}".rstrip(": ")
    if question.regress == "error":
        return (WORKS, "") if failure is None else (FAILS, told)
    if question.metric == "error":
        if record.check is None:
            return None, told or "no check of the result"
        error = record.check.error
        return (max(error, _LEAST_ERROR), "") if math.isfinite(error) else (None, f"error {error}")
    if failure is not None:
        return None, told
    if question.metric == "memory":
        held = record.peak_memory_bytes
        return (
            (None, "the memory that a call holds is not known here") if held is None else (max(held, 1), "")
        )
    if question.metric not in record.clocks:
        return None, f"no {question.metric} clock on {record.case.device}"
    return record.clocks[question.metric].median_seconds, ""
