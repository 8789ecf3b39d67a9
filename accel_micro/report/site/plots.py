"""Where the marks of the pages' plots go. Templates draw them as SVG that stretches with the page.

The plotted area is stretched to whatever width there is (its strokes are not), so x is in thousandths of the width.
Text is placed outside of it, in percent of the width and pixels of the height, and keeps its size.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from accel_micro.builds import Build
from accel_micro.report import units
from accel_micro.report.site.gather import Point
from accel_micro.report.site.text import change, day
from accel_micro.stats.estimate import Estimate
from accel_micro.stats.verdict import Verdict

WIDTH: Final = 1000.0
HEIGHT: Final = 230.0
_EDGE: Final = 16.0  # of the width, left and right of the outermost builds
_LEFT: Final = 62.0  # room for the labels of the axis on a narrow screen
_TOP, _BOTTOM = 14.0, 24.0  # the lower has the marks of builds without a time
_BEYOND: Final = 4.0
LEAST_RANGE: Final = 0.02
"""A history shows at least this relative range, or noise of a thousandth would look like a mountain range."""

_X_LABELS: Final = 4
_SPARK_BUILDS: Final = 60
SPARK_WIDTH, SPARK_HEIGHT = 120.0, 26.0


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: where, its label, and how that is aligned (`start`, `middle`, `end`)."""

    at: float
    text: str
    anchor: str = "middle"


@dataclass(frozen=True)
class Mark:
    """Something at a build, in percent of the width: a sign, and the words for it."""

    at: float
    sign: str
    text: str


@dataclass(frozen=True)
class Step:
    """A proposed change: where it is, in thousandths, the range it may lie in, and its size in words."""

    at: float
    low: float
    high: float
    sign: str
    text: str


@dataclass(frozen=True)
class HistoryPlot:
    """One clock of one case over builds.

    `intervals`, `processes`, `line` and the marks of each channel are path data. `at` is the place of each build, in
    percent of the width.
    """

    height: float
    line: str
    intervals: str
    processes: str
    nightly: str
    release: str
    local: str
    y_ticks: tuple[Tick, ...]
    x_ticks: tuple[Tick, ...]
    without: tuple[Mark, ...]
    at: Mapping[str, float]


def places(builds: Sequence[Build]) -> dict[str, float]:
    """Id of a build → where it is, in thousandths of the width. Evenly spaced: what changes, changes between builds."""
    step = (WIDTH - _LEFT - _EDGE) / max(1, len(builds) - 1)
    if len(builds) == 1:
        return {builds[0].id: (WIDTH + _LEFT - _EDGE) / 2}
    return {build.id: round(_LEFT + number * step, 1) for number, build in enumerate(builds)}


def history_plot(
    builds: Sequence[Build], points: Mapping[str, Point], without: Mapping[str, tuple[str, str]]
) -> HistoryPlot:
    """The plot of one clock.

    Args:
        builds: those measured in this place, from old to new. points: by id, at least one.
        without: id of a build without a time → sign and words.
    """
    x = places(builds)
    y = _Linear([value for point in points.values() for value in _span(point)])
    spread = min(6.0, 0.3 * (WIDTH - _LEFT - _EDGE) / max(1, len(builds)))
    intervals, processes, marks = [], [], {"nightly": "", "release": "", "local": ""}
    lines: dict[str, list[str]] = {}
    for build in builds:
        point = points.get(build.id)
        if point is None:
            continue
        at, e = x[build.id], point.estimate
        intervals.append(f"M{at:g} {y.place(e.low):g}V{y.place(e.high):g}")
        for number, median in enumerate(point.medians):
            shift = spread * (number + 0.5 - len(point.medians) / 2) / max(1, len(point.medians))
            processes.append(f"M{at + shift:.1f} {y.place(median):g}h0")
        marks[build.channel] += f"M{at:g} {y.place(e.seconds):g}h0"
        lines.setdefault(build.channel, []).append(f"{at:g} {y.place(e.seconds):g}")
    return HistoryPlot(
        height=HEIGHT,
        line="".join(f"M{'L'.join(line)}" for line in lines.values() if len(line) > 1),
        intervals="".join(intervals),
        processes="".join(processes),
        **marks,
        y_ticks=y.ticks(),
        x_ticks=_x_ticks(builds, x),
        without=tuple(
            Mark(round(x[build.id] / 10, 2), *without[build.id]) for build in builds if build.id in without
        ),
        at={build_id: round(at / 10, 2) for build_id, at in x.items()},
    )


def _span(point: Point) -> tuple[float, ...]:
    return (point.estimate.low, point.estimate.high, *point.medians)


