"""How large a step is, from the blocks that hold both of its sides."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from accel_micro.bisect.likelihood import Bools, Floats, Grid, capped, log_likelihood, log_sum

_POINTS: Final = 81
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

    def log_posterior(steps: Floats, blocks: Sequence[tuple[Floats, Bools]] = both) -> Floats:
        local = Grid(steps, hypotheses.noises[likely], hypotheses.shares)
        total = log_noise + sum(log_likelihood(values, bad[None], local)[0] for values, bad in blocks)
        return log_sum(total, axis=(1, 2)) + _log_density(steps, hypotheses.steps, prior)

    coarse = None
    if prior is not None:
        coarse = log_posterior(hypotheses.steps, [(capped(values), bad) for values, bad in both])
    centre, half = _start(both, noise, hypotheses, coarse)
    seen, cut = centre, False
    # The grid is laid anew around what was found, until it neither cuts the posterior off nor steps over it.
    for _ in range(12):
        steps = np.linspace(centre - half, centre + half, _POINTS)
        logs = log_posterior(steps)
        weights = np.exp(logs - logs.max())
        cumulated = np.cumsum(weights) / weights.sum()
        low, middle, high = np.interp((tail, 0.5, 1 - tail), cumulated, steps)
        wanted = 2 * max(high - middle, middle - low, 1e-9)
        cut = bool(weights[[0, -1]].max() >= 1e-4)
        if not cut and wanted > 0.25 * half:
            break
        centre, half = float(middle), 2 * half if cut else max(wanted, 1.5 * half / _POINTS)
    if cut:  # twelve doublings did not reach where it ends: it ends nowhere
        return Ratio(math.exp(seen), 0.0, math.inf)
    if prior is not None:  # the grid may reach beyond what is possible, and interpolate into it
        low, high = np.clip((low, high), _bound(hypotheses.steps, middle), -_bound(-hypotheses.steps, middle))
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


def _bound(steps: Floats, found: float) -> float:
    """Where an interval ends at the latest that holds a step that was found, if all go upwards; else there is no bound.

    That is the lowest of them. A step that is hardly above it, or below, has an end nearer to no step at all.
    """
    return min(float(steps.min()), 0.1 * abs(found)) if steps.min() > 0 else -math.inf


def _start(
    blocks: Sequence[tuple[Floats, Bools]], noise: Floats, hypotheses: Grid, coarse: Floats | None
) -> tuple[float, float]:
    """Where to lay the first grid: its middle and half its width."""
    if coarse is not None:
        # By what lies around a step, not by its density: that of the smallest is large, since they are close together.
        best = float(hypotheses.steps[int((coarse + np.log(np.abs(hypotheses.steps))).argmax())])
        if abs(best) < np.abs(hypotheses.steps).max():
            return best, 0.5 * abs(best)
        # The largest stands for all beyond it.
    apart = np.array([np.median(values[bad]) - np.median(values[~bad]) for values, bad in blocks])
    spread = float(np.sqrt((noise.sum(axis=1) * hypotheses.noises**2).sum()))
    centre = float(np.median(apart))
    scatter = float(np.median(np.abs(apart - centre)))
    return centre, 8 * max(spread / math.sqrt(len(blocks)), scatter, 1e-6)


def _log_density(steps: Floats, known: Floats, prior: Floats | None) -> Floats:
    """Of a step on the line, from weights of steps that are as far apart as they are large.

    Below the smallest of them it stays what it is there: growing on towards no step at all it would outweigh the rest.
    """
    if prior is None:
        return np.zeros(len(steps))
    sizes = np.maximum(np.abs(steps), np.abs(known).min())
    result = np.full(len(steps), -1e300)
    for sign in (-1, 1):
        side = np.sign(known) == sign
        if side.any():
            order = np.argsort(np.abs(known[side]))
            places, logs = np.log(np.abs(known[side][order])), np.log(prior[side][order] + 1e-300)
            mine = np.sign(steps) == sign
            result[mine] = np.interp(np.log(sizes[mine]), places, logs) - np.log(sizes[mine])
    return result
