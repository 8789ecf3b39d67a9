"""Processes of one case in, an estimate out: the time of a call, and an interval that covers it.

Samples inside a process are not independent of each other, and processes differ by more than their samples
do. So the unit is the process, by the log of its median (times are positive, and errors multiply). One or two
processes cannot tell how much processes differ; their interval is that of the median within the process, and
says so.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from accel_micro.stats import student

FEWEST_PROCESSES: Final = 3
"""Processes from which on an interval also covers how processes differ."""


@dataclass(frozen=True)
class Estimate:
    """The time of one call by one clock, with its interval.

    Attributes:
        seconds: geometric mean of the process medians, seconds per call.
        low, high: the interval, seconds per call; `low <= seconds <= high`.
        processes: processes it rests on. samples: samples of all of them together.
        within_only: the interval covers the median within a process, and not how processes differ.
        spread: standard deviation of the log process medians, so about the relative one; with `within_only`
            that of the log samples in a process.
        confidence: how often such an interval covers; with few samples less than was asked for, 0 for a
            single one.
        order: with `within_only` the order statistics that are the ends, counted from 1; else None.
    """

    seconds: float
    low: float
    high: float
    processes: int
    samples: int
    within_only: bool
    spread: float
    confidence: float
    order: tuple[int, int] | None = None

    @property
    def half_width(self) -> float:
        """The larger half of the interval, seconds."""
        return max(self.high - self.seconds, self.seconds - self.low)


def estimate(processes: Sequence[Sequence[float]], confidence: float = 0.95) -> Estimate:
    """The estimate of a trial.

    With three processes or more: Student's t interval of the mean of the log process medians, exponentiated.
    With fewer: the distribution-free interval of a median between two order statistics (see `median_order`);
    two processes give the hull of theirs, which covers the midpoint of both medians at least as often,
    because its upper end is not below that of the slower process, nor its lower end above that of the faster.

    Args:
        processes: for each process its samples, seconds per call.
        confidence: how often the interval shall cover, in (0, 1).

    Raises:
        ValueError: there is no process, a process has no sample, a sample is not a positive finite number, or
            `confidence` is not in (0, 1).

    >>> e = estimate([[2e-6, 3e-6, 4e-6, 5e-6, 6e-6, 7e-6]])
    >>> e.seconds, e.low, e.high, e.order, e.within_only
    (4.5e-06, 2e-06, 7e-06, (1, 6), True)
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, not {confidence!r}")
    _validate(processes)
    samples = sum(map(len, processes))
    medians = [statistics.median(process) for process in processes]
    seconds = _geometric_mean(medians)
    if len(processes) >= FEWEST_PROCESSES:
        spread = math.sqrt(_variance(_logs(medians)))
        half = student.margin(len(medians) - 1, confidence) * spread / math.sqrt(len(medians))
        return Estimate(
            seconds=seconds,
            low=seconds * math.exp(-half),
            high=seconds * math.exp(half),
            processes=len(processes),
            samples=samples,
            within_only=False,
            spread=spread,
            confidence=confidence,
        )
    order, covered = median_order(min(map(len, processes)), confidence)
    ends = [_order_interval(process, confidence) for process in processes]
    return Estimate(
        seconds=seconds,
        low=min(seconds, *(low for low, _ in ends)),
        high=max(seconds, *(high for _, high in ends)),
        processes=len(processes),
        samples=samples,
        within_only=True,
        spread=_within_spread(processes),
        confidence=covered,
        order=order,
    )


@lru_cache
def median_order(samples: int, confidence: float = 0.95) -> tuple[tuple[int, int], float]:
    """The order statistics whose interval covers the median of any continuous distribution, and how often it
    does.

    The number of samples below the median is binomial with p = 1/2, so the j-th to the (n+1-j)-th cover it
    with probability 1 - 2 P(B(n, 1/2) < j), whatever the distribution (Thompson 1936). The narrowest pair
    that reaches `confidence` is taken; when none does (n < 6 at 95 %) the smallest and the largest, with what
    they cover.

    >>> median_order(20)  # doctest: +ELLIPSIS
    ((6, 15), 0.958610...)
    >>> median_order(1)
    ((1, 1), 0.0)
    """
    below, rank, covered = 1, 1, 1 - 2 * 0.5**samples
    for candidate in range(2, (samples + 1) // 2 + 1):
        below += math.comb(samples, candidate - 1)
        reached = 1 - 2 * below / 2**samples
        if reached < confidence:
            break
        rank, covered = candidate, reached
    return (rank, samples + 1 - rank), covered


def _validate(processes: Sequence[Sequence[float]]) -> None:
    if not processes:
        raise ValueError("no process to estimate from")
    for process in processes:
        if not process:
            raise ValueError("a process without samples")
        for sample in process:
            if not (math.isfinite(sample) and sample > 0):
                raise ValueError(f"a sample is not a positive number of seconds: {sample!r}")


def _logs(values: Sequence[float]) -> list[float]:
    # Relative to the first, so that equal values give exactly zero, and their mean exactly the value.
    first = math.log(values[0])
    return [math.log(value) - first for value in values]


def _variance(values: Sequence[float]) -> float:
    # `statistics.variance` reckons in fractions: an estimate took 250 µs by it, and takes 12 so. A history of
    # 500 cases on 365 builds is 182,500 estimates.
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _geometric_mean(values: Sequence[float]) -> float:
    return values[0] * math.exp(statistics.fmean(_logs(values)))


def _order_interval(process: Sequence[float], confidence: float) -> tuple[float, float]:
    (lower, upper), _ = median_order(len(process), confidence)
    ordered = sorted(process)
    return ordered[lower - 1], ordered[upper - 1]


def _within_spread(processes: Sequence[Sequence[float]]) -> float:
    variances = [_variance(_logs(process)) for process in processes if len(process) > 1]
    return math.sqrt(statistics.fmean(variances)) if variances else 0.0
