"""From which size on one side is faster than the other: a call at each size, and what lies between the calls.

Ratios over sizes are no straight lines: a library changes its kernel, a cache ends, and one side may overtake the
other twice. So no shape is assumed. At each measured size it is decided which side is faster, and a crossing is said
to lie between two sizes where different sides are. That is true whenever both calls are, whatever happens between.

The error is controlled for all sizes of a sweep together: each size gets an equal part of the level, planned for
`MOST_SIZES` of them, and each look at a size its part of that. By Bonferroni's inequality the probability that any
size of a sweep is called for the wrong side is then at most the level, although it depends on earlier calls which
sizes are measured and how often. So an interval from the last size of one side to the first of the other covers a
crossing with 95 %. What this cannot see is two crossings between neighbouring sizes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from accel_micro.stats.judging import judge
from accel_micro.stats.looks import Plan

Faster = Literal["baseline", "contender", "equal", "open"]
"""Which side is faster at a size, by more than the tolerance; `equal`: neither; `open`: not decided."""

ALPHA: Final = 0.05
"""How often, at most, any size of a sweep is called for the wrong side."""

EQUIVALENCE_ALPHA: Final = 0.05
"""How often, at most, a size is called equal where the sides differ by the tolerance; for each size by itself."""

MOST_SIZES: Final = 20
"""Sizes that a sweep may measure; each gets this part of the level."""

LOOKS: Final = Plan.even(4, 6, 9, 13)
"""After how many processes a side it is decided, at each size."""

CLEAR: Final = 3.0
"""A size is decided from two processes a side on where each of one side is that many times as fast as each of the
other. Undisturbed processes of one case were seen up to a factor 1.8 apart (two speeds of a shared machine), so no
spread of theirs explains it, however few there are. Processes that waited for a core were seen a factor 100 apart."""

CLEAR_PROCESSES: Final = 2

Side = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Call:
    """What is known at a size.

    Attributes:
        ratio: contender ÷ baseline, with its 95 % interval (0 to infinity while too few processes tell it).
        clear: decided by a gap that no spread of processes explains.
        processes: a side. needed: about how many more decide it, a side; None: too many, or unknown.
        reason: why it is open, else empty.
    """

    faster: Faster
    ratio: float
    ratio_low: float
    ratio_high: float
    processes: int
    clear: bool = False
    needed: int | None = 0
    reason: str = ""


def call(
    baseline: Side,
    contender: Side,
    *,
    share: float = 1.0,
    alpha: float = ALPHA,
    tolerance: float = 0.02,
    sizes: int = MOST_SIZES,
    undisturbed: bool = True,
) -> Call:
    """Which side is faster at one size.

    Args:
        baseline, contender: for each process its samples, seconds per call, by turns; as many on both sides.
        share: of the size's level that this look may spend.
        alpha: for all sizes together. sizes: that share it.
        tolerance: relative difference that does not matter.
        undisturbed: no process is known to have been held up; else few of them decide nothing, however clear it looks.

    Raises:
        ValueError: as `judge`.

    >>> call([[9.0], [9.1]], [[1.0], [1.2]]).faster
    'contender'
    """
    verdict = judge(
        baseline,
        contender,
        alpha=share * alpha / sizes,
        tolerance=tolerance,
        equivalence_alpha=share * EQUIVALENCE_ALPHA,
        turns=True,
    )
    kinds: dict[str, Faster] = {"regression": "baseline", "improvement": "contender", "invariant": "equal"}
    found = Call(
        kinds.get(verdict.kind, "open"),
        verdict.ratio,
        verdict.ratio_low,
        verdict.ratio_high,
        len(baseline),
        needed=verdict.processes_needed,
        reason="" if verdict.decided else verdict.reason,
    )
    side = _clearly_faster(baseline, contender) if undisturbed else None
    if side is not None:
        return replace(found, faster=side, clear=True, needed=0, reason="")
    return found if _typical(found.faster, baseline, contender, tolerance) else replace(found, **_TWO_SPEEDS)


_TWO_SPEEDS: Final[dict[str, Any]] = {
    "faster": "open",
    "needed": None,
    "reason": "some processes ran at another speed, about as far apart as the sides are",
}


_AGREEING: Final = 0.75
"""Share of the turns that must have the same side faster as the verdict has."""


def _typical(faster: Faster, baseline: Side, contender: Side, tolerance: float) -> bool:
    """Whether the turns say the same as the verdict.

    Sides that differ by as much as two speeds of the machine do cannot be told from speeds: `judge` may take the slow
    processes of one side and the usual ones of the other for one speed, and compare those. Without this check one
    sweep in three had a size on the wrong side, where one process in seven is 1.8 times slower. With it 0.4 % had, and
    2 % where three in ten are; if two in three turns are enough 0.8 and 3.2 % (250 sweeps each).
    """
    if faster == "open":
        return True
    turns = zip(map(_median, baseline), map(_median, contender), strict=True)
    logs = [math.log(cont / base) for base, cont in turns]
    if faster == "equal":
        return abs(_median(logs)) < 2 * math.log1p(tolerance)
    return sum((log > 0) == (faster == "baseline") for log in logs) >= _AGREEING * len(logs)


def _clearly_faster(baseline: Side, contender: Side) -> Faster | None:
    if min(len(baseline), len(contender)) < CLEAR_PROCESSES:
        return None
    base, cont = ([_median(process) for process in side] for side in (baseline, contender))
    if min(base) > CLEAR * max(cont):
        return "contender"
    return "baseline" if min(cont) > CLEAR * max(base) else None


def _median(process: Sequence[float]) -> float:
    ordered = sorted(process)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


@dataclass(frozen=True)
class Crossing:
    """A side overtakes the other between two sizes.

    Attributes:
        low: last size at which the side that was faster below is. high: first size at which the other one is.
        faster: the side that is faster from `high` on.
        at: about where, by interpolation.
        equal, open: measured sizes between them where the sides are equal, or that are not decided.
    """

    low: int
    high: int
    faster: Faster
    at: float
    equal: tuple[int, ...] = ()
    open: tuple[int, ...] = ()

    @property
    def factor(self) -> float:
        """Width of the interval."""
        return self.high / self.low


def crossings(calls: Mapping[int, Call]) -> list[Crossing]:
    """The crossings that calls show, in order.

    Args:
        calls: by size.
    """
    found: list[Crossing] = []
    last: int | None = None
    for size in sorted(calls):
        side = calls[size].faster
        if side not in ("baseline", "contender"):
            continue
        if last is not None and calls[last].faster != side:
            inside = {each: calls[each] for each in sorted(calls) if last <= each <= size}
            found.append(
                Crossing(
                    low=last,
                    high=size,
                    faster=side,
                    at=_interpolated(inside),
                    equal=tuple(each for each, known in inside.items() if known.faster == "equal"),
                    open=tuple(each for each, known in inside.items() if known.faster == "open"),
                )
            )
        last = size
    return found


def refine(calls: Mapping[int, Call], factor: float, between: Callable[[int, int], int | None]) -> list[int]:
    """The sizes to measure next, new ones or ones that are open, to make intervals narrower; one for each.

    First sizes, then processes: near its ends an interval is halved with new sizes, where sides differ most and few
    processes decide, until both neighbours are within the factor; only then more processes go to open sizes inside.
    Open sizes outside of intervals come last. An interval that is left without a proposal is as narrow as it gets.

    Args:
        factor: from the end of an interval to the other that is narrow enough.
        between: a new size between two; None when there is none, or no more may be added.
    """
    found = sorted(crossings(calls), key=lambda one: -one.factor)
    proposals = [_narrower(one, calls, factor, between) for one in found if one.factor > factor]
    wanted = [size for size in proposals if size is not None]
    inside = {size for one in found for size in one.open}
    return wanted or _open({size: each for size, each in calls.items() if size not in inside})


def _narrower(
    one: Crossing, calls: Mapping[int, Call], factor: float, between: Callable[[int, int], int | None]
) -> int | None:
    nodes = [one.low, *sorted((*one.equal, *one.open)), one.high]
    gaps = {(nodes[0], nodes[1]), (nodes[-2], nodes[-1])}
    for low, high in sorted(gaps, key=lambda gap: -gap[1] / gap[0]):
        middle = between(low, high) if high / low > factor else None
        if middle is not None:
            return middle
    return next(iter(_open({size: calls[size] for size in one.open})), None)


def _open(calls: Mapping[int, Call]) -> list[int]:
    """Open sizes that may be looked at again, those with fewest processes first."""
    left = sorted((each.processes, size) for size, each in calls.items() if each.faster == "open")
    return [size for processes, size in left if processes < LOOKS.processes[-1]]


def _interpolated(calls: Mapping[int, Call]) -> float:
    """Where the ratio is 1, by straight lines between logs of sizes and ratios.

    The ratios are made monotonic first (isotonic regression, weighted by processes), since noise about 1 would cross
    it several times. The ends keep their sides: each is the mean of itself and of what lies beyond it.
    """
    import numpy as np
    from scipy.optimize import isotonic_regression

    sizes = [math.log(size) for size in calls]
    logs = [math.log(each.ratio) for each in calls.values()]
    sign = 1 if logs[-1] > logs[0] else -1
    weights = [float(each.processes) for each in calls.values()]
    fitted = isotonic_regression(sign * np.array(logs), weights=weights).x
    ends = min(calls), max(calls)
    return min(max(math.exp(_where_zero(sizes, fitted.tolist())), ends[0]), ends[1])


_ZERO: Final = 1e-9
"""A mean of logs that cancel is rounded."""


def _where_zero(sizes: Sequence[float], rising: Sequence[float]) -> float:
    """Of a rising broken line that begins below zero and ends above it; the middle where it lies on zero."""
    below = max(i for i, value in enumerate(rising) if value < -_ZERO)
    above = min(i for i, value in enumerate(rising) if value > _ZERO)
    if above - below > 1:
        return (sizes[below + 1] + sizes[above - 1]) / 2
    share = -rising[below] / (rising[above] - rising[below])
    return sizes[below] + share * (sizes[above] - sizes[below])
