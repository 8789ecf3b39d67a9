"""How likely the values of one block of builds are, for every step, noise and share of strays.

The log of a process's median is modelled as

    speed of the block + step · [the build is on the bad side] + noise,

where noise is normal, or the process strays: it ran in another speed mode or was disturbed, and says nothing. The
speed of a block is unknown and drops out, so only contrasts within a block count. Summed over which of its processes
stray (2^m - 1 subsets of m), the likelihood has a closed form: no grid over the speed, no iteration.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STRAY_DENSITY: Final = 0.7
"""Of a process that strays, per unit of log time: anything up to twice as slow or as fast is as likely (1 / 2 ln 2)."""

_SMALLEST_STEP, _LARGEST_STEP, _STEP_FACTOR = 1e-3, 2.5, 1.3
_SMALLEST_NOISE, _LARGEST_NOISE, _NOISE_FACTOR = 5e-4, 0.4, 1.7
_STRAY_SHARES = (0.01, 0.1, 0.3)


@dataclass(frozen=True)
class Grid:
    """Hypotheses about the machine and the change. An array over them has the axes step, noise, stray share.

    Attributes:
        steps: log ratio of a build on the bad side to one on the good side, shape (D,).
        noises: standard deviation of the log medians of processes that do not stray, shape (S,).
        shares: of processes that stray, shape (P,).
    """

    steps: Floats
    noises: Floats
    shares: Floats

    @property
    def shape(self) -> tuple[int, int, int]:
        """(D, S, P)."""
        return len(self.steps), len(self.noises), len(self.shares)

    def narrowed(self, noises: slice) -> "Grid":
        """The same with some of the noises only."""
        return Grid(self.steps, self.noises[noises], self.shares)

    def flat_prior(self) -> Floats:
        """Log weights: every order of magnitude of step and noise is as likely. Shape (D, S, P)."""
        return np.full(self.shape, -math.log(math.prod(self.shape)))


@lru_cache
def grid(direction: str) -> Grid:
    """Steps from 0.1 % to twelvefold, noise from 0.05 % to 40 %.

    The factor between neighbours needs not be fine: a step that lies between two of them reads as a little more noise.

    Raises:
        ValueError: the direction is not `slower`, `faster` or `either`.
    """
    steps = _geometric(_SMALLEST_STEP, _LARGEST_STEP, _STEP_FACTOR)
    signed = {"slower": steps, "faster": -steps, "either": np.concatenate([-steps[::-1], steps])}
    if direction not in signed:
        raise ValueError(f"direction must be one of {', '.join(signed)}, not {direction!r}")
    noises = _geometric(_SMALLEST_NOISE, _LARGEST_NOISE, _NOISE_FACTOR)
    return Grid(signed[direction], noises, np.array(_STRAY_SHARES))


def _geometric(first: float, last: float, factor: float) -> Floats:
    count = 1 + math.ceil(math.log(last / first) / math.log(factor))
    result: Floats = np.geomspace(first, last, count)
    return result


def log_likelihood(values: Floats, bad: Bools | Floats, hypotheses: Grid) -> Floats:
    """Log likelihood of one block.

    Args:
        values: log seconds, shape (m,), m at least 1.
        bad: for each pattern which values belong to builds on the bad side, shape (patterns, m); or how much of the
            step each of them has.

    Returns:
        Shape (patterns, D, S, P), up to a constant that is the same for all.
    """
    members, sizes = _subsets(len(values))
    centred = values - values.mean()
    sides = bad.astype(float)
    counts = members.sum(axis=1)
    means = members @ centred / counts
    squares = np.maximum(members @ centred**2 - counts * means**2, 0.0)
    bad_counts = sides @ members.T
    cross = (sides * centred) @ members.T - bad_counts * means
    spread = sides**2 @ members.T - bad_counts**2 / counts
    steps = hypotheses.steps
    # Sum of squares about the mean within each subset, after the step is taken off: shape (patterns, subsets, D).
    residual = squares[:, None] - 2 * cross[..., None] * steps + spread[..., None] * steps**2
    residual = np.maximum(residual, 0.0).astype(np.float32)  # exponentials take a third of the time
    scale = (-0.5 / hypotheses.noises**2).astype(np.float32)
    total = np.zeros((len(bad), *hypotheses.shape))
    for size in range(1, len(values) + 1):
        density = np.exp(residual[:, sizes == size, :, None] * scale).sum(axis=1, dtype=float)
        density *= (2 * math.pi * hypotheses.noises**2) ** (-(size - 1) / 2) / math.sqrt(size)
        strayed = (hypotheses.shares * STRAY_DENSITY) ** (len(values) - size)
        total += density[..., None] * ((1 - hypotheses.shares) ** size * strayed)
    result: Floats = np.log(total)
    return result


def capped(values: Floats) -> Floats:
    """A block whose values lie in groups no farther apart than the largest step.

    Hypotheses about large steps are few: a step beyond them would read as processes that stray. To a search it is the
    same whether builds differ by a factor of twelve or by a million, so groups farther above the lowest one are laid
    there. Values keep their places within a group, which tell the noise, and no label enters.

    Args:
        values: log seconds, shape (m,), m at least 1.
    """
    order = np.argsort(values, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(values[order]) > _LARGEST_STEP) + 1)
    result: Floats = values.copy()
    for group in groups[1:]:
        result[group] += values[groups[0]].mean() + _LARGEST_STEP - values[group].mean()
    return result


@lru_cache
def _subsets(count: int) -> tuple[Floats, NDArray[np.int64]]:
    """Every subset that is not empty as a row of zeros and ones, and the size of each."""
    numbers = np.arange(1, 2**count)
    members = (numbers[:, None] >> np.arange(count)) & 1
    return members.astype(float), members.sum(axis=1)


def log_sum(values: Floats, axis: int | tuple[int, ...] | None = None) -> Floats:
    """Log of the sum of exponentials along some axes, or of all."""
    top = values.max(axis=axis, keepdims=True)
    summed = np.log(np.exp(values - top).sum(axis=axis, keepdims=True)) + top
    return np.asarray(np.squeeze(summed, axis=axis))
