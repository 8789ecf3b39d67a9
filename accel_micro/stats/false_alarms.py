"""How often comparisons of a build with itself find a difference: the rate of false alarms of a machine.

The processes of a case ran in groups of four, A B B A, as a comparison runs them. Some groups in a row make one A/A
comparison; comparisons share no process, so they are independent of each other as far as the
machine lets them.

Counting alarms says little: of thirty comparisons at a level of 1 % a sound machine gives 0.3. So the p-values
are used whole. Each becomes the normal deviate z that has that two-sided p-value; where p-values are right, z has
variance 1, and the sum of n squares is chi-squared with n degrees of freedom. A variance above 1 means that
p-values are too small, and by how much: the rate at a level alpha is then 2 Φ(−z(alpha) / √variance).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from accel_micro.stats.verdict import Verdict

Processes = Sequence[Sequence[float]]
Judge = Callable[[Processes, Processes], Verdict]
"""Baseline and contender, each a sequence of processes, to a verdict: `judge` with its level and tolerance."""

GROUP: Final = "ABBA"
"""The order in which a comparison runs its processes. What drifts in a straight line cancels in each group."""

MOST_GROUPS: Final = 5
"""Ten processes a side, as a comparison has. What is in step with A B B A grows with the number of groups: such a
disturbance that gives 9 % alarms with ten a side gives 1.4 % with four (simulated)."""

FEWEST_GROUPS: Final = 2
"""Four processes a side: the fewest with which a t-test finds anything at a level of 1 % (its critical value is 3.7
standard errors at 6 degrees of freedom, and 9.9 at the 2 of a single group)."""

WANTED: Final = 24
"""Comparisons wanted: they are made smaller when there are not enough processes for that many large ones."""

CONFIDENCE: Final = 0.975
"""Of both intervals of the rate. A machine is refused when one of them lies above the level, and a sound one shall
be refused at most five times in a hundred: the two ways share them."""

_FOUND_WITH: Final = 0.8
_SMALLEST_P: Final = 1e-15


@dataclass(frozen=True)
class FalseAlarms:
    """The rate of false alarms at one level, by two ways.

    Attributes:
        alpha: the level.
        comparisons: independent A/A comparisons. alarms: those with a p-value below the level.
        counted_low, counted_high: interval of the rate by counting (Clopper and Pearson 1934).
        variance: of the normal deviates of the p-values; 1 where these are right, NaN without comparisons.
        rate: at the level, from that variance. low, high: its interval.
        findable: the smallest rate that would have been found to be above the level, four times in five.
    """

    alpha: float
    comparisons: int
    alarms: int
    counted_low: float
    counted_high: float
    variance: float
    rate: float
    low: float
    high: float
    findable: float

    @property
    def exceeds(self) -> bool:
        """The rate is above the level, by one of the two ways."""
        return self.low > self.alpha or self.counted_low > self.alpha


def split(processes: Processes) -> tuple[list[Sequence[float]], list[Sequence[float]]]:
    """A and B of processes that ran A B B A A B B A …; those of an incomplete group are left out.

    >>> split([[1.0], [2.0], [3.0], [4.0], [5.0]])
    ([[1.0], [4.0]], [[2.0], [3.0]])
    """
    whole = len(processes) - len(processes) % len(GROUP)
    sides: dict[str, list[Sequence[float]]] = {"A": [], "B": []}
    for index in range(whole):
        sides[GROUP[index % len(GROUP)]].append(processes[index])
    return sides["A"], sides["B"]


def groups(processes: Processes) -> list[Processes]:
    """The complete groups of four, in order."""
    size = len(GROUP)
    return [processes[start : start + size] for start in range(0, len(processes) - size + 1, size)]


def groups_a_comparison(cases: Sequence[Processes]) -> int:
    """How many groups a comparison shall have, so that these cases give `WANTED` of them: from 2 to 5."""
    counts = [len(processes) // len(GROUP) for processes in cases]
    for size in range(MOST_GROUPS, FEWEST_GROUPS, -1):
        if sum(count // size for count in counts) >= WANTED:
            return size
    return FEWEST_GROUPS


def comparisons(processes: Processes, size: int) -> list[Processes]:
    """The processes of each A/A comparison of a case: disjoint runs of `size` complete groups, in order."""
    step = size * len(GROUP)
    return [processes[start : start + step] for start in range(0, len(processes) - step + 1, step)]


def p_values(cases: Sequence[Processes], judge: Judge) -> list[float]:
    """The p-values of all A/A comparisons, case by case."""
    size = groups_a_comparison(cases)
    return [judge(*split(run)).p_value for processes in cases for run in comparisons(processes, size)]


def false_alarms(values: Sequence[float], alpha: float) -> FalseAlarms:
    """The rate of false alarms at level `alpha` that these p-values of A/A comparisons show.

    Raises:
        ValueError: `alpha` is not in (0, 1), or a p-value is not in [0, 1].
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, not {alpha!r}")
    for value in values:
        if not 0 <= value <= 1:
            raise ValueError(f"a p-value is not in [0, 1]: {value!r}")
    count, alarms = len(values), sum(value < alpha for value in values)
    counted = _clopper_pearson(alarms, count)
    if not count:
        return FalseAlarms(alpha, 0, 0, *counted, math.nan, math.nan, 0.0, 1.0, 1.0)
    from scipy.special import chdtri

    total = math.fsum(_deviate(value) ** 2 for value in values)
    tail = (1 - CONFIDENCE) / 2
    upper, lower = float(chdtri(count, tail)), float(chdtri(count, 1 - tail))  # quantiles of chi-squared
    return FalseAlarms(
        alpha=alpha,
        comparisons=count,
        alarms=alarms,
        counted_low=counted[0],
        counted_high=counted[1],
        variance=total / count,
        rate=_rate(alpha, total / count),
        low=_rate(alpha, total / upper),
        high=_rate(alpha, total / lower),
        findable=_rate(alpha, upper / float(chdtri(count, _FOUND_WITH))),
    )


def _deviate(p: float) -> float:
    from scipy.special import ndtri

    return float(-ndtri(max(p, _SMALLEST_P) / 2))


def _rate(alpha: float, variance: float) -> float:
    """How often a deviate with that variance lies beyond the two-sided critical value of `alpha`."""
    from scipy.special import ndtr

    return float(2 * ndtr(-_deviate(alpha) / math.sqrt(variance))) if variance > 0 else 0.0


def _clopper_pearson(alarms: int, count: int) -> tuple[float, float]:
    from scipy.special import betaincinv

    tail = (1 - CONFIDENCE) / 2
    low = float(betaincinv(alarms, count - alarms + 1, tail)) if alarms else 0.0
    high = float(betaincinv(alarms + 1, count - alarms, 1 - tail)) if alarms < count else 1.0
    return low, high
