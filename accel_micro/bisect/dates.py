"""At which build the step is, or the steps are: a posterior over the builds of a range, fed block by block."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from accel_micro.bisect.likelihood import Floats, Grid, capped, log_likelihood
from accel_micro.bisect.plateaus import Plateaus

TWO_STEPS: Final = 0.02
"""How likely there are two at first, by each noise. By all it is 4 to 5 %: two steps are reckoned with the 5 to 7 of 14
noises that the gate leaves, as if there had been no others."""


class Dates:
    """Which build of a range is the first bad one, if one step is within, or two.

    The range holds builds `low` to `high`, both included; the first bad one is any of `low + 1` to `high`, each as
    likely at first.
    """

    def __init__(self, low: int, high: int, hypotheses: Grid) -> None:
        self.low, self.high, self.hypotheses = low, high, hypotheses
        self._log = np.broadcast_to(hypotheses.flat_prior(), (high - low, *hypotheses.shape)).copy()
        self._taken_off = math.log(high - low)
        self._blocks: list[tuple[Floats, list[int]]] = []
        self._plateaus: Plateaus | None = None
        self._solved: tuple[Floats, Floats, Floats, float] | None = None

    def add(self, values: Floats, builds: Sequence[int]) -> None:
        """Take in one block; builds outside of the range are left out.

        Args:
            values: log seconds, shape (m,). builds: the number of each value's build.
        """
        inside = [i for i, build in enumerate(builds) if self.low <= build <= self.high]
        if len(inside) < 2:
            return
        values = capped(values[inside])
        self._blocks.append((values, [builds[i] for i in inside]))
        if self._plateaus is not None:
            self._plateaus.add(*self._blocks[-1])
        numbers = np.array(self._blocks[-1][1])
        cuts = np.unique(numbers)
        # Between two cuts the same builds are bad, so the likelihood is worked out once for each.
        patterns = numbers >= np.append(cuts, self.high + 1)[:, None]
        likelihood = log_likelihood(values, patterns, self.hypotheses)
        edges = [0, *(int(cut) - self.low for cut in cuts), self.high - self.low]
        for pattern, (first, end) in enumerate(pairwise(edges)):
            self._log[first:end] += likelihood[pattern]
        self._solved = None

    def narrow(self, least: float) -> None:
        """Leave out noises that are less likely than this, but for the neighbours of those that are not.

        From now on there may be two steps, which takes longer to reckon with.
        """
        likely = np.flatnonzero(self.machine.sum(axis=(0, 2)) > least)
        kept = slice(max(int(likely[0]) - 1, 0), int(likely[-1]) + 2)
        self.hypotheses = self.hypotheses.narrowed(kept)
        self._log = self._log[:, :, kept].copy()
        self._solved = None
        if self.high - self.low > 1:
            self._plateaus = Plateaus(self.low, self.high, self.hypotheses, self.machine)
            for values, builds in self._blocks:
                self._plateaus.add(values, builds)

    def _solve(self) -> tuple[Floats, Floats, Floats, float]:
        """Weights of one step, first bad builds, machine, and the probability of one step."""
        if self._solved is None:
            top = self._log.max()
            self._log -= top
            self._taken_off -= float(top)
            # Single precision takes a third of the time; sums are of positive numbers.
            weights = np.exp(self._log.astype(np.float32))
            first = weights.sum(axis=(1, 2, 3), dtype=float)
            total = float(first.sum())
            first, machine, one = first / total, weights.sum(axis=0, dtype=float) / total, 1.0
            if self._plateaus is not None:
                odds = math.log(total) - self._taken_off - self._plateaus.log_evidence
                one = 1 / (1 + math.exp(-min(max(odds + math.log(1 / TWO_STEPS - 1), -700.0), 700.0)))
                first = one * first + (1 - one) * self._plateaus.first_bad
                machine = one * machine + (1 - one) * self._plateaus.machine
            self._solved = weights / total, first, machine, one
        return self._solved

    @property
    def first_bad(self) -> Floats:
        """How many steps that are searched for begin at builds `low + 1` to `high`, expected; shape (high - low,)."""
        return self._solve()[1]

    @property
    def searched(self) -> Floats:
        """The same of the one step that is known best: to look for two at a time is to find both late."""
        weights, first, _, one = self._solve()
        if self._plateaus is None:
            return first
        each = self._plateaus.each
        shares = each / each.sum(axis=1, keepdims=True).clip(1e-300)
        entropy = -(shares * np.log(shares + 1e-300)).sum(axis=1)
        entropy[each.sum(axis=1) < 0.5 * each.sum(axis=1).max()] = math.inf
        alone = weights.sum(axis=(1, 2, 3), dtype=float)
        result: Floats = one * alone + (1 - one) * each[int(entropy.argmin())]
        return result

    @property
    def machine(self) -> Floats:
        """Probability of each hypothesis about the ends' difference, noise and strays, shape (D, S, P)."""
        return self._solve()[2]

    @property
    def one_step(self) -> float:
        """How likely there is no more than one."""
        return self._solve()[3]

    def sizes(self, good: int, bad: int) -> Floats:
        """Probability of each hypothesis about a step after `good` up to `bad`, noise and strays; shape (D, S, P)."""
        weights, _, _, one = self._solve()
        result: Floats = one * weights[good - self.low : bad - self.low].sum(axis=0, dtype=float)
        if self._plateaus is not None:
            result = result + (1 - one) * self._plateaus.sizes(good, bad)
        total = result.sum()
        return result / total if total > 0 else self.machine
