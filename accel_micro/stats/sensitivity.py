"""What a machine's comparisons can show: how far A/A comparisons stray, and the smallest change that is found."""

import math
import random
import statistics
from collections.abc import Sequence
from typing import Final

from accel_micro.stats.false_alarms import GROUP, MOST_GROUPS, Judge, groups

POWER: Final = 0.8
"""How often the smallest detectable change is found."""

_DRAWS: Final = 250
_POWER_DEVIATE: Final = statistics.NormalDist().inv_cdf(POWER)


def differences(processes: Sequence[Sequence[float]], judge: Judge, seed: int = 0) -> list[float]:
    """|ratio − 1|, of ratio and inverse the larger, of many A/A comparisons with ten processes a side.

    Five groups are drawn with replacement from those that ran, and in each A and B are swapped or not by chance: the
    build is the same, so both are as likely. A group is drawn whole, so what disturbed neighbours disturbs them here
    too, and what drifted cancels as it does in a comparison.
    """
    whole = groups(processes)
    if not whole:
        return []
    chance = random.Random(seed)
    found = []
    for _ in range(_DRAWS):
        sides: tuple[list[Sequence[float]], list[Sequence[float]]] = ([], [])
        for group in chance.choices(whole, k=MOST_GROUPS):
            swapped = chance.random() < 0.5
            for label, process in zip(GROUP, group, strict=True):
                sides[(label == "B") != swapped].append(process)
        ratio = judge(*sides).ratio
        found.append(max(ratio, 1 / ratio) - 1)
    return found


def detectable(side: int, spread: float, alpha: float, tolerance: float) -> float | None:
    """The smallest relative change that is called a regression with a power of 0.8.

    It must be significant: Welch's t with equal variances, so the noncentral t with 2·side − 2 degrees of freedom
    (its other tail left out). And the estimate must lie beyond the tolerance. The larger of both. With few processes
    the judge's own degrees of freedom are fewer: with five a side the power is 0.73 (simulated).

    Args:
        side: processes a side. spread: standard deviation of the log process medians.

    Returns:
        None with fewer than three processes a side, or without a spread.
    """
    if side < 3 or not math.isfinite(spread):
        return None
    from scipy.special import nctdtrinc, stdtrit

    degrees = 2 * side - 2
    error = spread * math.sqrt(2 / side)
    critical = float(stdtrit(degrees, 1 - alpha / 2))
    noncentrality = float(nctdtrinc(degrees, 1 - POWER, critical))
    beyond = math.log1p(tolerance) + _POWER_DEVIATE * error
    return math.expm1(max(noncentrality * error, beyond))


def quantile(values: Sequence[float], share: float) -> float:
    """The value that at least that share of the values does not exceed; NaN of none."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]
