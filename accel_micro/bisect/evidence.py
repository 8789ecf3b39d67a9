"""Evidence that two builds differ, which may be looked at after every block.

Both builds run twice in a block, in an order drawn at random. If they do not differ, every assignment of the labels to
the values of a block was as likely, whatever the noise, the drift, the modes of the machine. So the ratio

    likelihood of the labels as they were ÷ mean over all assignments of labels

has expectation 1, and the product over blocks is a non-negative martingale: by Ville's inequality (1939) it ever
reaches 1/a with a probability of at most a. The likelihood may come from any model that was fixed before the block was
measured; a bad model costs power and never validity. This is a permutation test that may stop at any time.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from typing import Final

import numpy as np

from accel_micro.bisect.likelihood import Bools, Floats, Grid, capped, log_likelihood, log_sum

FUTILE_STEP: Final = 0.9
"""In units of the noise: a gate gives up once steps as large as this are `FUTILE_ODDS` less likely than none."""

FUTILE_ODDS: Final = math.log(50)


class Evidence:
    """Evidence that builds of one pair differ the way that the hypotheses say."""

    def __init__(self, hypotheses: Grid, log_weights: Floats) -> None:
        """Start with none.

        Args:
            log_weights: of the hypotheses before the first block, shape (D, S, P).
        """
        self.hypotheses = hypotheses
        self.weights = log_weights
        self.prior = np.exp(log_sum(log_weights, axis=(1, 2)))
        self.log_evidence = 0.0
        self.highest = 0.0
        self.blocks = 0
        self._with_step = np.zeros(hypotheses.shape)
        self._without = np.zeros(hypotheses.shape[1:])
        self._along = 0.0

    def add(self, values: Floats, bad: Sequence[bool]) -> None:
        """Take in one block.

        Args:
            values: log seconds, shape (m,). bad: which of them are the second build's.
        """
        if all(bad) or not any(bad):
            return
        values = capped(values)
        patterns, actual = _assignments(tuple(bad))
        likelihood = log_likelihood(values, patterns, self.hypotheses)
        seen = log_sum(likelihood + self.weights, axis=(1, 2, 3))
        self.log_evidence += float(seen[actual] - log_sum(seen)) + math.log(len(patterns))
        self.highest = max(self.highest, self.log_evidence)
        self.weights = self.weights + likelihood[actual]
        self.weights -= log_sum(self.weights)
        self._with_step += likelihood[actual]
        none = Grid(np.zeros(1), self.hypotheses.noises, self.hypotheses.shares)
        self._without += log_likelihood(values, np.zeros((1, len(values)), dtype=bool), none)[0, 0]
        self.blocks += 1
        sides = np.array(bad)
        self._along += float(np.sign(values[sides][:, None] - values[~sides]).sum())

    @property
    def is_opposite(self) -> bool:
        """Whether the builds differ the other way: more often than not the second one's values lie on that side.

        Where noise is tiny, builds that differ the other way fit the hypotheses better than any mixing of their labels
        does, by values that count as strays. That refutes that they are alike, and is not what is searched.
        """
        signs = set(np.sign(self.hypotheses.steps))
        return len(signs) == 1 and self._along * signs.pop() < 0

    def reaches(self, level: float) -> bool:
        """Whether no difference is refuted at this level."""
        return self.highest >= -math.log(level)

    def is_futile(self) -> bool:
        """Whether a step of about the noise would have shown by now."""
        steps, noises = self.hypotheses.steps, self.hypotheses.noises
        small = np.abs(steps)[:, None] < FUTILE_STEP * noises
        large = np.where(small[..., None], -np.inf, self._with_step)
        within = large.max(axis=0, initial=-1e300)
        return bool(log_sum(within) - log_sum(self._without) < -FUTILE_ODDS)


@lru_cache(maxsize=256)
def _assignments(bad: tuple[bool, ...]) -> tuple[Bools, int]:
    """Every way to put the labels on the values, and which of them is this one."""
    chosen = list(combinations(range(len(bad)), sum(bad)))
    patterns = np.zeros((len(chosen), len(bad)), dtype=bool)
    for row, places in zip(patterns, chosen, strict=True):
        row[list(places)] = True
    return patterns, chosen.index(tuple(i for i, each in enumerate(bad) if each))
