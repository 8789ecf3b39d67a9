"""Where the marks of a crossover's plots go: times of both sides and the contender's speed over sizes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from accel_micro.comparison.crossed import Subject, launch
from accel_micro.comparison.sweeping import Swept, Which
from accel_micro.report import units
from accel_micro.report.site.plots import Tick
from accel_micro.stats.crossover import Call

WIDTH, HEIGHT = 460.0, 260.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 446.0, 14.0, 216.0
_MOST_X_TICKS: Final = 7


@dataclass(frozen=True)
class Dot:
    """A measured size: where it is, its interval from `low` to `high`, who is faster (a class), and words for it."""

    x: float
    y: float
    low: float
    high: float
    kind: str
    text: str


@dataclass(frozen=True)
class Plot:
    """Two panels that share an axis of sizes.

    Attributes:
        times: path data of each side. speeds: path data of the contender's speed.
        even: where both sides are as fast; band: the ends of the tolerance, upper first.
        crossings: left end and width of each interval, and where its estimate is.
        launch: how far the contender is launch-bound, from the left; None where it is not, or has no such clocks.
    """

    x_ticks: tuple[Tick, ...]
    time_ticks: tuple[Tick, ...]
    speed_ticks: tuple[Tick, ...]
    times: dict[Which, str]
    time_dots: dict[Which, str]
    speeds: str
    dots: tuple[Dot, ...]
    even: float
    band: tuple[float, float]
    crossings: tuple[tuple[float, float, float], ...]
    launch: float | None
    left: float = LEFT
    right: float = RIGHT
    top: float = TOP
    bottom: float = BOTTOM
    width: float = WIDTH
    height: float = HEIGHT


class _Log:
    """A logarithmic axis from one place to another."""

    def __init__(self, values: Sequence[float], start: float, end: float, pad: float = 0.04) -> None:
        logs = [math.log10(value) for value in values]
        low, high = min(logs), max(logs)
        pad *= max(high - low, 0.1)
        self.low, self.high, self.start, self.end = low - pad, high + pad, start, end

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        place = self.start + min(1.0, max(0.0, share)) * (self.end - self.start)
        return round(place, 1)

    def decades(self) -> list[float]:
        """Powers of ten, with 2 and 5 between them where there are few."""
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        for steps in ((1,), (1, 3), (1, 2, 5)):
            found = [step * 10.0**power for power in powers for step in steps]
            inside = [value for value in found if self.low <= math.log10(value) <= self.high]
            if len(inside) >= 3:
                break
        return inside[:: max(1, math.ceil(len(inside) / 6))]


def plot(row: Swept[Subject], names: dict[Which, str], tolerance: float) -> Plot:
    """The plot of a row with at least one size that has a time."""
    timed = [(size, size.call) for size in row.sizes if size.call is not None]
    sizes = [float(size.size) for size, _ in timed]
    x = _Log(sizes, LEFT, RIGHT)
    seconds: dict[Which, list[float]] = {
        which: [value for size, _ in timed if (value := size.seconds(which)) is not None] for which in names
    }
    t = _Log([value for values in seconds.values() for value in values], BOTTOM, TOP)
    speeds = [1 / call.ratio for _, call in timed]
    ends = [end for _, call in timed for end in _interval(call)]
    s = _Log([*speeds, *ends, 1 / (1 + tolerance) ** 2, (1 + tolerance) ** 2], BOTTOM, TOP)
    bound = launch(row, "contender")
    return Plot(
        x_ticks=_x_ticks(x, [size.size for size, _ in timed]),
        time_ticks=tuple(Tick(t.at(value), units.quantity(value, "s", 1)) for value in t.decades()),
        speed_ticks=tuple(Tick(s.at(value), f"{value:g}×") for value in s.decades()),
        times={which: _path(x, t, sizes, values) for which, values in seconds.items()},
        time_dots={
            which: "".join(
                f"M{x.at(size):g} {t.at(value):g}h0" for size, value in zip(sizes, values, strict=True)
            )
            for which, values in seconds.items()
        },
        speeds=_path(x, s, sizes, speeds),
        dots=tuple(
            Dot(
                x.at(size.size),
                s.at(1 / call.ratio),
                s.at(_interval(call)[0]),
                s.at(_interval(call)[1]),
                call.faster,
                f"{size.size}: {names['contender']} {1 / call.ratio:.3g}× as fast, "
                + ", ".join(
                    f"{names[which]} {units.quantity(size.seconds(which) or 0.0, 's')}" for which in names
                ),
            )
            for size, call in timed
        ),
        even=s.at(1.0),
        band=(s.at(1 + tolerance), s.at(1 / (1 + tolerance))),
        crossings=tuple(
            (x.at(one.low), round(x.at(one.high) - x.at(one.low), 1), x.at(one.at)) for one in row.crossings
        ),
        launch=None if bound is None or bound.up_to is None else x.at(bound.up_to),
    )


def _interval(call: Call) -> tuple[float, float]:
    """Of the contender's speed; the speed alone while too few processes tell one."""
    ends = call.ratio_high, call.ratio_low
    if all(map(units.is_finite_positive, ends)):
        return 1 / ends[0], 1 / ends[1]
    return 1 / call.ratio, 1 / call.ratio


def _path(x: _Log, y: _Log, sizes: Sequence[float], values: Sequence[float]) -> str:
    return "M" + "L".join(
        f"{x.at(size):g} {y.at(value):g}" for size, value in zip(sizes, values, strict=True)
    )


def _x_ticks(x: _Log, sizes: Sequence[int]) -> tuple[Tick, ...]:
    """The smallest and the largest size, and between them those that are far enough apart to be read."""
    room = (RIGHT - LEFT) / _MOST_X_TICKS
    chosen = [sizes[0]]
    for size in sizes[1:-1]:
        if x.at(size) - x.at(chosen[-1]) >= room and x.at(sizes[-1]) - x.at(size) >= room:
            chosen.append(size)
    return tuple(Tick(x.at(size), _short(size)) for size in dict.fromkeys((*chosen, sizes[-1])))


def _short(size: int) -> str:
    """`16.8M`: a size that fits below a tick."""
    return str(size) if size < 100_000 else units.quantity(float(size), "").strip().replace(" ", "")
