"""Two sides in, a verdict out: whether the contender is slower, faster or the same, or whether that is open.

Samples of one process are not independent, and processes differ by more than their samples do: tests on
pooled samples call noise a regression in 9 to 66 of 100 comparisons. So the unit is the process, by the log of
its median. What is needed for a verdict:

- `regression`, `improvement`: a difference that is significant (Welch's t, Satterthwaite's degrees of freedom)
  **and** an estimate beyond the tolerance;
- `invariant`: the 90 % interval lies within the tolerance (two one-sided tests, Schuirmann 1987);
- else `inconclusive`.

Where processes ran in several speed modes (see `modes`), they are compared within modes, and the p-value is
twice the smaller of that one and of Fisher's exact test of whether one side was in other modes more often.

Where it is known which processes ran one after the other, they are compared turn by turn as well (see
`contrast.by_turns`), and each way gets half of the level: on a machine that is slower for minutes and then fast
again, the differences of turns agree while the processes of a side do not.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from accel_micro.stats import student
from accel_micro.stats.contrast import (
    FEWEST_TURNS,
    Contrast,
    by_turns,
    mean,
    within_modes,
)
from accel_micro.stats.modes import Modes, one_mode, ways
from accel_micro.stats.verdict import Kind, Verdict

FEWEST: Final = 3
"""Processes a side below which there is no verdict: two say too little of how processes differ."""

CONFIDENCE: Final = 0.95
"""Of the interval of the ratio."""

_POWER: Final = 0.8416
"""Normal quantile of 0.8: the power with which `processes_needed` shall decide."""

_MOST_PROCESSES: Final = 400
_UNEVEN: Final = 0.1
"""Below this p-value of Fisher's test nothing is called invariant: the sides were not in the same modes."""

_UNLIKELY: Final = 0.03
"""Below this one a way to pair modes is not believed when there is another that leaves as few."""

_SURELY_UNEVEN: Final = 0.01
"""Below this one the ratio is that of all processes, whatever their modes: those belong to the sides."""

Side = Sequence[Sequence[float]]


def judge(
    baseline: Side,
    contender: Side,
    *,
    alpha: float = 0.01,
    tolerance: float = 0.02,
    equivalence_alpha: float = 0.05,
    turns: bool = False,
) -> Verdict:
    """Compare two sides that were measured interleaved, or at least under the same conditions.

    Args:
        baseline, contender: for each process its samples, seconds per call. The order of samples does not matter,
            nor, without `turns`, that of processes.
        alpha: how often sides that do not differ may be called different, both ways together.
        tolerance: relative difference that does not matter, 0.02 for 2 %. It holds for the ratio and its inverse.
        equivalence_alpha: how often a difference as large as the tolerance may be called `invariant`.
        turns: the first process of both sides ran one after the other, and so did the second, and so on.

    Raises:
        ValueError: a sample is not a positive finite number of seconds, a process has no sample, `alpha` or
            `equivalence_alpha` is not in (0, 0.5], or `tolerance` is not positive.

    >>> base = [[1.00e-3], [1.01e-3], [0.99e-3], [1.00e-3]]
    >>> slow = [[1.10e-3], [1.11e-3], [1.09e-3], [1.10e-3]]
    >>> judge(base, slow).kind
    'regression'
    >>> judge(base[:1], slow[:1]).kind
    'inconclusive'
    """
    _check(alpha, tolerance, equivalence_alpha)
    verdict, contrast, uneven = _compare(baseline, contender, turns)
    return _decide(verdict, contrast, uneven, verdict.p_value, alpha, tolerance, equivalence_alpha)


def judge_family(
    pairs: Sequence[tuple[Side, Side]],
    *,
    alpha: float = 0.01,
    tolerance: float | Sequence[float] = 0.02,
    equivalence_alpha: float = 0.05,
    turns: bool | Sequence[bool] = False,
) -> list[Verdict]:
    """Compare many pairs, such that of all that are called different at most the share `alpha` is not.

    Args:
        pairs: (baseline, contender), each as in `judge`.
        tolerance, turns: as there; one for all, or one for each pair.

    Returns:
        A verdict for each pair, in order, with `q_value`. What has fewer than three processes a side is not
        counted into the family: it cannot be called different.

    Raises:
        ValueError: as `judge`, or there are not as many tolerances or `turns` as pairs.
    """
    tolerances = [tolerance] * len(pairs) if isinstance(tolerance, (int, float)) else list(tolerance)
    if len(tolerances) != len(pairs):
        raise ValueError(f"{len(tolerances)} tolerances for {len(pairs)} pairs")
    by_turn = [turns] * len(pairs) if isinstance(turns, bool) else list(turns)
    if len(by_turn) != len(pairs):
        raise ValueError(f"turns or not for {len(by_turn)} of {len(pairs)} pairs")
    for each in set(tolerances) or {0.02}:
        _check(alpha, each, equivalence_alpha)
    compared = [_compare(*pair, each) for pair, each in zip(pairs, by_turn, strict=True)]
    tested = [i for i, (_, contrast, _) in enumerate(compared) if contrast is not None]
    adjusted = dict(zip(tested, q_values([compared[i][0].p_value for i in tested]), strict=True))
    return [
        replace(
            _decide(verdict, contrast, uneven, adjusted.get(i, 1.0), alpha, tolerances[i], equivalence_alpha),
            q_value=adjusted.get(i, 1.0),
        )
        for i, (verdict, contrast, uneven) in enumerate(compared)
    ]


