"""Differences of groups with their intervals, and which of them are more than noise."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, variance
from typing import Final

from accel_micro.explain.aligning import Group, noise, values
from accel_micro.explain.capture import Capture
from accel_micro.explain.explanation import ALPHA, CONFIDENCE, TOLERANCE, Contribution, Interval
from accel_micro.stats import student
from accel_micro.stats.judging import FEWEST, q_values

_UNSEEN: Final = 1e-15
"""Seconds below what any clock shows, or as a share what a number of 64 bits does not tell from none."""

_MOST_DEGREES: Final = 1e4
"""Of freedom; more make no difference."""


def serial(
    sides: tuple[Capture, Capture], groups: Sequence[Group], totals: Sequence[Sequence[float]]
) -> list[Contribution]:
    """Each group's own difference, and what the groups leave."""
    of_groups = [[values(group, i, side) for i, side in enumerate(sides)] for group in groups]
    least = least_of(totals)
    found = [
        contribution(group, value, [noise(group, i, side) for i, side in enumerate(sides)], least=least)
        for group, value in zip(groups, of_groups, strict=True)
    ]
    left = [
        [total - math.fsum(value[i][n] for value in of_groups) for n, total in enumerate(totals[i])]
        for i in (0, 1)
    ]
    return [*found, contribution(Group("unexplained", "unexplained"), left, [0.0, 0.0])]


def least_of(totals: Sequence[Sequence[float]]) -> float:
    """Seconds that are too few to matter: a contribution is significant when it is larger."""
    return TOLERANCE * fmean(totals[0])


def contribution(
    group: Group,
    value: Sequence[Sequence[float]],
    scatter: Sequence[float],
    difference: float | None = None,
    least: float | None = None,
) -> Contribution:
    """A difference of means with Welch's interval. `q_value` holds the p-value as yet.

    As with whole steps, fewer than three processes on a side do not show how processes differ: no interval, p is 1.
    With `least`, seconds that are too few to matter, it is that of the ratio.
    """
    means = [fmean(value[0]), fmean(value[1])]
    middle = means[0] - means[1] if difference is None else difference
    counts = [len(value[0]), len(value[1])]
    if min(counts) < FEWEST:
        return Contribution(group, means[0], means[1], Interval(middle, -math.inf, math.inf), 1.0)
    # A few processes can agree by luck, but not better than the scatter of their steps lets them.
    parts = [
        max(variance(each), noise) / count for each, noise, count in zip(value, scatter, counts, strict=True)
    ]
    found = with_error(
        Contribution(group, means[0], means[1], Interval(middle, middle, middle), 1.0), parts, counts
    )
    return found if least is None else replace(found, q_value=of_ratio(found, value, scatter, least))


def of_ratio(
    found: Contribution,
    value: Sequence[Sequence[float]],
    scatter: Sequence[float],
    least: float,
    shared: float = 0.0,
) -> float:
    """The p-value of a group's ratio, by the logarithms of its seconds, those below `least` taken as that.

    A machine's speed multiplies times. With four processes a side of which two are 1.8 times as slow, an op eight times
    slower is significant by logarithms and not by seconds (ten of ten simulated pairs, and none). Nothing is called
    more certain than its interval: where that holds 0, or lies on the other side of it, the larger p-value counts.

    Args:
        found: with its interval, and as `q_value` the p-value of its seconds.
        value: of both sides the seconds of each process. scatter: of both sides a variance that these have at least.
        shared: standard error, relative, that all processes of a side have in common.
    """
    own = [[max(each, least) for each in side] for side in value]
    logarithms = [[math.log(each) for each in side] for side in own]
    parts = [
        max(variance(logs), noise / fmean(side) ** 2) / len(side)
        for logs, side, noise in zip(logarithms, own, scatter, strict=True)
    ]
    middle = fmean(logarithms[0]) - fmean(logarithms[1])
    p_value, _ = _welch(middle, parts, [len(side) for side in value], 2 * shared**2)
    agrees = min(found.seconds.low * middle, found.seconds.high * middle) > 0
    return p_value if agrees else max(p_value, found.q_value or 0.0)


def with_error(of: Contribution, parts: Sequence[float], counts: Sequence[int]) -> Contribution:
    """With its interval and p-value, from the variances of the means of both sides."""
    middle = of.seconds.value
    p_value, half = _welch(middle, parts, counts)
    return replace(of, seconds=Interval(middle, middle - half, middle + half), q_value=p_value)


def _welch(
    difference: float, parts: Sequence[float], counts: Sequence[int], known: float = 0.0
) -> tuple[float, float]:
    """The p-value of a difference of two means with these variances, and the half of its interval.

    Args:
        known: a further variance of the difference, which was not found from the values.
    """
    error = math.sqrt(sum(parts) + known)
    if error < _UNSEEN:
        return (1.0 if abs(difference) < _UNSEEN else 0.0), 0.0
    below = math.fsum(part**2 / (count - 1) for part, count in zip(parts, counts, strict=True) if part)
    degrees = min(_MOST_DEGREES, error**4 / below) if below else _MOST_DEGREES
    return student.p_value(degrees, difference / error), student.margin(round(degrees, 3), CONFIDENCE) * error


def judged(
    found: Sequence[Contribution], others: Sequence[Contribution], totals: Sequence[Sequence[float]]
) -> list[Contribution]:
    """With q-values and factors.

    Two families are tested: the groups, and the modules of which some became groups since their framework's time
    differs. There all that were looked at count (`others`).
    """
    means = [fmean(side) for side in totals]
    mean = _logarithmic_mean(*means)
    least = least_of(totals)
    chosen = {(each.group.phase, each.group.rows) for each in others}
    split = [
        n
        for n, each in enumerate(found)
        if (each.group.phase, each.group.rows) in chosen and each.group.kind == "framework"
    ]
    whole = [n for n in range(len(found)) if n not in split]
    adjusted = _adjusted(found, whole, []) | _adjusted(found, split, others)
    return [
        replace(
            each,
            factor=math.exp(each.seconds.value / mean),
            q_value=adjusted.get(n),
            significant=adjusted.get(n, 1.0) <= ALPHA and abs(each.seconds.value) > least,
        )
        for n, each in enumerate(found)
    ]


def _adjusted(
    found: Sequence[Contribution], numbers: Sequence[int], others: Sequence[Contribution]
) -> dict[int, float]:
    """Q-values of some contributions. All of `others` were tested too, these among them."""
    p_values = {n: p for n in numbers if (p := found[n].q_value) is not None}
    further = sorted(each.q_value for each in others if each.q_value is not None)[len(p_values) :]
    adjusted = q_values([*p_values.values(), *further])
    return dict(zip(p_values, adjusted, strict=False))


def _logarithmic_mean(one: float, other: float) -> float:
    """(one − other) ÷ ln(one ÷ other), and the number itself where both are the same."""
    if abs(one / other - 1) < 1e-9:
        return one
    return (one - other) / math.log(one / other)
