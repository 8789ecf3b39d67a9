"""Where the marks of the page's plots go: strips of samples, bars, rooflines. Templates draw them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from accel_micro.measure.process import Process
from accel_micro.report import units
from accel_micro.report.rows import Row
from accel_micro.report.units import is_finite_positive
from accel_micro.stats.estimate import Estimate

STRIP_WIDTH: Final = 220.0
LANE: Final = 9.0
"""Height of the samples of one process."""

LEAST_RANGE: Final = 0.01
"""A strip shows at least this relative range on both sides, or rounding would look like scatter."""


@dataclass(frozen=True)
class Strip:
    """The samples of one clock, a lane a process, on a logarithmic axis.

    `full` and `corrected` are path data: a dot for a sample at full speed, a tick for a corrected one.
    `below` and `above` say how far the ends of the axis are from the estimate.
    """

    width: float
    height: float
    full: str
    corrected: str
    low: float
    high: float
    middle: float
    below: str
    above: str


def strip(processes: Sequence[Process], e: Estimate) -> Strip:
    """The strip of a clock's processes and their estimate."""
    logs = [math.log(s / e.seconds) for p in processes for s in p.samples if is_finite_positive(s)]
    ends = [math.log(e.low / e.seconds), math.log(e.high / e.seconds)]
    least = min(*logs, *ends, -LEAST_RANGE)
    most = max(*logs, *ends, LEAST_RANGE)

    def x(log: float) -> float:
        return 4 + (STRIP_WIDTH - 8) * (log - least) / (most - least)

    full, corrected = [], []
    for lane, process in enumerate(processes):
        y = LANE * (lane + 0.5)
        raw = dict(enumerate(process.raw_samples))
        for index, sample in enumerate(process.samples):
            if not is_finite_positive(sample):
                continue
            at = f"M{x(math.log(sample / e.seconds)):.1f} "
            if raw.get(index, sample) == sample:
                full.append(f"{at}{y:g}h0")
            else:
                corrected.append(f"{at}{y - 3:g}v6")
    return Strip(
        width=STRIP_WIDTH,
        height=LANE * len(processes),
        full="".join(full),
        corrected="".join(corrected),
        low=round(x(ends[0]), 1),
        high=round(x(ends[1]), 1),
        middle=round(x(0.0), 1),
        below=_difference(least),
        above=_difference(most),
    )


def _difference(log: float) -> str:
    ratio = math.exp(log)
    if ratio >= 2 or ratio <= 0.5:
        return f"×{units.factor(ratio)[:-1]}" if ratio > 1 else f"÷{units.factor(1 / ratio)[:-1]}"
    percent = 100 * (ratio - 1)
    digits = 0 if abs(percent) >= 9.95 else 1
    return f"{percent:+.{digits}f} %".replace("-", "−")


@dataclass(frozen=True)
class BoundBar:
    """Dispatch and device of one case as bars: shares of the longer one, in percent, and their texts."""

    dispatch: float
    device: float
    dispatch_text: str
    device_text: str


