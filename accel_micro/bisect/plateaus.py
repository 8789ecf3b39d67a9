"""Where two steps are, if a range holds two: builds between them lie on a plateau, neither good nor bad.

A model of one step goes astray there. Of two equal steps it takes the builds between for as good as for as bad, any of
them may be the first bad one, and the search wanders over the plateau. So the plateau is a hypothesis of its own: the
first step is a share of the whole difference of the ends, the second one the rest. That the share may be negative, or
larger than one, is a regression with an improvement before or after it.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accel_micro.bisect.likelihood import Floats, Grid, log_likelihood

SHARES: Final = np.array([-1.0, 0.5, 2.0])
"""Of the difference of the ends: where the plateau lies. What lies between is near enough to one of these, or to one
step."""

_UNLIKELY: Final = 1e-3  # steps and noises of a probability below this are left out, but for neighbours


class Plateaus:
    """Which builds of a range are the first ones of two steps.

    Only builds that were measured tell places apart, so first bad ones are taken together in cells that lie between
    those: as many as there are builds that were measured, whatever the length of the range.
    """

    def __init__(self, low: int, high: int, hypotheses: Grid, machine: Floats) -> None:
        """Begin without any block.

        Args:
            low, high: the ends of the range, both included.
            machine: probability of each hypothesis, from blocks of the ends alone, shape (D, S, P).
        """
        self._all = hypotheses
        self._steps = _likely(machine.sum(axis=(1, 2)))
        self._noises = _likely(machine.sum(axis=(0, 2)))
        self.hypotheses = Grid(
            hypotheses.steps[self._steps], hypotheses.noises[self._noises], hypotheses.shares
        )
        self._prior = float(hypotheses.flat_prior().flat[0])
        self._cuts = np.array([low, high])
        self._log = np.zeros((1, 1, len(SHARES), *self.hypotheses.shape))
        self._solved: tuple[Floats, float] | None = None

    def add(self, values: Floats, builds: Sequence[int]) -> None:
        """Take in a block, all of whose builds lie in the range; as `Dates.add`."""
        numbers = np.array(builds)
        measured = np.unique(numbers)
        for build in measured:
            self._cut(int(build))
        # How many of the builds of the block come before the first bad one of a cell.
        before = np.searchsorted(measured, self._cuts[1:])
        ordinals = np.searchsorted(measured, numbers)
        places = np.arange(len(measured) + 1)
        beyond = (ordinals[None] >= places[:, None]).astype(float)  # (places, m)
        first, second = beyond[:, None, None], beyond[None, :, None]
        levels = SHARES[:, None] * first + (1 - SHARES[:, None]) * second
        shape = levels.shape[:-1]
        likelihood = log_likelihood(values, levels.reshape(-1, len(values)), self.hypotheses)
        likelihood = likelihood.reshape(*shape, *self.hypotheses.shape)
        self._log += likelihood[before[:, None], before[None, :]]
        self._solved = None

    def _cut(self, build: int) -> None:
        place = int(np.searchsorted(self._cuts, build))
        if self._cuts[place] != build:
            self._cuts = np.insert(self._cuts, place, build)
            cells = np.arange(len(self._log))
            cells = np.insert(cells, place, place - 1)
            self._log = self._log[cells[:, None], cells[None, :]]

    def _solve(self) -> tuple[Floats, float]:
        """Probability of each pair of cells, share and hypothesis; and the log of what they sum up to."""
        if self._solved is None:
            widths = np.diff(self._cuts).astype(float)
            pairs = np.triu(np.outer(widths, widths), 1) + np.diag(widths * (widths - 1) / 2)
            with np.errstate(divide="ignore"):
                prior = np.log(pairs) - np.log(pairs.sum() * len(SHARES)) + self._prior
            logs = self._log + prior[:, :, None, None, None, None]
            top = logs.max()
            weights = np.exp((logs - top).astype(np.float32))
            total = weights.sum(dtype=float)
            self._solved = weights / total, float(np.log(total) + top)
        return self._solved

    @property
    def log_evidence(self) -> float:
        """Of there being two steps: on the scale of the likelihoods that were added."""
        return self._solve()[1]

    def wanted(self) -> tuple[Floats, Floats]:
        """Which shares make the first step, and which the second, one that is searched for; shape (shares,) each."""
        if len(set(np.sign(self._all.steps))) > 1:
            return np.ones(len(SHARES)), np.ones(len(SHARES))
        return (SHARES > 0).astype(float), (SHARES < 1).astype(float)

    @property
    def first_bad(self) -> Floats:
        """How many of the steps that are searched for begin at each of builds `low + 1` to `high`, expected."""
        result: Floats = self.each.sum(axis=0)
        return result

    @property
    def each(self) -> Floats:
        """How likely the first step and the second begin at each build, and are searched for; (2, high - low)."""
        joint = self._solve()[0].sum(axis=(3, 4, 5), dtype=float)
        first, second = self.wanted()
        widths = np.diff(self._cuts)
        cells = np.array([(joint @ first).sum(axis=1), (joint @ second).sum(axis=0)])
        return np.repeat(cells / widths, widths, axis=1)

    @property
    def machine(self) -> Floats:
        """Probability of each hypothesis, shape (D, S, P) of all."""
        result = np.zeros(self._all.shape)
        result[np.ix_(self._steps, self._noises)] = self._solve()[0].sum(axis=(0, 1, 2), dtype=float)
        return result

    def sizes(self, good: int, bad: int) -> Floats:
        """Weight of each hypothesis about a step after `good` up to `bad`, both measured; shape (D, S, P) of all."""
        inside = (self._cuts[:-1] >= good) & (self._cuts[1:] <= bad)
        weights = self._solve()[0]
        result = np.zeros(self._all.shape)
        for index, share in enumerate(SHARES):
            for part, chosen in (
                (share, weights[inside, :, index].sum(axis=(0, 1), dtype=float)),
                (1 - share, weights[:, inside, index].sum(axis=(0, 1), dtype=float)),
            ):
                for step, weight in zip(self.hypotheses.steps, chosen, strict=True):
                    place = _nearest(self._all.steps, part * step)
                    if place is not None:
                        result[place, self._noises] += weight
        return result


def _likely(probabilities: Floats) -> NDArray[np.int64]:
    """Places of those that are not unlikely, and of their neighbours."""
    likely = probabilities > _UNLIKELY
    wider = likely.copy()
    wider[1:] |= likely[:-1]
    wider[:-1] |= likely[1:]
    return np.flatnonzero(wider)


def _nearest(steps: Floats, step: float) -> int | None:
    """Place of the hypothesis that is nearest to a step on the log scale; none of the other direction is."""
    same = np.flatnonzero(np.sign(steps) == np.sign(step))
    if not len(same):
        return None
    return int(same[np.abs(np.log(np.abs(steps[same]) / abs(step))).argmin()])
