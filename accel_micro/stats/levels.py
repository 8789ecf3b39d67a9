"""The best piecewise constant level of a noisy series, where noise may be autocorrelated and values may stray.

The level moves on a grid, by jumps that cost a penalty and are no smaller than a floor; a dynamic programme
(Viterbi) finds the cheapest path. A value costs half its squared innovation under AR(1) noise, at most the cost of a
stray value. That is AR(1) segmentation (Chakar, Lebarbier, Lévy-Leduc and Robin, Bernoulli 23(2), 2017) with
the bounded loss of Fearnhead and Rigaill (JASA 114(525), 2019), and a floor under every jump. Costs are negative
log-likelihoods.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

CELLS_A_DEVIATION: Final = 4
"""Fineness of the grid: a level is off by an eighth of the noise at most, which costs 0.008 a value."""

_SUPPORT: Final = 2  # values within two deviations that make a level worth a cell
_FAR: Final = 1e18


@dataclass(frozen=True)
class Noise:
    """How values scatter about their level.

    Attributes:
        deviations: standard deviation of each value.
        correlation: between one value and the next, in [0, 1).
        stray: cost of a value that does not belong to its level, in units of log-likelihood.
    """

    deviations: Floats
    correlation: float
    stray: float


def grid(values: Floats, deviation: float) -> Floats:
    """Levels worth trying, ascending: where values lie, a quarter of a deviation apart."""
    step = deviation / CELLS_A_DEVIATION
    ordered = np.sort(values)
    # Every cell within a deviation of some value, numbered from the smallest value.
    reach = np.arange(-CELLS_A_DEVIATION, CELLS_A_DEVIATION + 1)
    cells = np.unique((np.round((ordered - ordered[0]) / step).astype(np.intp)[:, None] + reach).ravel())
    levels = ordered[0] + step * cells
    near = np.searchsorted(ordered, levels + 2 * deviation) - np.searchsorted(ordered, levels - 2 * deviation)
    supported: Floats = levels[near >= min(_SUPPORT, len(values))]
    return supported if len(supported) else np.array([np.median(values)])


class Costs:
    """What values cost at each level, for one or several hypotheses about their noise.

    Args:
        values: n values.
        levels: g levels, ascending.
        noises: h hypotheses.
    """

    def __init__(self, values: Floats, levels: Floats, noises: list[Noise]) -> None:
        self.levels = levels
        distance = values[:, None] - levels[None, :]
        deviations = np.array([noise.deviations for noise in noises])[:, :, None]  # h, n, 1
        correlation = np.array([noise.correlation for noise in noises])[:, None, None]
        stray = np.array([noise.stray for noise in noises])[:, None, None]
        offsets = distance[None] / deviations
        scale = np.log(deviations)  # a hypothesis of wide noise pays for it
        bare = 0.5 * offsets**2
        self.start: Floats = np.minimum(bare, stray) + scale
        """h × n × g: of a value whose predecessor tells nothing: the first after a jump or a stray one."""
        innovation = 1 - correlation**2
        within = 0.5 * (offsets[:, 1:] - correlation * offsets[:, :-1]) ** 2 / innovation
        within += 0.5 * np.log(innovation)
        told = bare[:, :-1] < stray
        self.stay: Floats = self.start.copy()
        """h × n × g: of a value whose predecessor had the same level."""
        self.stay[:, 1:] = np.where(told, np.minimum(within, stray) + scale[:, 1:], self.start[:, 1:])
        self._sums: Floats = np.zeros((len(noises), len(values) + 1, len(levels)))
        np.cumsum(self.stay, axis=1, out=self._sums[:, 1:])

    def path(self, penalty: float, floors: Sequence[float]) -> tuple[Floats, list[list[int]]]:
        """For each hypothesis the cost of its cheapest path, and where that path jumps (first index after).

        Args:
            penalty: cost of a jump. floors: for each hypothesis the smallest jump.
        """
        hypotheses, n, g = self.start.shape
        least = np.array(floors)[:, None] * (1 - 1e-9)
        below = np.searchsorted(self.levels, self.levels - least, side="right") - 1  # the last to rise from
        above = np.searchsorted(self.levels, self.levels + least, side="left")  # the first to fall from
        no_rise, no_fall = below < 0, above >= g
        above = np.minimum(above, g - 1)
        rows = np.arange(hypotheses)[:, None]
        total = np.empty((n, hypotheses, g))
        jumped = np.zeros((n, hypotheses, g), dtype=bool)
        total[0] = self.start[:, 0]
        for i in range(1, n):
            before = total[i - 1]
            rising = np.minimum.accumulate(before, axis=1)[rows, below]
            falling = np.minimum.accumulate(before[:, ::-1], axis=1)[:, ::-1][rows, above]
            rising[no_rise] = _FAR
            falling[no_fall] = _FAR
            jump = np.minimum(rising, falling) + (penalty + self.start[:, i])
            stay = before + self.stay[:, i]
            np.less(jump, stay, out=jumped[i])
            np.minimum(jump, stay, out=total[i])
        paths = [self._back(total[:, h], jumped[:, h], float(least[h, 0])) for h in range(hypotheses)]
        return total[-1].min(axis=1), paths

    def _back(self, total: Floats, jumped: NDArray[np.bool_], least: float) -> list[int]:
        cell = int(np.argmin(total[-1]))
        jumps = []
        for i in range(len(total) - 1, 0, -1):
            if jumped[i, cell]:
                jumps.append(i)
                far = np.abs(self.levels - self.levels[cell]) >= least
                cell = int(np.argmin(np.where(far, total[i - 1], _FAR)))
        return jumps[::-1]

    def segment(self, first: int, end: int, hypothesis: int = 0) -> tuple[float, int]:
        """Cost of the values from `first` up to, not including, `end` at their best common level; that cell."""
        sums = self._sums[hypothesis]
        costs = self.start[hypothesis, first] + sums[end] - sums[first + 1]
        cell = int(np.argmin(costs))
        return float(costs[cell]), cell

    def split(self, first: int, end: int, cells: tuple[int, int], hypothesis: int = 0) -> Floats:
        """Costs of a jump between two cells at each index from `first` + 1 up to, not including, `end`."""
        sums, start = self._sums[hypothesis], self.start[hypothesis]
        at = np.arange(first + 1, end)
        before = start[first, cells[0]] + sums[at, cells[0]] - sums[first + 1, cells[0]]
        after = start[at, cells[1]] + sums[end, cells[1]] - sums[at + 1, cells[1]]
        result: Floats = before + after
        return result
