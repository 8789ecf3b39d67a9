"""A whole comparison: pairs with their verdicts in the order in which they matter, and all that belongs to it."""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from accel_micro.comparison.differences import Differences
from accel_micro.comparison.pairing import Pair, Paired, Uncompared
from accel_micro.comparison.sides import Kind, Scope, Side
from accel_micro.results import Trial
from accel_micro.stats import Verdict, judge_family
from accel_micro.stats.verdict import KINDS

ORDER: Final = ("regression", "improvement", "inconclusive", "invariant")
"""Of the verdicts, by what a reader wants to know first."""


@dataclass(frozen=True)
class Tolerance:
    """The relative difference that does not matter, and where it comes from.

    Attributes:
        value: 0.02 for 2 %.
        device, machine: whose it is; empty for all.
        note: a sentence about a tolerance that is not a calibrated machine's own; else empty.
    """

    value: float
    device: str = ""
    note: str = ""
    machine: str = ""


@dataclass(frozen=True)
class Compared:
    """A pair and what became of it.

    Attributes:
        tolerance: with which it was judged.
    """

    pair: Pair
    verdict: Verdict
    tolerance: float

    @property
    def seconds(self) -> tuple[float, float]:
        """Baseline's and contender's time of a call, see `typical_seconds`."""
        aside = self.verdict.set_aside
        return typical_seconds(self.pair.baseline, aside[0]), typical_seconds(self.pair.contender, aside[1])


@dataclass(frozen=True)
class Comparison:
    """What `accel-micro compare` answers.

    Attributes:
        sides: baseline and contender. scope: which of their trials were compared.
        builds: titles of the builds of baseline and contender.
        rows: in the order of `ORDER`, within it the largest difference first.
        cautions: sentences that a reader must know before trusting a verdict.
        tolerances: one a device.
        problems: lines of the results that could not be read.
    """

    sides: tuple[Side, Side]
    scope: Scope
    builds: tuple[str, str]
    paired: Paired
    rows: tuple[Compared, ...]
    differences: Differences
    cautions: tuple[str, ...]
    tolerances: tuple[Tolerance, ...]
    alpha: float
    problems: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """What the sides differ in."""
        return self.sides[0].kind

    @property
    def uncompared(self) -> tuple[Uncompared, ...]:
        """What has no verdict."""
        return self.paired.uncompared

    @cached_property
    def devices(self) -> frozenset[str]:
        """Of the contender's cases that have a verdict."""
        return frozenset(row.pair.case.device for row in self.rows)

    @cached_property
    def clocks(self) -> frozenset[str]:
        """By which there are verdicts."""
        return frozenset(row.pair.clock for row in self.rows)

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many rows have each verdict, all four of them."""
        found = Counter(row.verdict.kind for row in self.rows)
        return {kind: found[kind] for kind in KINDS}

    @property
    def undecided(self) -> tuple[Compared, ...]:
        """The rows that more processes may decide."""
        return tuple(row for row in self.rows if not row.verdict.decided)


def judge_pairs(
    pairs: Sequence[Pair], alpha: float, tolerances: Mapping[str, float], default: float
) -> tuple[Compared, ...]:
    """The verdicts of all pairs, judged as one family and sorted.

    Args:
        tolerances: by device; of two devices the larger counts. default: of all others.

    Raises:
        ValueError: `alpha` or a tolerance is out of range.
    """
    each = [
        max(tolerances.get(trial.key.case.device, default) for trial in (pair.baseline, pair.contender))
        for pair in pairs
    ]
    verdicts = judge_family(
        [(pair.baseline.samples, pair.contender.samples) for pair in pairs],
        alpha=alpha,
        tolerance=each,
        turns=[pair.turns for pair in pairs],
    )
    return ordered(map(Compared, pairs, verdicts, each))


def ordered(rows: "Sequence[Compared] | map[Compared]") -> tuple[Compared, ...]:
    """Rows by verdict and then by size, the largest first; what has no ratio comes last."""
    return tuple(sorted(rows, key=_place))


def _place(row: Compared) -> tuple[int, float, str, str]:
    ratio = row.verdict.ratio
    size = abs(math.log(ratio)) if math.isfinite(ratio) and ratio > 0 else -1.0
    return ORDER.index(row.verdict.kind), -size, str(row.pair.case), row.pair.clock


def typical_seconds(trial: Trial, set_aside: int = 0) -> float:
    """The time of a call of a trial: the geometric mean of the process medians, as an estimate's; their median
    where some ran in another speed mode, so that it is a time that most of them had.
    """
    medians = [process.median_seconds for process in trial.processes]
    return statistics.median(medians) if set_aside else statistics.geometric_mean(medians)


def cautions(kind: Kind, paired: Paired, sides: tuple[Side, Side]) -> tuple[str, ...]:
    """What a reader must know of how the sides were measured, a sentence each."""
    total = len(paired.pairs)
    found = Counter(pair.conditions for pair in paired.pairs if pair.can_tell or pair.conditions == "apart")
    said: list[str] = []
    if kind != "machine" and found["apart"]:
        said.append(
            f"{_share(found['apart'], total)} from separate sessions: the sides were measured under different "
            "conditions, and a difference may be the machine's"
        )
    if kind != "machine" and found["in turn"]:
        said.append(
            f"{_share(found['in turn'], total)} of one session in which one side was measured after the other: "
            "a drift of the machine looks like a difference"
        )
    for side, chosen, others in zip(sides, paired.environments, paired.others, strict=True):
        if others:
            left = ", ".join(f"{name} ({count})" for name, count in sorted(others.items()))
            said.append(
                f"{side.title} was measured in {len(others) + 1} environments; compared are the processes "
                f"of {chosen}, left out are those of {left}"
            )
    if paired.failed_once:
        what = "1 case" if paired.failed_once == 1 else f"{paired.failed_once} cases"
        said.append(f"in {what} the last process of a side left no time; the others are compared")
    return tuple(dict.fromkeys(said))


def _share(count: int, total: int) -> str:
    if count == total:
        return "all rows are" if total > 1 else "the only row is"
    return f"{count} of {total} rows are" if count > 1 else f"1 of {total} rows is"