def q_values(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number, after Benjamini and Hochberg (1995): calling all with q ≤ a different
    keeps the expected share of false ones among them at or below a.

    >>> q_values([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__, reverse=True)
    adjusted = [1.0] * len(p_values)
    least = 1.0
    for position, i in enumerate(order):
        least = min(least, p_values[i] * len(p_values) / (len(p_values) - position))
        adjusted[i] = least
    return adjusted


def _check(alpha: float, tolerance: float, equivalence_alpha: float) -> None:
    for name, value in (("alpha", alpha), ("equivalence_alpha", equivalence_alpha)):
        if not 0 < value <= 0.5:
            raise ValueError(f"{name} must lie between 0 and 0.5, not {value!r}")
    if not (math.isfinite(tolerance) and tolerance > 0):
        raise ValueError(f"tolerance must be positive, not {tolerance!r}")


def _compare(baseline: Side, contender: Side, turns: bool) -> tuple[Verdict, Contrast | None, bool]:
    """What does not depend on thresholds; `kind` is yet open. And whether the sides lay in other modes."""
    if turns and len(baseline) != len(contender):
        raise ValueError(f"turns of {len(baseline)} and {len(contender)} processes")
    medians = [_medians(baseline), _medians(contender)]
    (base, base_noise), (cont, cont_noise) = medians
    verdict = Verdict(
        kind="inconclusive",
        ratio=_exp(mean(cont) - mean(base)) if base and cont else math.nan,
        ratio_low=0.0,
        ratio_high=math.inf,
        p_value=1.0,
        processes_needed=max(FEWEST - min(len(base), len(cont)), 0),
        baseline_processes=len(base),
        contender_processes=len(cont),
        baseline_spread=_spread(base),
        contender_spread=_spread(cont),
    )
    if min(len(base), len(cont)) < FEWEST:
        return verdict, None, False
    noise = base_noise, cont_noise
    modes, *others = _likely(ways(base, cont))
    contrast = within_modes(base, cont, modes, noise)
    p_value, uneven = contrast.p_value, bool(others)
    for other_way in others:
        beside = within_modes(base, cont, other_way, noise)
        if _sign(beside.difference) != _sign(contrast.difference):
            return _ambiguous(verdict, contrast, beside), contrast, True
        p_value = max(p_value, beside.p_value)
    if modes.count > 1:
        uneven_p = _fisher(modes)
        uneven = uneven or uneven_p < _UNEVEN
        everything = within_modes(base, cont, one_mode(len(base), len(cont)), noise)
        other = max(uneven_p, everything.p_value)
        if other < min(p_value, _SURELY_UNEVEN):
            contrast = everything
        p_value = min(1.0, 2 * min(p_value, other))
    spreads = [math.sqrt(variance) for variance in contrast.variances]
    if turns and len(base) >= FEWEST_TURNS:
        beside = by_turns(base, cont, noise)
        p_value = min(1.0, 2 * min(p_value, beside.p_value))
        contrast = min(contrast, beside, key=lambda each: each.half_width(CONFIDENCE))
        contrast = replace(contrast, ways=2)
    half = contrast.half_width(1 - (1 - CONFIDENCE) / contrast.ways)
    found = replace(
        verdict,
        ratio=_exp(contrast.difference),
        ratio_low=_exp(contrast.difference - half),
        ratio_high=_exp(contrast.difference + half),
        p_value=p_value,
        baseline_spread=spreads[0],
        contender_spread=spreads[1],
        set_aside=contrast.set_aside,
    )
    return found, contrast, uneven


def _sign(value: float) -> int:
    """-1, 0 or 1: no difference is neither side's."""
    return (value > 0) - (value < 0)


def _likely(found: list[Modes]) -> list[Modes]:
    """Without the ways in which one side ran in other modes far more often than the other, if any is left."""
    even = [modes for modes in found if modes.count == 1 or _fisher(modes) >= _UNLIKELY]
    return even or found


def _ambiguous(verdict: Verdict, one: Contrast, other: Contrast) -> Verdict:
    """Two ways to pair the modes of both sides disagree on which is faster: the interval holds both."""
    halves = one.half_width(CONFIDENCE), other.half_width(CONFIDENCE)
    return replace(
        verdict,
        ratio=_exp(one.difference),
        ratio_low=_exp(min(one.difference - halves[0], other.difference - halves[1])),
        ratio_high=_exp(max(one.difference + halves[0], other.difference + halves[1])),
        set_aside=one.set_aside,
    )


def _decide(
    verdict: Verdict,
    contrast: Contrast | None,
    uneven: bool,
    level: float,
    alpha: float,
    tolerance: float,
    equivalence_alpha: float,
) -> Verdict:
    if contrast is None:
        fewest = min(verdict.baseline_processes, verdict.contender_processes)
        have = "no process" if fewest == 0 else "one process" if fewest == 1 else f"{fewest} processes"
        return replace(
            verdict, reason=f"{have} on one side does not show how processes differ; {FEWEST} are needed"
        )
    limit, size = math.log1p(tolerance), abs(contrast.difference)
    if level <= alpha and size > limit:
        kind: Kind = "regression" if contrast.difference > 0 else "improvement"
        return replace(verdict, kind=kind, processes_needed=0, reason="significant and beyond the tolerance")
    if size + contrast.half_width(1 - 2 * equivalence_alpha / contrast.ways) < limit and not uneven:
        return replace(verdict, kind="invariant", processes_needed=0, reason="equal within the tolerance")
    needed = _more(verdict, contrast, limit, alpha, equivalence_alpha)
    return replace(verdict, processes_needed=needed, reason=_open(level, alpha, size, limit, uneven))


def _open(level: float, alpha: float, size: float, limit: float, uneven: bool) -> str:
    if uneven:
        return "one side ran in another speed mode more often than the other, or may have"
    if size > limit:
        return "beyond the tolerance, but not significantly different"
    if level <= alpha:
        return "different, but whether by more than the tolerance is open"
    return "too noisy to call it different or the same"


def _medians(side: Side) -> tuple[list[float], float]:
    """Logs of the process medians, and the mean variance that they have from the scatter of samples alone."""
    logs: list[float] = []
    variances: list[float] = []
    for process in side:
        ordered = sorted(process)
        count = len(ordered)
        if not count:
            raise ValueError("a process without samples")
        # NaN compares false with everything, wherever sorting left it.
        if not (ordered[0] > 0 and ordered[-1] < math.inf and all(x == x for x in ordered)):
            raise ValueError("a sample is not a positive number of seconds")
        middle = count // 2
        median = ordered[middle] if count % 2 else (ordered[middle - 1] + ordered[middle]) / 2
        logs.append(math.log(median))
        # Normal theory: a median's standard error is 1.253 sigma / sqrt(n), sigma the quartiles' distance / 1.349.
        quartiles = ordered[(3 * count) // 4] - ordered[count // 4] if count > 3 else 0.0
        variances.append((0.929 * quartiles / median) ** 2 / count)
    return logs, math.fsum(variances) / len(variances) if variances else 0.0


def _exp(value: float) -> float:
    # Samples of one process that differ by orders of magnitude give an interval that no float holds.
    return math.exp(value) if value < 700 else math.inf


def _spread(values: Sequence[float]) -> float:
    if len(values) < 2:
        return math.nan
    centre = mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def _fisher(modes: Modes) -> float:
    """Fisher's exact test, two-sided: did one side run outside the main mode more often than the other?"""
    main = modes.main
    a, b = (sum(mode != main for mode in side) for side in (modes.baseline, modes.contender))
    n, m = len(modes.baseline), len(modes.contender)
    ways = [math.comb(n, k) * math.comb(m, a + b - k) for k in range(max(0, a + b - m), min(n, a + b) + 1)]
    seen = math.comb(n, a) * math.comb(m, b)
    return sum(way for way in ways if way <= seen) / sum(ways)


def _more(
    verdict: Verdict, contrast: Contrast, limit: float, alpha: float, equivalence_alpha: float
) -> int | None:
    """How many more processes a side decide it with a power of 0.8, if the difference is as it looks."""
    size, variance, ways = abs(contrast.difference), sum(contrast.variances), contrast.ways
    have = min(verdict.baseline_processes, verdict.contender_processes)
    kept = 1 - sum(contrast.set_aside) / (verdict.baseline_processes + verdict.contender_processes)

    def enough(processes: int) -> bool:
        used = max(processes * kept, 2.0)
        error, degrees = math.sqrt(variance / used), round(2 * used - 2)
        if size > limit:
            significant = size >= (student.quantile(degrees, 1 - alpha / ways / 2) + _POWER) * error
            return significant and size - limit >= _POWER * error
        return limit - size >= (student.quantile(degrees, 1 - equivalence_alpha / ways) + _POWER) * error

    if not enough(_MOST_PROCESSES):
        return None
    low, high = have, _MOST_PROCESSES  # not enough, enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return max(high - have, 1)
