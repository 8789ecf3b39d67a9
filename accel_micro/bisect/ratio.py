"""How large a step is, from the blocks that hold both of its sides."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from accel_micro.bisect.likelihood import Bools, Floats, Grid, log_likelihood, log_sum

_POINTS: Final = 81  # of a line of steps, to begin with
_BEYOND: Final = 4.0  # the farthest contrast, in log time: ten times the largest noise
_FARTHER: Final = 3.0  # with a prior, which ends nowhere
_FINEST: Final = 0.1  # of the smallest hypothesis
_CELL: Final = 0.005  # of all mass, between two points
_ROUNDS: Final = 30  # fourfold each
_FLOOR: Final = 1e-4  # of the highest density: below it without a prior is nothing
_NEAR: Final = 3.0
_UNLIKELY: Final = 1e-4  # noises that are less likely than that are left out


@dataclass(frozen=True)
class Ratio:
    """Later ÷ earlier build, of seconds per call.

    Attributes:
        value: the middle of the posterior.
        low, high: the 95 % interval.
    """

    value: float
    low: float
    high: float


UNKNOWN: Final = Ratio(math.nan, 0.0, math.inf)


def step_ratio(
    blocks: Sequence[tuple[Floats, Bools]],
    noise: Floats,
    hypotheses: Grid,
    prior: Floats | None = None,
    tail: float = 0.025,
) -> Ratio:
    """The ratio of bad to good builds.

    Args:
        blocks: log seconds and which of them are bad builds'.
        noise: weight of each noise and stray share, shape (S, P): what all blocks of a search say of the machine.
        prior: weight of each step of the hypotheses, shape (D,), where something is known of it; without one every
            step and its opposite is as likely. On a machine with speed modes a few blocks can look as if the
            difference of the modes was that of the builds, and only this tells them apart.
        tail: of the posterior beyond either end of the interval.

    Returns:
        A ratio without bounds where no block holds both sides, or those that do may all have strayed.
    """
    both = [(values, bad) for values, bad in blocks if bad.any() and not bad.all()]
    if not both:
        return UNKNOWN
    likely = noise.sum(axis=1) > _UNLIKELY * noise.sum()
    log_noise = np.log(noise[likely] + 1e-300)

    def log_posterior(steps: Floats) -> Floats:
        local = Grid(steps, hypotheses.noises[likely], hypotheses.shares)
        total = log_noise + sum(log_likelihood(values, bad[None], local)[0] for values, bad in both)
        return log_sum(total, axis=(1, 2)) + _log_density(steps, hypotheses.steps, prior)

    apart = _contrasts(both)
    far = float(np.abs(apart).max()) + _BEYOND
    if prior is None:
        line = np.concatenate([np.linspace(-far, far, _POINTS), apart])
    else:
        sizes = np.geomspace(_FINEST * np.abs(hypotheses.steps).min(), _FARTHER * far, _POINTS)
        line = np.concatenate([[0.0], sizes, -sizes, apart])
        line = line[np.isin(np.sign(line), [0, *np.sign(hypotheses.steps[prior > 0])])]
    steps, logs = _refined(log_posterior, np.unique(line))
    density = np.exp(logs - logs.max())
    if prior is None:
        # Where each block may have strayed a step may have any size. That is left out, or it has no end.
        if density[[0, -1]].max() >= _FLOOR:
            return Ratio(math.exp(float(np.median(apart))), 0.0, math.inf)
        density[density < _FLOOR] = 0.0
    cumulated = np.concatenate([[0.0], np.cumsum(_masses(steps, density))])
    low, middle, high = np.interp(np.array([tail, 0.5, 1 - tail]) * cumulated[-1], cumulated, steps)
    return Ratio(math.exp(middle), math.exp(low), math.exp(high))


def exceeds(whole: Ratio, parts: Sequence[Ratio]) -> bool:
    """Whether a ratio is larger than its parts explain: by a tenth of it, and by two standard errors."""
    if any(not math.isfinite(ratio.high) for ratio in (whole, *parts)):
        return False
    errors = [(math.log(ratio.high) - math.log(ratio.low)) / 3.92 for ratio in (whole, *parts)]
    left = math.log(whole.value) - math.fsum(math.log(part.value) for part in parts)
    left *= math.copysign(1.0, math.log(whole.value))
    return left > max(2 * math.hypot(*errors), 0.1 * abs(math.log(whole.value)))


def broadened(prior: Floats, steps: Floats) -> Floats:
    """Weights of steps, spread evenly over those within a factor of `_NEAR`.

    What is known of the ends tells the order of magnitude of a step between them, and no more: another one may have
    undone half of it, or added as much.

    Args:
        prior, steps: shape (D,).
    """
    near = np.abs(np.log(np.abs(steps))[:, None] - np.log(np.abs(steps))) <= math.log(_NEAR)
    near &= np.sign(steps)[:, None] == np.sign(steps)
    result: Floats = (near / near.sum(axis=0)) @ prior
    return result


def _contrasts(blocks: Sequence[tuple[Floats, Bools]]) -> Floats:
    """Steps that blocks speak for: what each pair of their values differs by, and the middle of these."""
    pairs = np.concatenate([np.subtract.outer(values[bad], values[~bad]).ravel() for values, bad in blocks])
    means = [values[bad].mean() - values[~bad].mean() for values, bad in blocks]
    return np.array([*pairs, *means, np.median(pairs), np.mean(means), np.median(means)])


def _refined(log_density: Callable[[Floats], Floats], points: Floats) -> tuple[Floats, Floats]:
    """More points where there is mass, until none that has much lies between two of them; and the density of all.

    Args:
        points: to begin with, ascending. One of them must be near each narrow peak.
    """
    logs = log_density(points)
    for _ in range(_ROUNDS):
        masses = _masses(points, np.exp(logs - logs.max()))
        many = masses > _CELL * masses.sum()
        if not many.any():
            break
        places = np.flatnonzero(many)
        more = points[places] + np.outer((0.25, 0.5, 0.75), np.diff(points)[places])
        points, order = np.unique(np.concatenate([points, more.ravel()]), return_index=True)
        logs = np.concatenate([logs, log_density(more.ravel())])[order]
    return points, logs


def _masses(points: Floats, density: Floats) -> Floats:
    """Between each two points, by trapezia."""
    result: Floats = np.diff(points) * (density[1:] + density[:-1]) / 2
    return result


def _log_density(steps: Floats, known: Floats, prior: Floats | None) -> Floats:
    """Of a step on the line, from weights of steps that are as far apart as they are large.

    Below the smallest of them it stays what it is there: growing on towards no step at all it would outweigh the rest.
    The largest stands for all beyond it too, which have its weight once more, the less the farther they are.
    """
    if prior is None:
        return np.zeros(len(steps))
    largest = np.abs(known).max()
    sizes = np.maximum(np.abs(steps), np.abs(known).min())
    result = np.full(len(steps), -1e300)
    for sign in (-1, 1):
        side = np.sign(known) == sign
        if side.any():
            order = np.argsort(np.abs(known[side]))
            places, logs = np.log(np.abs(known[side][order])), np.log(prior[side][order] + 1e-300)
            mine = np.sign(steps) == sign
            fall = np.maximum(np.log(sizes[mine] / largest), 0.0) / _between(places)
            result[mine] = np.interp(np.log(sizes[mine]), places, logs) - np.log(sizes[mine]) - fall
    return result


def _between(places: Floats) -> float:
    """How far hypotheses are apart: each weight is of so much of the line."""
    return float(np.diff(places).mean()) if len(places) > 1 else 1.0
