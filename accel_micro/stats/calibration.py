"""What a machine can show: from many processes of one build, which therefore do not differ, to a calibration.

Every case ran in groups of four processes, A B B A (see `false_alarms`). Out come the rate of false alarms, the
tolerance that comparisons shall use, how much processes differ, drift, speed modes, and the smallest change that can
be shown in a given time. Pure: numpy and scipy only.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from accel_micro.stats import judging
from accel_micro.stats.false_alarms import (
    GROUP,
    FalseAlarms,
    Judge,
    false_alarms,
    groups_a_comparison,
    p_values,
    split,
)
from accel_micro.stats.modes import find_modes
from accel_micro.stats.sensitivity import detectable, differences, quantile
from accel_micro.stats.verdict import Verdict

FLOOR: Final = 0.02
"""The least tolerance: smaller differences matter to nobody."""

FEWEST_COMPARISONS: Final = 16
"""A/A comparisons without which nothing is said about the rate of false alarms."""

MINUTES: Final = (1, 5, 30)
_PERCENTILE: Final = 0.95
_FEWEST_FOR_DRIFT: Final = 8
_MOST_FOR_DRIFT: Final = 1500
"""Processes that enter the slope: all pairs of them are looked at."""


@dataclass(frozen=True)
class CaseRun:
    """The processes of one case, in the order in which they ran.

    Attributes:
        processes: for each its samples, seconds per call.
        times: when each began, seconds since any moment.
        seconds_a_process: how long one takes from start to end, seconds.
    """

    processes: tuple[tuple[float, ...], ...]
    times: tuple[float, ...]
    seconds_a_process: float


@dataclass(frozen=True)
class CaseFound:
    """What one case showed.

    Attributes:
        processes: how many. seconds: median of their medians, seconds per call.
        spread: standard deviation of the log medians of the processes in the main speed mode.
        others: processes in another speed mode. slowdown: median ratio of these to the main mode; 1 without.
        difference: |ratio − 1| which 95 % of A/A comparisons with ten processes a side stay below; NaN when there
            is no complete group.
        verdict: of all A against all B.
        halves_p: p-value of the first half against the second, which were not interleaved.
    """

    processes: int
    seconds: float
    seconds_a_process: float
    spread: float
    others: int
    slowdown: float
    difference: float
    verdict: Verdict
    halves_p: float


@dataclass(frozen=True)
class Drift:
    """How times moved over the run: the relative change an hour, with its 95 % interval.

    The slope is that of Theil and Sen over the log medians, each less the mean of its case (Sen 1968), times an hour.
    The interval takes processes for independent; where the speed wanders it is too narrow.
    """

    an_hour: float
    low: float
    high: float


@dataclass(frozen=True)
class Found:
    """What the processes of a device show.

    Attributes:
        cases: in the order given.
        alarms: the rate of false alarms. side: processes a side in its comparisons.
        tolerance: the larger of 2 % and of `difference`.
        difference: |ratio − 1| which 95 % of A/A comparisons with ten processes a side stay below, over all cases.
        worst_difference: that of the worst case.
        spread, worst_spread: median and largest of the cases.
        drift: None when there are too few processes.
        others: share of processes in another speed mode. slowdown: median ratio of these to the main mode.
        halves: cases whose first half differs significantly from the second.
        detectable: minutes → the smallest relative change of a typical case that is found four times in five; None
            when the time is too short for three processes a side.
        blessed: p-values can be trusted here. why_not: a sentence when they cannot, else empty.
    """

    cases: tuple[CaseFound, ...]
    alarms: FalseAlarms
    side: int
    tolerance: float
    difference: float
    worst_difference: float
    spread: float
    worst_spread: float
    drift: Drift | None
    others: float
    slowdown: float
    halves: int
    detectable: dict[int, float | None]
    blessed: bool
    why_not: str


def find(runs: Sequence[CaseRun], judge: Judge, alpha: float = 0.01) -> Found:
    """Calibrate from these cases.

    Args:
        judge: baseline and contender to a verdict at level `alpha`; the order of processes is that of turns.

    Raises:
        ValueError: there is no case, a case has no process, or a sample is no positive number.
    """
    if not runs or not all(run.processes for run in runs):
        raise ValueError("no process to calibrate from")
    draws = [differences(run.processes, judge, seed) for seed, run in enumerate(runs)]
    cases = tuple(_case(run, each, judge) for run, each in zip(runs, draws, strict=True))
    sizes = [run.processes for run in runs]
    alarms = false_alarms(p_values(sizes, judge), alpha)
    together = [ratio for each in draws for ratio in each]
    difference = quantile(together, _PERCENTILE)
    tolerance = max(FLOOR, difference) if together else FLOOR
    spreads = [case.spread for case in cases if math.isfinite(case.spread)]
    spread = statistics.median(spreads) if spreads else math.nan
    others = sum(case.others for case in cases) / sum(case.processes for case in cases)
    slow = [case.slowdown for case in cases if case.others]
    why_not = _why_not(alarms, [case.verdict for case in cases])
    seconds = statistics.median(case.seconds_a_process for case in cases)
    return Found(
        cases=cases,
        alarms=alarms,
        side=groups_a_comparison(sizes) * len(GROUP) // 2,
        tolerance=tolerance,
        difference=difference,
        worst_difference=max((case.difference for case in cases if case.difference >= 0), default=math.nan),
        spread=spread,
        worst_spread=max(spreads, default=math.nan),
        drift=_drift(runs),
        others=others,
        slowdown=statistics.median(slow) if slow else 1.0,
        halves=sum(case.halves_p < alpha for case in cases),
        detectable={
            minutes: detectable(_side(60 * minutes, seconds, others), spread, alpha, tolerance)
            for minutes in MINUTES
        },
        blessed=not why_not,
        why_not=why_not,
    )


def _side(seconds: float, seconds_a_process: float, others: float) -> int:
    """Processes a side of one case in that time, less those that will run in another speed mode."""
    return int((1 - others) * seconds / max(seconds_a_process, 1e-3) / 2)


def _case(run: CaseRun, draws: Sequence[float], judge: Judge) -> CaseFound:
    logs = _logs(run)
    main = _in_main_mode(logs)
    kept = [value for value, is_main in zip(logs, main, strict=True) if is_main]
    other = [value for value, is_main in zip(logs, main, strict=True) if not is_main]
    middle = len(run.processes) // 2
    return CaseFound(
        processes=len(logs),
        seconds=math.exp(statistics.median(logs)),
        seconds_a_process=run.seconds_a_process,
        spread=statistics.stdev(kept) if len(kept) > 1 else math.nan,
        others=len(other),
        slowdown=math.exp(statistics.median(other) - statistics.fmean(kept)) if other else 1.0,
        difference=quantile(draws, _PERCENTILE),
        verdict=judge(*split(run.processes)),
        halves_p=judging.judge(run.processes[:middle], run.processes[middle:]).p_value if middle else 1.0,
    )


def _logs(run: CaseRun) -> list[float]:
    return [math.log(statistics.median(process)) for process in run.processes]


def _in_main_mode(logs: Sequence[float]) -> list[bool]:
    """For each process whether it ran in the speed mode that most of its case did."""
    if len(logs) < 2:
        return [True] * len(logs)
    modes = find_modes(logs[::2], logs[1::2])
    labels = [0] * len(logs)
    labels[::2], labels[1::2] = modes.baseline, modes.contender
    return [label == modes.main for label in labels]


def _drift(runs: Sequence[CaseRun]) -> Drift | None:
    times: list[float] = []
    values: list[float] = []
    for run in runs:
        logs = _logs(run)
        main = _in_main_mode(logs)
        mean = statistics.fmean(value for value, is_main in zip(logs, main, strict=True) if is_main)
        mean_time = statistics.fmean(time for time, is_main in zip(run.times, main, strict=True) if is_main)
        for time, value, is_main in zip(run.times, logs, main, strict=True):
            if is_main:
                # Both less their means: cases need not have run over the same stretch of time.
                times.append(time - mean_time)
                values.append(value - mean)
    if len(values) < _FEWEST_FOR_DRIFT or max(times) == min(times):
        return None
    from scipy.stats import theilslopes

    step = math.ceil(len(values) / _MOST_FOR_DRIFT)
    slope, _, low, high = theilslopes(values[::step], times[::step])
    return Drift(*(3600 * float(each) for each in (slope, low, high)))


def _why_not(alarms: FalseAlarms, whole: Sequence[Verdict]) -> str:
    different = false_alarms([verdict.p_value for verdict in whole], alarms.alpha)
    promised = f"where {_percent(alarms.alpha)} is promised"
    if alarms.counted_low > alarms.alpha:
        return (
            f"{alarms.alarms} of {alarms.comparisons} comparisons of a build with itself found a difference, "
            f"{promised}"
        )
    if alarms.low > alarms.alpha:
        return (
            f"p-values are too small here: a comparison of a build with itself finds a difference in "
            f"{_percent(alarms.rate)} of cases, {_percent(alarms.low)} at least, {promised}"
        )
    if different.counted_low > different.alpha:
        return (
            f"all processes together, {different.alarms} of {different.comparisons} cases differ from themselves, "
            f"{promised}"
        )
    if alarms.comparisons < FEWEST_COMPARISONS:
        return (
            f"{alarms.comparisons} comparisons of a build with itself are too few to tell how often they find a "
            f"difference; {FEWEST_COMPARISONS} are needed"
        )
    return ""


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
