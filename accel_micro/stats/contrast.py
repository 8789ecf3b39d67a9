"""The difference of two sides on the log scale, with its standard error: within speed modes, or turn by turn."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from accel_micro.stats import student
from accel_micro.stats.modes import Modes, one_mode

FEWEST_TURNS: Final = 4
"""Turns from which on a difference by turns is looked for: three degrees of freedom."""

TRIMMED: Final = 0.2
"""Share of the turns that is set aside at each end: Yuen's choice (1974), a compromise between noise that is normal and
noise that strays."""

_TOO_NARROW: Final = 5.0
"""The trimmed t finds too much at small levels: with ten normal differences 1.7 times 0.5 %. An error that is larger by
the factor 1 + 5·cut ÷ (count · degrees) holds each level from 5 % to 0.02 %, at 5 to 40 differences (a million
simulated)."""

_FEWEST_IN_MODE: Final = 3


@dataclass(frozen=True)
class Contrast:
    """The difference of two sides on the log scale.

    Attributes:
        difference: mean log median of the contender less that of the baseline.
        error: its standard error. degrees: of freedom of that.
        variances: of the log medians of baseline and contender, within modes.
        set_aside: processes of each side that do not enter.
        ways: of how many contrasts it was chosen, which have to share the level.
    """

    difference: float
    error: float
    degrees: float
    variances: tuple[float, float]
    set_aside: tuple[int, int] = (0, 0)
    ways: int = 1

    @property
    def p_value(self) -> float:
        """Of no difference, two-sided."""
        if self.error == 0:
            return 1.0 if self.difference == 0 else 0.0
        return student.p_value(self.degrees, self.difference / self.error)

    def half_width(self, confidence: float) -> float:
        """Of the interval of the difference."""
        return student.margin(round(self.degrees, 3), confidence) * self.error


def within_modes(
    baseline: Sequence[float], contender: Sequence[float], modes: Modes, noise: tuple[float, float]
) -> Contrast:
    """The difference within modes, weighted as their processes allow; with a single mode it is Welch's.

    A mode counts when it holds three processes of each side; when none does, the one that tells most.
    """
    cells = [
        (
            [y for y, mode in zip(baseline, modes.baseline, strict=True) if mode == m],
            [y for y, mode in zip(contender, modes.contender, strict=True) if mode == m],
        )
        for m in range(modes.count)
    ]
    shared = [cell for cell in cells if cell[0] and cell[1]]
    if not shared:
        return within_modes(baseline, contender, one_mode(len(baseline), len(contender)), noise)
    used = [cell for cell in shared if min(map(len, cell)) >= _FEWEST_IN_MODE] or [max(shared, key=_weight)]
    total = math.fsum(map(_weight, used))
    difference = math.fsum(_weight(cell) * (mean(cell[1]) - mean(cell[0])) for cell in used) / total
    variances: list[float] = []
    parts: list[float] = []
    degrees: list[int] = []
    for side in (0, 1):
        free = sum(len(cell[side]) - 1 for cell in used)
        squares = math.fsum((y - mean(cell[side])) ** 2 for cell in used for y in cell[side])
        # A few processes can agree by luck; they cannot agree better than their own samples' scatter lets them.
        variances.append(max(squares / free if free else 0.0, noise[side]))
        parts.append(
            variances[side] * math.fsum((_weight(cell) / total) ** 2 / len(cell[side]) for cell in used)
        )
        degrees.append(free)
    error = math.sqrt(sum(parts))
    below = math.fsum(part**2 / free for part, free in zip(parts, degrees, strict=True) if free)
    return Contrast(
        difference=difference,
        error=error,
        degrees=sum(parts) ** 2 / below if below > 0 else float(max(sum(degrees), 1)),
        variances=(variances[0], variances[1]),
        set_aside=(
            len(baseline) - sum(len(cell[0]) for cell in used),
            len(contender) - sum(len(cell[1]) for cell in used),
        ),
    )


def _weight(cell: tuple[Sequence[float], Sequence[float]]) -> float:
    return len(cell[0]) * len(cell[1]) / (len(cell[0]) + len(cell[1]))


def by_turns(baseline: Sequence[float], contender: Sequence[float], noise: tuple[float, float]) -> Contrast:
    """The mean difference of processes that ran one after the other, the strayed ones trimmed.

    A machine that is slower for minutes slows both processes of a turn, and their difference does not show it. One
    that changes between the two leaves a difference that strays. Trimmed mean and its t-test by Tukey and McLaughlin
    (1963): the error is that of the winsorised differences, the degrees of freedom are those of what is left.

    Args:
        baseline, contender: logs of process medians by turn, equally many, at least `FEWEST_TURNS`.
        noise: as for `within_modes`.
    """
    differences = sorted(c - b for b, c in zip(baseline, contender, strict=True))
    count = len(differences)
    cut = int(TRIMMED * count)
    kept = differences[cut : count - cut]
    winsorised = [kept[0]] * cut + kept + [kept[-1]] * cut
    centre = mean(winsorised)
    squares = math.fsum((value - centre) ** 2 for value in winsorised)
    degrees = len(kept) - 1
    error = math.sqrt(squares / (count - 1) / count) / (1 - 2 * cut / count)
    error *= 1 + _TOO_NARROW * cut / (count * degrees)
    # As there, differences cannot agree better than the scatter of samples lets them.
    error = max(error, math.sqrt(sum(noise) / count))
    half = error**2 * count / 2
    return Contrast(mean(kept), error, float(degrees), (half, half))


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean, exact for equal values."""
    # About the first value, so that equal values have exactly that mean, and differences of sides are exact.
    first = values[0]
    return first + math.fsum(value - first for value in values) / len(values)