def bound_bar(row: Row) -> BoundBar | None:
    """The bars of a row, None unless both clocks were read."""
    if row.dispatch_over_device is None:
        return None
    dispatch, device = row.estimates["dispatch"].seconds, row.estimates["device"].seconds
    longest = max(dispatch, device)
    return BoundBar(
        dispatch=round(100 * dispatch / longest, 1),
        device=round(100 * device / longest, 1),
        dispatch_text=units.quantity(dispatch, "s"),
        device_text=units.quantity(device, "s"),
    )


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: where, and its label."""

    at: float
    text: str


@dataclass(frozen=True)
class Roof:
    """One limit: path data, its label, where that stands and by how many degrees it is turned."""

    path: str
    text: str
    x: float
    y: float
    turn: float


@dataclass(frozen=True)
class Point:
    """A case: where it is by the headline clock; `device_y` is where its device time would put it."""

    x: float
    y: float
    device_y: float | None
    launch_bound: bool
    index: int
    text: str


@dataclass(frozen=True)
class Roofline:
    """FLOP/s over arithmetic intensity for one device and dtype, below what the machine can reach."""

    device: str
    dtype: str
    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    roofs: tuple[Roof, ...]
    points: tuple[Point, ...]


PLOT_WIDTH: Final = 560.0
PLOT_HEIGHT: Final = 340.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 92.0, 30.0, 20.0, 44.0


class _Axis:
    """A logarithmic axis over whole decades, from values to places on the page."""

    def __init__(self, values: Iterable[float], start: float, end: float) -> None:
        logs = [math.log10(value) for value in values]
        self.first = math.floor(min(logs) - 0.05)
        self.last = max(math.ceil(max(logs) + 0.05), self.first + 1)
        self._start, self._end = start, end

    def place(self, value: float) -> float:
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return round(self._start + share * (self._end - self._start), 1)

    def ticks(self, unit: str) -> tuple[Tick, ...]:
        step = 1 + (self.last - self.first) // 8
        decades = range(self.first, self.last + 1, step)
        return tuple(Tick(self.place(10.0**n), _decade(n, unit)) for n in decades)


def _decade(power: int, unit: str) -> str:
    return units.quantity(10.0**power, unit, 1) if unit else f"{10.0**power:g}"


def rooflines(rows: Sequence[Row]) -> tuple[Roofline, ...]:
    """A plot for each device and dtype whose peaks and at least one arithmetic intensity are known.

    `Point.index` is the place of the case in `rows`.
    """
    groups: dict[tuple[str, str], list[tuple[int, Row]]] = {}
    for index, row in enumerate(rows):
        if row.intensity is not None and row.flops_per_second is not None:
            groups.setdefault((row.case.device, row.case.dtype), []).append((index, row))
    plots = (_roofline(device, dtype, members) for (device, dtype), members in groups.items())
    return tuple(plot for plot in plots if plot is not None)


def _roofline(device: str, dtype: str, members: Sequence[tuple[int, Row]]) -> Roofline | None:
    peaks = [row.peak for _, row in members if row.peak is not None]
    flops = [peak.flops_per_second for peak in peaks if is_finite_positive(peak.flops_per_second)]
    bandwidths = [peak.bytes_per_second for peak in peaks if is_finite_positive(peak.bytes_per_second)]
    if not flops or not bandwidths:
        return None
    tops, levels = _levels(flops), _levels(bandwidths)
    intensities = [row.intensity or 1.0 for _, row in members]
    rates = [row.flops_per_second or 1.0 for _, row in members]
    knees = [top / level for top in tops for level in levels]
    # Starting well before the first knee, so that the slopes can be seen.
    x = _Axis([*intensities, *knees, min(knees) / 4], _LEFT, PLOT_WIDTH - _RIGHT)
    y = _Axis([*rates, *tops], PLOT_HEIGHT - _BOTTOM, _TOP)
    return Roofline(
        device=device,
        dtype=dtype,
        width=PLOT_WIDTH,
        height=PLOT_HEIGHT,
        left=_LEFT,
        right=PLOT_WIDTH - _RIGHT,
        top=_TOP,
        bottom=PLOT_HEIGHT - _BOTTOM,
        x_ticks=x.ticks(""),
        y_ticks=y.ticks("FLOP/s"),
        roofs=_roofs(tops, levels, x, y),
        points=tuple(_point(index, row, x, y) for index, row in members),
    )


def _levels(peaks: Sequence[float]) -> tuple[float, ...]:
    """The slowest and, when it is clearly another (a cache, TF32), the fastest of the measured peaks."""
    slow, fast = min(peaks), max(peaks)
    return (slow, fast) if fast > 1.2 * slow else (slow,)


def _roofs(tops: Sequence[float], levels: Sequence[float], x: _Axis, y: _Axis) -> tuple[Roof, ...]:
    right, highest = x.place(10.0**x.last), max(tops)
    roofs = []
    for top in tops:
        knee = x.place(top / max(levels))
        path = f"M{knee:g} {y.place(top):g}H{right:g}"
        roofs.append(Roof(path, units.quantity(top, "FLOP/s"), right - 4, y.place(top) - 6, turn=0))
    for level in levels:
        # From where the slope enters the plot, at its left side or at its bottom.
        start, end = max(10.0**x.first, 10.0**y.first / level), highest / level
        x1, y1, x2, y2 = x.place(start), y.place(start * level), x.place(end), y.place(highest)
        text = units.quantity(level, "B/s")
        # Labels stand clear of each other: above the fastest level, below the slowest.
        below = 14 if level < max(levels) else -6
        middle = math.sqrt(start * end)
        roofs.append(
            Roof(
                f"M{x1:g} {y1:g}L{x2:g} {y2:g}",
                text,
                x.place(middle),
                y.place(middle * level) + below,
                turn=round(math.degrees(math.atan2(y2 - y1, x2 - x1)), 1),
            )
        )
    return tuple(roofs)


def _point(index: int, row: Row, x: _Axis, y: _Axis) -> Point:
    rate = row.flops_per_second or 1.0
    device_y = None
    if row.bound == "launch-bound" and row.work is not None:
        on_device = row.work.flops / row.estimates["device"].seconds
        device_y = max(_TOP, y.place(on_device))
    return Point(
        x=x.place(row.intensity or 1.0),
        y=y.place(rate),
        device_y=device_y,
        launch_bound=row.bound == "launch-bound",
        index=index,
        text=f"{row.case}: {units.quantity(rate, 'FLOP/s')} at {row.intensity:.3g} FLOP/B",
    )
