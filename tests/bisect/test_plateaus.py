"""Two steps in one range: where each is, and how large."""

import itertools
import math

import numpy as np
import pytest

from accel_micro.bisect.dates import Dates
from accel_micro.bisect.likelihood import Grid, grid, log_likelihood
from accel_micro.bisect.plateaus import SHARES, Plateaus

SMALL = Grid(np.array([0.02, 0.04, 0.08, 0.16]), np.array([0.01, 0.02]), np.array([0.01, 0.1]))
FLAT = np.full(SMALL.shape, 1 / math.prod(SMALL.shape))


def blocks_of(
    levels: np.ndarray, count: int, seed: int, noise: float = 0.02
) -> list[tuple[np.ndarray, list[int]]]:
    """Blocks of both ends and two others, as the search asks for them."""
    chance, last = np.random.default_rng(seed), len(levels) - 1
    blocks = []
    for _ in range(count):
        builds = [0, last, *map(int, chance.choice(np.arange(1, last), 2, replace=False))]
        blocks.append((chance.normal(0, 1) + levels[builds] + chance.normal(0, noise, 4), builds))
    return blocks


def brute_force(
    blocks: list[tuple[np.ndarray, list[int]]], last: int
) -> tuple[dict[tuple[int, int, int], float], float]:
    """Probability of first bad builds and share, by going through all pairs of builds; and the log evidence."""
    logs = {}
    pairs = list(itertools.combinations(range(1, last + 1), 2))
    for (k1, k2), (place, share) in itertools.product(pairs, enumerate(SHARES)):
        levels = share * (np.arange(last + 1) >= k1) + (1 - share) * (np.arange(last + 1) >= k2)
        log = SMALL.flat_prior() + sum(
            log_likelihood(values, levels[builds][None], SMALL)[0] for values, builds in blocks
        )
        logs[k1, k2, place] = float(np.logaddexp.reduce(log, axis=None)) - math.log(len(pairs) * len(SHARES))
    evidence = float(np.logaddexp.reduce(list(logs.values())))
    return {key: math.exp(log - evidence) for key, log in logs.items()}, evidence


@pytest.mark.parametrize("seed", range(3))
def test_cells_give_what_all_pairs_of_builds_give(seed: int) -> None:
    last = 9
    blocks = blocks_of(0.04 * np.arange(10.0).clip(3, 4) + 0.04 * (np.arange(10) >= 7), 4, seed)
    plateaus = Plateaus(0, last, SMALL, FLAT)
    for values, builds in blocks:
        plateaus.add(values, builds)
    exact, evidence = brute_force(blocks, last)
    assert plateaus.log_evidence == pytest.approx(evidence, abs=1e-4)
    # A cell that was never cut spreads its probability evenly, so sums between builds that were measured agree.
    measured = sorted({build for _, builds in blocks for build in builds})
    first_bad = plateaus.first_bad
    for good, bad in itertools.pairwise(measured):
        wanted = sum(
            probability * (int(good < k1 <= bad and SHARES[s] > 0) + int(good < k2 <= bad and SHARES[s] < 1))
            for (k1, k2, s), probability in exact.items()
        )
        assert first_bad[good:bad].sum() == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize(
    ("sizes", "found"),
    [((0.08, 0.08), (True, True)), ((0.08, -0.04), (True, False)), ((-0.04, 0.08), (False, True))],
)
def test_two_steps_are_told_from_one_and_have_their_places_and_sizes(
    sizes: tuple[float, float], found: tuple[bool, bool]
) -> None:
    at = (6, 14)
    numbers = np.arange(21)
    levels = sum(size * (numbers >= first) for size, first in zip(sizes, at, strict=True))
    dates = Dates(0, 20, grid("slower"))
    ends = [(levels[[0, 20, 20, 0]] + noise, [0, 20, 20, 0]) for noise in _noise(10)]
    for values, builds in ends:
        dates.add(values, builds)
    dates.narrow(1e-6)
    assert dates.one_step > 0.5
    for values, builds in blocks_of(np.asarray(levels), 60, 1):
        dates.add(values, builds)
    assert dates.one_step < 1e-3
    for size, first, wanted in zip(sizes, at, found, strict=True):
        assert (dates.first_bad[first - 1] > 0.8) == wanted
        if wanted:
            of_size = dates.sizes(first - 1, first).sum(axis=(1, 2))
            likely = dates.hypotheses.steps[int(of_size.argmax())]
            assert size / 1.4 < likely < 1.4 * size and of_size.sum() == pytest.approx(1)


def _noise(count: int) -> np.ndarray:
    return np.random.default_rng(5).normal(0, 0.02, (count, 4))


def test_one_step_stays_one() -> None:
    levels = 0.08 * (np.arange(21) >= 6)
    dates = Dates(0, 20, grid("slower"))
    for values, builds in [(levels[[0, 20, 20, 0]] + noise, [0, 20, 20, 0]) for noise in _noise(10)]:
        dates.add(values, builds)
    dates.narrow(1e-6)
    for values, builds in blocks_of(levels, 40, 2):
        dates.add(values, builds)
    assert dates.one_step > 0.5 and dates.first_bad[5] > 0.95
    assert dates.machine.sum() == pytest.approx(1)


def test_either_way_both_steps_are_searched_for() -> None:
    both = Plateaus(0, 9, grid("either"), np.full(grid("either").shape, 1.0))
    assert both.first_bad.sum() == pytest.approx(2, abs=1e-5)
    slower = Plateaus(0, 9, grid("slower"), np.full(grid("slower").shape, 1.0))
    assert slower.first_bad.sum() == pytest.approx(4 / 3, abs=1e-5)
