"""Other ways to find change points, small, for the table that says why ours was chosen."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from accel_micro.stats.changes import Point, find_changes
from tests.stats.series import Floats

Found = list[int]


def values_of(series: list[Point]) -> Floats:
    return np.array([np.median(np.log(point.processes)) for point in series])


def ours(series: list[Point], floor: float) -> Found:
    return [change.index for change in find_changes(series, floor=floor)]


def asv(series: list[Point], floor: float) -> Found:
    """asv's L1 Potts fit, steps above the floor."""
    from asv.step_detect import detect_steps

    steps = detect_steps(list(values_of(series)))
    return [b[0] for a, b in pairwise(steps) if abs(b[2] - a[2]) > floor]


def pelt(loss: str) -> Callable[[list[Point], float], Found]:
    """Optimal partitioning, sd from differences; penalty 2 ln n (L2: 2 ln n, L1: its like), then the floor."""

    def found(series: list[Point], floor: float) -> Found:
        y = values_of(series)
        sd = max(np.median(np.abs(np.diff(y))) / 0.6745 / np.sqrt(2), 1e-9)
        cuts = _partition(y / sd, loss, 2 * np.log(len(y)))
        return _large(y, cuts, floor)

    return found


def _partition(y: Floats, loss: str, penalty: float) -> Found:
    n = len(y)
    sums, squares = np.concatenate([[0], np.cumsum(y)]), np.concatenate([[0], np.cumsum(y**2)])
    best, last = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=int)
    best[0] = -penalty
    for end in range(1, n + 1):
        firsts = np.arange(end)
        if loss == "L2":
            size = end - firsts
            cost = 0.5 * (squares[end] - squares[firsts] - (sums[end] - sums[firsts]) ** 2 / size)
        else:
            cost = np.array([np.abs(y[f:end] - np.median(y[f:end])).sum() for f in firsts]) * np.sqrt(2)
        total = best[:end] + cost + penalty
        last[end] = int(np.argmin(total))
        best[end] = total[last[end]]
    cuts, end = [], n
    while last[end] > 0:
        end = int(last[end])
        cuts.append(end)
    return cuts[::-1]


def block_permutation(series: list[Point], floor: float, block: int = 5, times: int = 199) -> Found:
    """Binary segmentation by the largest difference of ranks' means, judged by permuting blocks, p <= .01."""
    y = values_of(series)
    rng = np.random.default_rng(0)
    cuts: Found = []

    def search(first: int, end: int) -> None:
        if end - first < 10:
            return
        ranks = np.argsort(np.argsort(y[first:end])).astype(float)
        at, size = _cusum(ranks)
        blocks = np.array_split(ranks, max(2, len(ranks) // block))
        beaten = sum(
            _cusum(np.concatenate([blocks[i] for i in rng.permutation(len(blocks))]))[1] >= size
            for _ in range(times)
        )
        if (beaten + 1) / (times + 1) <= 0.01:
            cuts.append(first + at)
            search(first, first + at)
            search(first + at, end)

    search(0, len(y))
    return _large(y, sorted(cuts), floor)


def _cusum(x: Floats) -> tuple[int, float]:
    n = len(x)
    at = np.arange(1, n)
    size = np.abs(np.cumsum(x - x.mean())[:-1]) / np.sqrt(at * (n - at) / n)
    best = int(np.argmax(size))
    return best + 1, float(size[best])


def _large(y: Floats, cuts: Found, floor: float) -> Found:
    ends = [0, *cuts, len(y)]
    medians = [np.median(y[a:b]) for a, b in pairwise(ends)]
    return [cut for cut, a, b in zip(cuts, medians, medians[1:], strict=False) if abs(b - a) > floor]


METHODS: dict[str, Callable[[list[Point], float], Found]] = {
    "ours": ours,
    "asv": asv,
    "PELT L2": pelt("L2"),
    "PELT L1": pelt("L1"),
    "blocks": block_permutation,
}
