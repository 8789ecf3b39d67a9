"""An epoch as a·images + b·steps, from published epochs of two batch sizes or more."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

CONFIDENCE: Final = 0.95


@dataclass(frozen=True)
class Epoch:
    """What an epoch did, and the seconds that were published for it."""

    batch: int
    images: int
    steps: int
    seconds: float


@dataclass(frozen=True)
class Line:
    """Epochs of one model on one device, as a·images + b·steps.

    Attributes:
        per_image, per_step: a and b, seconds.
        halves: half-widths of their intervals of 95 %; None where no batch size was repeated, as two sizes alone
            always lie on a line.
        shares: of an epoch that is b·steps, at each of `batches`.
        margin: the share by which the longer of the two outer epochs would have to be off for b to be zero.
    """

    batches: tuple[int, ...]
    per_image: float
    per_step: float
    halves: tuple[float, float] | None
    shares: tuple[float, ...]
    margin: float

    @property
    def is_possible(self) -> bool:
        """Neither an image nor a step takes less than nothing, by more than an interval where there is one."""
        halves = self.halves or (0.0, 0.0)
        return self.per_image + halves[0] >= 0 and self.per_step + halves[1] >= 0


def fit(epochs: Sequence[Epoch]) -> Line | None:
    """The line through these epochs, weighted so that relative errors count. None for one number of steps alone.

    The interval is Student's, from the scatter of epochs of the same batch (pure error; Draper and Smith, Applied
    Regression Analysis, ch. 2): what does not lie on the line is not taken for noise.
    """
    batches = sorted({epoch.batch for epoch in epochs})
    raw = np.array([[epoch.images, epoch.steps] for epoch in epochs], dtype=float)
    if np.linalg.matrix_rank(raw) < 2:
        return None
    y = np.array([epoch.seconds for epoch in epochs])
    means = {
        batch: math.fsum(e.seconds for e in epochs if e.batch == batch)
        / sum(e.batch == batch for e in epochs)
        for batch in batches
    }
    weights = np.array([1.0 / means[epoch.batch] for epoch in epochs])
    design = raw * weights[:, None]
    scale = np.linalg.norm(
        design, axis=0
    )  # images are many and steps few: columns of one length are solved exactly
    per_image, per_step = np.linalg.lstsq(design / scale, y * weights, rcond=None)[0] / scale
    halves = None
    freedom = len(epochs) - len(batches)
    if freedom > 0:
        from scipy.special import stdtrit

        pure = math.fsum(((e.seconds / means[e.batch]) - 1) ** 2 for e in epochs) / freedom
        covariance = np.linalg.inv((design / scale).T @ (design / scale)) / np.outer(scale, scale) * pure
        t = float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
        halves = (t * math.sqrt(covariance[0, 0]), t * math.sqrt(covariance[1, 1]))
    steps = {epoch.batch: epoch.steps for epoch in epochs}
    first, last = means[batches[0]], means[batches[-1]]
    return Line(
        tuple(batches),
        float(per_image),
        float(per_step),
        halves,
        tuple(float(per_step) * steps[batch] / means[batch] for batch in batches),
        abs(first - last) / max(first, last),
    )
