"""At which build the step is: a posterior over the builds of a range, fed block by block."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from accel_micro.bisect.likelihood import Floats, Grid, log_likelihood


class Dates:
    """Which build of a range is the first bad one, if exactly one step is within.

    The range holds builds `low` to `high`, both included; the first bad one is any of `low + 1` to `high`, each as
    likely at first.
    """

    def __init__(self, low: int, high: int, hypotheses: Grid) -> None:
        self.low, self.high, self.hypotheses = low, high, hypotheses
        self._log = np.broadcast_to(hypotheses.flat_prior(), (high - low, *hypotheses.shape)).copy()
        self._first: Floats | None = None
        self._machine: Floats | None = None

    def add(self, values: Floats, builds: Sequence[int]) -> None:
        """Take in one block; builds outside of the range are left out.

        Args:
            values: log seconds, shape (m,). builds: the number of each value's build.
        """
        inside = [i for i, build in enumerate(builds) if self.low <= build <= self.high]
        if len(inside) < 2:
            return
        numbers = np.array([builds[i] for i in inside])
        cuts = np.unique(numbers)
        # Between two cuts the same builds are bad, so the likelihood is worked out once for each.
        patterns = numbers >= np.append(cuts, self.high + 1)[:, None]
        likelihood = log_likelihood(values[inside], patterns, self.hypotheses)
        edges = [0, *(int(cut) - self.low for cut in cuts), self.high - self.low]
        for pattern, (first, end) in enumerate(pairwise(edges)):
            self._log[first:end] += likelihood[pattern]
        self._first = None

    def narrow(self, least: float) -> None:
        """Leave out noises that are less likely than this, but for the neighbours of those that are not."""
        likely = np.flatnonzero(self.machine.sum(axis=(0, 2)) > least)
        kept = slice(max(int(likely[0]) - 1, 0), int(likely[-1]) + 2)
        self.hypotheses = self.hypotheses.narrowed(kept)
        self._log = self._log[:, :, kept].copy()
        self._first = None

    def _solve(self) -> tuple[Floats, Floats]:
        if self._first is None or self._machine is None:
            self._log -= self._log.max()
            weights = np.exp(
                self._log.astype(np.float32)
            )  # a third of the time; sums are of positive numbers
            self._first = weights.sum(axis=(1, 2, 3), dtype=float)
            self._machine = weights.sum(axis=0, dtype=float) / self._first.sum()
            self._first /= self._first.sum()
        return self._first, self._machine

    @property
    def first_bad(self) -> Floats:
        """Probability of being the first bad one of builds `low + 1` to `high`, shape (high - low,)."""
        return self._solve()[0]

    @property
    def machine(self) -> Floats:
        """Probability of each hypothesis about step, noise and strays, shape (D, S, P)."""
        return self._solve()[1]
