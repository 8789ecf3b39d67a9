"""Speed modes among processes: which of two sides' processes may be compared with which.

A process can run on a machine that is slow from its beginning to its end, and nothing in it shows that. Slow
processes then hide every small difference behind their own spread, and where one side caught more of them,
they look like one.

Processes are put into modes by the gaps between their log medians. A gap counts when it is far wider than
processes of one side usually lie apart. A side whose median falls into another mode must not pull the fast
processes of the other side out (that is what rules that look at one side alone do). So both sides are laid
over each other first: of all shifts that align a mode of one with a mode of the other, and no shift, the one
that leaves the fewest modes is taken, and of several the smallest. Under the null hypothesis the modes then do
not depend on which process belongs to which side, whatever share of them is slow.

Two shifts may leave equally few modes and pair other processes: where the sides differ by about as much as the modes
do, the usual processes of one lie beside the slow ones of the other. All such ways are told, since they can disagree
on which side is faster.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

FEWEST: Final = 5
"""Processes a side from which on modes are looked for; fewer do not show what is usual."""

SMALLEST_GAP: Final = math.log(1.05)
"""Modes closer than that are spread, not modes."""

_QUARTILE: Final = 0.4506
"""The first quartile of the distance between two standard normal values (Rousseeuw and Croux 1993, their Qn)."""


@dataclass(frozen=True)
class Modes:
    """Modes of two sides.

    Attributes:
        baseline, contender: for each process the number of its mode; equal numbers may be compared.
        count: how many modes there are over both.
    """

    baseline: tuple[int, ...]
    contender: tuple[int, ...]
    count: int

    @property
    def main(self) -> int:
        """The mode that most processes ran in; of equals the faster."""
        labels = (*self.baseline, *self.contender)
        return max(range(self.count), key=lambda mode: (labels.count(mode), -mode))


def find_modes(baseline: Sequence[float], contender: Sequence[float]) -> Modes:
    """The modes of two sides, in the way of the smallest shift; see `ways`."""
    return ways(baseline, contender)[0]


def ways(baseline: Sequence[float], contender: Sequence[float]) -> list[Modes]:
    """All ways to put the processes of two sides into as few modes as can be, the one of the smallest shift first.

    Args:
        baseline, contender: logs of process medians, at least one each.
    """
    sizes = len(baseline), len(contender)
    if min(sizes) < FEWEST:
        return [one_mode(*sizes)]
    gap = _gap(baseline, contender)
    groups = _groups(baseline, gap), _groups(contender, gap)
    if len(groups[0]) == len(groups[1]) == 1:
        return [one_mode(*sizes)]
    shifts = sorted([0.0, *(b - a for a in groups[0] for b in groups[1])], key=abs)
    counts = [_count(baseline, contender, shift, gap) for shift in shifts]
    fewest = [shift for shift, count in zip(shifts, counts, strict=True) if count == min(counts)]
    return list(dict.fromkeys(_laid_over(baseline, contender, shift, gap) for shift in fewest))


def _laid_over(baseline: Sequence[float], contender: Sequence[float], shift: float, gap: float) -> Modes:
    pooled = sorted(
        [(value, 0, i) for i, value in enumerate(baseline)]
        + [(value - shift, 1, i) for i, value in enumerate(contender)]
    )
    labels = [0] * len(baseline), [0] * len(contender)
    mode = 0
    for (before, _, _), (value, side, i) in pairwise([pooled[0], *pooled]):
        mode += value - before > gap
        labels[side][i] = mode
    return Modes(tuple(labels[0]), tuple(labels[1]), mode + 1)


def one_mode(baseline: int, contender: int) -> Modes:
    """All processes in one mode; how many there are of each side."""
    return Modes((0,) * baseline, (0,) * contender, 1)


def _gap(baseline: Sequence[float], contender: Sequence[float]) -> float:
    """The gap from which on two neighbours belong to different modes.

    The usual distance is the first quartile of all distances within a side: it is that of processes in one
    mode as long as a quarter of all pairs are (half of the processes may be slow), and no difference between
    the sides enters. The factor was simulated: with normal and with one mode, fewer than 2 in 1,000
    comparisons are split at any number of processes.
    """
    distances = sorted(
        abs(values[i] - values[j])
        for values in (baseline, contender)
        for i in range(len(values))
        for j in range(i)
    )
    usual = distances[math.ceil(len(distances) / 4) - 1] / _QUARTILE
    processes = (len(baseline) + len(contender)) / 2
    return max(SMALLEST_GAP, (4.5 + 200 / processes**2) * usual)


def _groups(values: Sequence[float], gap: float) -> list[float]:
    """Means of the modes of one side, ascending."""
    ordered = sorted(values)
    groups = [[ordered[0]]]
    for before, value in pairwise(ordered):
        if value - before > gap:
            groups.append([])
        groups[-1].append(value)
    return [math.fsum(group) / len(group) for group in groups]


def _count(baseline: Sequence[float], contender: Sequence[float], shift: float, gap: float) -> int:
    pooled = sorted([*baseline, *(value - shift for value in contender)])
    return 1 + sum(b - a > gap for a, b in pairwise(pooled))
