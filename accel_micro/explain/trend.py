"""Does a series fall? Mann and Kendall's test, over several series that each have a level of their own. Pure."""

import math
from collections import Counter
from collections.abc import Sequence
from statistics import median


def falling(series: Sequence[Sequence[float]]) -> float:
    """P-value, one-sided, that none of the series falls.

    S counts the pairs that rise less those that fall; its variance is corrected for ties (Mann, Econometrica 13, 1945;
    Kendall, Rank correlation methods). S and variances of the series are summed, as Hirsch and others do for seasons
    (Water Resour. Res. 18, 1982), and the normal approximation is corrected for continuity.
    1 where nothing can be told.
    """
    total = sum(_pairs(each) for each in series)
    variance = math.fsum(_variance(each) for each in series)
    if variance <= 0 or total >= 0:
        return 1.0
    return 0.5 * math.erfc(-(total + 1) / math.sqrt(variance) / math.sqrt(2.0))


def fall(series: Sequence[float]) -> float:
    """By which share the last third is below the first, the median of each."""
    third = max(1, len(series) // 3)
    first = median(series[:third])
    return 1.0 - median(series[-third:]) / first if first > 0 else 0.0


def _pairs(series: Sequence[float]) -> int:
    return sum(
        (later > earlier) - (later < earlier) for n, later in enumerate(series) for earlier in series[:n]
    )


def _variance(series: Sequence[float]) -> float:
    def term(n: int) -> int:
        return n * (n - 1) * (2 * n + 5)

    return (term(len(series)) - sum(term(count) for count in Counter(series).values())) / 18
