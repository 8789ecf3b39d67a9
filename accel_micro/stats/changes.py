"""Change points: where over a series of builds the time of a case stepped to another level.

What is found is proposed, not proven: sessions that differ look like builds that differ. Interleaved processes of
the two builds decide. The method and what it was chosen over, with figures, is in docs/history.md.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from accel_micro.stats import student
from accel_micro.stats.levels import Costs, Floats, Noise, grid

FEWEST: Final = 8
"""Builds below which nothing is proposed: what is noise cannot be told yet."""

CORRELATIONS: Final = (0.0, 0.3, 0.5, 0.7, 0.85)
"""Hypotheses about how much a build's value tells of the next one's, apart from the level."""

# Figures chosen by simulation: `python -m tests.stats.change_table`.
_PENALTY: Final = 2.0  # times ln(builds): cost of a jump
_STRAY: Final = 0.6  # of the penalty: the most a stray value costs, so one alone is never a change
_STRAY_LEAST: Final = 0.7  # the least, where half of the values stray: ln 2
_BENEFIT_OF_DOUBT: Final = 2.0  # a stronger correlation is believed as long as it is this little less likely
_FLOOR_DEVIATIONS: Final = 1.5
_SLOPE_SHARE: Final = 0.6  # of the penalty: what a step must gain beyond a slope
_SLOPE_MARGIN: Final = 2.0  # by which a step must be likelier than a slope, nearby
_WINDOW: Final = 12  # builds on each side that are nearby
_NOISE_SHARE: Final = 0.25  # of the floor: noise is never taken to be less
_NORMAL: Final = 0.6745  # median of |standard normal|
_PLACES: Final = 0.95  # of the likelihood, that the range of places of a change holds


@dataclass(frozen=True)
class Point:
    """One build of a series.

    Attributes:
        processes: median of each process, seconds per call; at least one.
    """

    processes: tuple[float, ...]


@dataclass(frozen=True)
class Segment:
    """Builds in a row that share a level.

    Attributes:
        first, end: indices into the series, `end` not included.
        seconds: geometric mean of the builds that did not stray, seconds per call.
        strayed: indices of builds that lie apart from the level.
    """

    first: int
    end: int
    seconds: float
    strayed: tuple[int, ...] = ()

    @property
    def builds(self) -> int:
        """How many builds it rests on."""
        return self.end - self.first - len(self.strayed)


@dataclass(frozen=True)
class Change:
    """A step that is proposed.

    Attributes:
        index: of the first build after the step.
        earliest, latest: indices between which that build lies with a likelihood of 95 %.
        ratio: after ÷ before, of seconds per call. ratio_low, ratio_high: its 95 % interval, from the two
            segments, given the place.
        before, after: the segments on both sides, up to the neighbouring steps.
        score: log-likelihood that the step gains, in units of what is asked for; at least 1.
        noise: standard deviation of a build's value about its level, relative.
        correlation: of the noise of a build with that of the next, as assumed.
    """

    index: int
    earliest: int
    latest: int
    ratio: float
    ratio_low: float
    ratio_high: float
    before: Segment
    after: Segment
    score: float
    noise: float
    correlation: float


def find_changes(series: Sequence[Point], *, floor: float = 0.02) -> list[Change]:
    """The steps of a series, in its order.

    Args:
        series: measured builds from old to new; leave out those without a value.
        floor: smallest relative step worth proposing, the machine's tolerance; where the noise of builds is
            more than half of that, twice the noise is asked for.

    Raises:
        ValueError: a time is not a positive finite number, a build has none, or the floor is not positive.
    """
    if not (math.isfinite(floor) and floor > 0):
        raise ValueError(f"the floor must be positive, not {floor!r}")
    values = _values(series)
    if len(values) < FEWEST:
        return []
    return _Search(values, _weights(series, values), math.log1p(floor)).changes()


class _Search:
    """One series: `values` are logs; `weights` each value's standard deviation relative to a typical one's."""

    def __init__(self, values: Floats, weights: Floats, floor: float) -> None:
        self.values, self.weights, self.least = values, weights, floor
        self.penalty = _PENALTY * math.log(len(values))

    def changes(self) -> list[Change]:
        stray = _STRAY * self.penalty
        self._fit(stray, np.ones(len(self.values), dtype=bool))
        strayed = self.strayed
        if strayed.any():
            habit = max(int(strayed.sum()) - 1, 1e-9) / len(self.values)  # one alone is no habit
            self._fit(min(stray, max(_STRAY_LEAST, -math.log(habit))), ~strayed)
        self._drop_the_doubtful()
        return [self._change(at) for at in range(len(self.jumps))]

    def _fit(self, stray: float, usable: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> None:
        """The cheapest path under the strongest correlation that is likely, given which values to trust."""
        scaled = self.values[usable]
        pairs = np.hypot(self.weights[usable][1:], self.weights[usable][:-1])
        apart = float(np.median(np.abs(np.diff(scaled)) / pairs)) / _NORMAL if len(scaled) > 2 else 0.0
        noises = []
        for correlation in CORRELATIONS:
            # What neighbours differ by is the same under each hypothesis; how far values wander is not.
            deviation = max(apart / math.sqrt(1 - correlation), _NOISE_SHARE * self.least)
            noises.append(Noise(self.weights * deviation, correlation, stray))
        typical = float(np.median(noises[0].deviations))
        levels = grid(self.values, typical)
        floors = [max(self.least, _FLOOR_DEVIATIONS * float(np.median(n.deviations))) for n in noises]
        costs = Costs(self.values, levels, noises)
        totals, paths = costs.path(self.penalty, floors)
        best = float(totals.min())
        chosen = max(h for h in range(len(noises)) if totals[h] <= best + _BENEFIT_OF_DOUBT)
        self.costs, self.noise, self.jumps = (
            Costs(self.values, levels, [noises[chosen]]),
            noises[chosen],
            paths[chosen],
        )
        self.floor = floors[chosen]

    @property
    def ends(self) -> list[int]:
        return [0, *self.jumps, len(self.values)]

    @property
    def strayed(self) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        fitted = np.empty(len(self.values))
        for first, end in zip(self.ends, self.ends[1:], strict=False):
            fitted[first:end] = self.costs.levels[self.costs.segment(first, end)[1]]
        offsets = (self.values - fitted) / self.noise.deviations
        result: np.ndarray[tuple[int], np.dtype[np.bool_]] = 0.5 * offsets**2 >= self.noise.stray
        return result

    def _drop_the_doubtful(self) -> None:
        """Drop steps one by one, the weakest first, that gain too little, are too small, or are a slope."""
        while self.jumps:
            scores = [self._score(at) for at in range(len(self.jumps))]
            weakest = min(range(len(scores)), key=scores.__getitem__)
            if scores[weakest] >= 1:
                return
            del self.jumps[weakest]

    def _score(self, at: int) -> float:
        first, jump, end = self.ends[at : at + 3]
        before, _ = self.costs.segment(first, jump)
        after, _ = self.costs.segment(jump, end)
        merged, _ = self.costs.segment(first, end)
        step = abs(self._level(jump, end)[0] - self._level(first, jump)[0])
        if step < self.floor:
            return step / self.floor - 1
        gains = [merged - before - after]
        # A drift is not a step: a step must show beyond a slope of all, and better than one nearby.
        gains.append((self._sloped(first, end) - self._sloped(first, end, jump)) / _SLOPE_SHARE)
        near = max(first, jump - _WINDOW), min(end, jump + _WINDOW)
        stepped = self.costs.segment(near[0], jump)[0] + self.costs.segment(jump, near[1])[0]
        gains.append(self._sloped(*near) - stepped + self.penalty - _SLOPE_MARGIN)
        return min(gains) / self.penalty

    def _sloped(self, first: int, end: int, jump: int | None = None) -> float:
        """Cost of the values from `first` to `end` on a line, with a step at `jump` if given.

        The line is the least squares' through the values that did not stray.
        """
        values, keep = self.values[first:end], ~self.strayed[first:end]
        place = np.linspace(-1, 1, end - first)
        columns = [np.ones(end - first), place]
        if jump is not None:
            columns.append((np.arange(first, end) >= jump).astype(float))
        design = np.column_stack(columns)
        weights = 1 / self.weights[first:end][keep]
        solved = np.linalg.lstsq(design[keep] * weights[:, None], values[keep] * weights, rcond=None)[0]
        noise = Noise(self.noise.deviations[first:end], self.noise.correlation, self.noise.stray)
        return Costs(values - design @ solved, np.zeros(1), [noise]).segment(0, end - first)[0]

    def _level(self, first: int, end: int) -> tuple[float, float]:
        """Mean of what did not stray in a segment, and its squared standard error."""
        keep = ~self.strayed[first:end]
        if not keep.any():
            keep[:] = True
        precision = self.noise.deviations[first:end][keep] ** -2.0
        mean = float(np.average(self.values[first:end][keep], weights=precision))
        inflated = (1 + self.noise.correlation) / (1 - self.noise.correlation)
        return mean, inflated / float(precision.sum())

    def _change(self, at: int) -> Change:
        first, jump, end = self.ends[at : at + 3]
        (before, error_before), (after, error_after) = self._level(first, jump), self._level(jump, end)
        half = student.margin(end - first - 2, 0.95) * math.sqrt(error_before + error_after)
        cells = (self.costs.segment(first, jump)[1], self.costs.segment(jump, end)[1])
        earliest, latest = _places(self.costs.split(first, end, cells), first + 1, jump)
        return Change(
            index=jump,
            earliest=earliest,
            latest=latest,
            ratio=math.exp(after - before),
            ratio_low=math.exp(after - before - half),
            ratio_high=math.exp(after - before + half),
            before=self._segment(first, jump, before),
            after=self._segment(jump, end, after),
            score=self._score(at),
            noise=float(np.median(self.noise.deviations)),
            correlation=self.noise.correlation,
        )

    def _segment(self, first: int, end: int, level: float) -> Segment:
        strayed = tuple(int(i) for i in np.flatnonzero(self.strayed[first:end]) + first)
        return Segment(first, end, math.exp(level), strayed)


def _places(costs: Floats, first: int, jump: int) -> tuple[int, int]:
    """The narrowest range around `jump` that holds most of the likelihood; costs[0] is that of index `first`."""
    likelihood = np.exp(costs.min() - costs)
    likelihood /= likelihood.sum()
    low = high = jump - first
    while likelihood[low : high + 1].sum() < _PLACES:
        left = likelihood[low - 1] if low > 0 else -1.0
        right = likelihood[high + 1] if high + 1 < len(costs) else -1.0
        if left < 0 and right < 0:
            break
        if left >= right:
            low -= 1
        else:
            high += 1
    return low + first, high + first


def _values(series: Sequence[Point]) -> Floats:
    values = []
    for point in series:
        if not point.processes:
            raise ValueError("a build without a process")
        for seconds in point.processes:
            if not (math.isfinite(seconds) and seconds > 0):
                raise ValueError(f"a time is not a positive number of seconds: {seconds!r}")
        values.append(statistics.median(map(math.log, point.processes)))  # a tenth of numpy's time
    return np.array(values)


def _weights(series: Sequence[Point], values: Floats) -> Floats:
    """Standard deviation of each value relative to a typical one's: sessions differ, and processes in them do.

    The variance of a build is that of its session plus that of processes over their number. The latter is told by
    builds of several processes, the former by what neighbours differ by beyond it.
    """
    counts = np.array([len(point.processes) for point in series])
    if (counts == counts[0]).all():
        return np.ones(len(series))
    spreads = [float(np.var(np.log(p.processes), ddof=1)) for p in series if len(p.processes) > 1]
    process = float(np.median(spreads)) if spreads else 0.0
    apart = np.diff(values) ** 2
    inverse = process / counts
    session = max(
        0.0, (float(np.median(apart)) / _NORMAL**2 - float(np.median(inverse[1:] + inverse[:-1]))) / 2
    )
    variances = session + inverse
    middle = float(np.median(variances))
    if middle <= 0:
        return np.ones(len(series))
    result: Floats = np.clip(np.sqrt(variances / middle), 0.3, 3.0)
    return result