class _Linear:
    """A linear axis of seconds, cut to what most values need: one wild build must not flatten the rest."""

    def __init__(self, values: Sequence[float]) -> None:
        ordered = sorted(values)
        middle = ordered[len(ordered) // 2]
        low, high = ordered[0], ordered[-1]
        inner_low, inner_high = ordered[len(ordered) // 50], ordered[-1 - len(ordered) // 50]
        reach = max(inner_high - inner_low, LEAST_RANGE * middle)
        low, high = max(low, inner_low - 2 * reach), min(high, inner_high + 2 * reach)
        pad = 0.06 * max(high - low, LEAST_RANGE * middle)
        if high - low < LEAST_RANGE * middle:
            low, high = middle * (1 - LEAST_RANGE / 2), middle * (1 + LEAST_RANGE / 2)
        self.low, self.high = max(0.0, low - pad), high + pad
        self._scale = (HEIGHT - _BOTTOM - _TOP) / (self.high - self.low)
        self._top, self._bottom = _TOP - _BEYOND, HEIGHT - _BOTTOM + _BEYOND

    def place(self, seconds: float) -> float:
        # A little beyond the axis where the value is far beyond it.
        y = HEIGHT - _BOTTOM - (seconds - self.low) * self._scale
        return round(self._top if y < self._top else self._bottom if y > self._bottom else y, 1)

    def ticks(self) -> tuple[Tick, ...]:
        step = _nice((self.high - self.low) / 4)
        first = math.ceil(self.low / step)
        values = [number * step for number in range(first, math.floor(self.high / step) + 1)]
        digits = max(2, 1 + math.ceil(math.log10(self.high / step) - 1e-9)) if values else 3
        return tuple(Tick(self.place(v), units.quantity(v, "s", min(digits, 6))) for v in values if v > 0)


def _nice(step: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= step * 0.999)


def _x_ticks(builds: Sequence[Build], x: Mapping[str, float]) -> tuple[Tick, ...]:
    count = min(_X_LABELS, len(builds))
    chosen = sorted({round(i * (len(builds) - 1) / max(1, count - 1)) for i in range(count)})
    ticks = []
    for number in chosen:
        build = builds[number]
        anchor = (
            "start"
            if number == 0 and len(builds) > 1
            else "end"
            if number == len(builds) - 1 > 0
            else "middle"
        )
        label = build.version if build.channel != "nightly" else day(build)
        ticks.append(Tick(round(x[build.id] / 10, 2), label[:16], anchor))
    return tuple(ticks)


def sparkline(builds: Sequence[Build], points: Mapping[str, Point]) -> tuple[str, str]:
    """Path data of the last builds' estimates, and of a dot at the newest; empty for fewer than two.

    Cut to builds that have a time.
    """
    chosen = [points[build.id].estimate for build in builds if build.id in points][-_SPARK_BUILDS:]
    if len(chosen) < 2:
        return "", ""
    low, high = _robust(chosen)
    places = [
        (
            round(3 + i * (SPARK_WIDTH - 6) / (len(chosen) - 1), 1),
            round(
                SPARK_HEIGHT - 4 - (SPARK_HEIGHT - 8) * min(1.0, max(0.0, (e.seconds - low) / (high - low))),
                1,
            ),
        )
        for i, e in enumerate(chosen)
    ]
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in places), f"M{places[-1][0]:g} {places[-1][1]:g}h0"


def _robust(chosen: Sequence[Estimate]) -> tuple[float, float]:
    ordered = sorted(e.seconds for e in chosen)
    middle = ordered[len(ordered) // 2]
    # At least ± 5 %: a quiet history shall look quiet.
    return min(ordered[0], middle * 0.95), max(ordered[-1], middle * 1.05)


@dataclass(frozen=True)
class Forest:
    """One ratio on the axis that all rows of a table share, places in percent of the width.

    `below` and `above` tell that the interval goes on beyond the axis; `at` is None when the ratio is unknown.
    """

    at: float | None
    low: float
    high: float
    below: bool
    above: bool


class ForestAxis:
    """A logarithmic axis of ratios around 1, as wide as most of the verdicts need."""

    def __init__(self, verdicts: Sequence[Verdict], tolerance: float) -> None:
        sizes = sorted(
            abs(math.log(end))
            for verdict in verdicts
            for end in (verdict.ratio_low, verdict.ratio_high, verdict.ratio)
            if units.is_finite_positive(end)
        )
        decided = [
            abs(math.log(verdict.ratio))
            for verdict in verdicts
            if verdict.kind in ("regression", "improvement") and units.is_finite_positive(verdict.ratio)
        ]
        most = sizes[int(0.9 * (len(sizes) - 1))] if sizes else 0.0
        self.reach = min(math.log(8), max(1.25 * most, 1.15 * max(decided, default=0.0), 2.5 * tolerance))
        self.tolerance = tolerance

    def place(self, ratio: float) -> float:
        """Percent of the width, kept on the axis."""
        log = math.log(ratio) if ratio > 0 else -math.inf
        return round(50 + 50 * max(-1.0, min(1.0, log / self.reach)), 2)

    def row(self, verdict: Verdict) -> Forest:
        """The marks of one row."""
        known = units.is_finite_positive(verdict.ratio)
        edge = math.exp(self.reach)
        return Forest(
            self.place(verdict.ratio) if known else None,
            self.place(verdict.ratio_low),
            self.place(verdict.ratio_high),
            verdict.ratio_low < 1 / edge,
            verdict.ratio_high > edge,
        )

    @property
    def band(self) -> tuple[float, float]:
        """The ends of the tolerance."""
        return self.place(1 / (1 + self.tolerance)), self.place(1 + self.tolerance)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Equality, and the same distance to both sides."""
        step = _nice(math.expm1(self.reach) / 2.5)
        ratio = 1 + step
        return tuple(
            Tick(self.place(value), "0" if value == 1 else change(value)) for value in (1 / ratio, 1.0, ratio)
        )
