"""Seconds of a step over batch sizes: a·images + b, whether that fits, and where the regime switches."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Final

import numpy as np

from accel_micro.explain.capture import Capture

FEWEST: Final = 4
LEVEL: Final = 0.01


@dataclass(frozen=True)
class Tried:
    """What became of a switch when its library was turned off: at `batch`, the step without it ÷ the step with it.

    Attributes:
        jump: the step as measured ÷ what the sizes below the switch make of it.
        confirmed: without the library the step changes by more than noise, and back across that jump.
    """

    setting: str
    batch: int
    jump: float
    ratio: float
    low: float
    high: float
    confirmed: bool


@dataclass(frozen=True)
class Switch:
    """Two neighbouring batch sizes between which implementations change; `calls` of them, from `before` to `after`.

    Attributes:
        tried: its ablation; None where it was not tried.
    """

    below: int
    above: int
    before: str
    after: str
    calls: int
    tried: Tried | None = None


@dataclass(frozen=True)
class Fit:
    """A straight line through steps over batch sizes.

    Attributes:
        per_example, per_step: a and b, seconds. errors: their standard errors.
        p_value: of the lack of fit; None where no batch size has two processes.
        breaks: the two sizes between which a second line begins that fits best, where one does not fit.
        switches: changes of implementations between neighbouring sizes.
    """

    batches: tuple[int, ...]
    seconds: tuple[float, ...]
    per_example: float
    per_step: float
    errors: tuple[float, float]
    p_value: float | None
    breaks: tuple[int, int] | None
    switches: tuple[Switch, ...]

    def before(self, size: int) -> float:
        """Seconds of a step that the sizes below this one make of it: their line, or the only one's share of it."""
        below = [(n, t) for n, t in zip(self.batches, self.seconds, strict=True) if n < size]
        if not below:
            raise ValueError(f"no size below {size} was measured")
        if len(below) == 1:
            return below[0][1] * size / below[0][0]
        x, y = (np.array(each) for each in zip(*below, strict=True))
        slope, intercept, *_ = _line(x, y, 1.0 / y)
        return slope * size + intercept

    @property
    def fits(self) -> bool:
        """The line is not rejected, and neither number is negative."""
        return (self.p_value is None or self.p_value > LEVEL) and self.per_step >= 0 and self.per_example >= 0


def fit(captures: Sequence[Capture]) -> Fit:
    """The line through captures of four batch sizes or more, weighted so that relative errors count.

    The lack of fit is F-tested against the scatter of processes of the same size (pure error; Draper and Smith,
    Applied Regression Analysis, ch. 2).

    Raises:
        ValueError: there are fewer than four sizes.
    """
    captures = sorted(captures, key=lambda capture: capture.batch)
    sizes = [capture.batch for capture in captures]
    if len(set(sizes)) < FEWEST:
        raise ValueError(f"{len(set(sizes))} batch sizes cannot show a lack of fit; {FEWEST} are needed")
    x = np.array([capture.batch for capture in captures for _ in capture.readings], dtype=float)
    y = np.array([reading.step_seconds for capture in captures for reading in capture.readings])
    means = {size: fmean(y[x == size]) for size in set(sizes)}
    weights = np.array([1.0 / means[int(size)] for size in x])
    slope, intercept, squares, errors = _line(x, y, weights)
    pure = float(
        sum(
            (weight * (value - means[int(size)])) ** 2
            for size, value, weight in zip(x, y, weights, strict=True)
        )
    )
    degrees = len(y) - len(means)
    p_value = None
    if degrees > 0 and pure > 0:
        from scipy.special import fdtrc

        lack = max(0.0, squares - pure) / (len(means) - 2)
        p_value = float(fdtrc(len(means) - 2, degrees, lack / (pure / degrees)))
    ordered = sorted(means)
    bad = (p_value is not None and p_value <= LEVEL) or slope < 0 or intercept < 0
    return Fit(
        tuple(ordered),
        tuple(means[size] for size in ordered),
        slope,
        intercept,
        errors,
        p_value,
        _best_break(x, y, weights, ordered) if bad else None,
        tuple(switches(captures)),
    )


def _line(
    x: "np.ndarray", y: "np.ndarray", weights: "np.ndarray"
) -> tuple[float, float, float, tuple[float, float]]:
    """Slope, intercept, weighted sum of squares, and standard errors of both."""
    design = np.column_stack([x, np.ones_like(x)]) * weights[:, None]
    solution, *_ = np.linalg.lstsq(design, y * weights, rcond=None)
    squares = float(((y * weights - design @ solution) ** 2).sum())
    freedom = max(1, len(y) - 2)
    covariance = np.linalg.pinv(design.T @ design) * squares / freedom
    return (
        float(solution[0]),
        float(solution[1]),
        squares,
        (float(np.sqrt(covariance[0, 0])), float(np.sqrt(covariance[1, 1]))),
    )


def _best_break(
    x: "np.ndarray", y: "np.ndarray", weights: "np.ndarray", ordered: Sequence[int]
) -> tuple[int, int] | None:
    """The neighbours between which two lines fit best; each line has two sizes at least."""
    best: tuple[float, tuple[int, int]] | None = None
    for place in range(1, len(ordered) - 2):
        left = x <= ordered[place]
        squares = sum(_line(x[part], y[part], weights[part])[2] for part in (left, ~left))
        if best is None or squares < best[0]:
            best = squares, (ordered[place], ordered[place + 1])
    return None if best is None else best[1]


def switches(captures: Sequence[Capture]) -> list[Switch]:
    """Where convolutions change their implementation, between neighbouring sizes."""
    found = []
    for below, above in pairwise(captures):
        changed: dict[tuple[str, str], int] = {}
        known = {(row.phase, row.module): row.backend for row in below.rows if row.backend}
        for row in above.rows:
            before = known.get((row.phase, row.module))
            if before and row.backend and before != row.backend:
                changed[before, row.backend] = changed.get((before, row.backend), 0) + row.count
        for (before, after), calls in changed.items():
            found.append(Switch(below.batch, above.batch, before, after, calls))
    return found
