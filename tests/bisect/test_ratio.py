"""How large a step is said to be."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_micro.bisect.likelihood import Bools, Floats, grid
from accel_micro.bisect.ratio import UNKNOWN, broadened, step_ratio

GRID = grid("slower")
NOISE = np.ones(GRID.shape[1:])
BAD = np.array([False, False, True, True])


@pytest.mark.parametrize(
    ("step", "noise"), [(-0.3, 0.02), (0.0, 0.02), (0.004, 0.0005), (0.05, 0.02), (2.0, 0.0005)]
)
def test_its_interval_covers(step: float, noise: float) -> None:
    covered, widths = 0, []
    for seed in range(25):
        chance = np.random.default_rng([seed, 3])
        blocks = [(chance.normal(0, 1) + step * BAD + chance.normal(0, noise, 4), BAD) for _ in range(8)]
        ratio = step_ratio(blocks, NOISE, GRID)
        assert ratio.low < ratio.value < ratio.high
        covered += ratio.low <= math.exp(step) <= ratio.high
        widths.append(math.log(ratio.high / ratio.low))
    assert covered >= 21  # fewer come by chance once in 140
    assert 2.5 * noise / math.sqrt(8) < np.median(widths) < 7 * noise / math.sqrt(8)


def test_what_is_known_tells_a_speed_mode_from_a_step() -> None:
    # In both blocks the good build ran slow twice: without more, that looks like a build 1.7 times faster.
    slow = math.log(1.8)
    blocks = [
        (np.array([slow + 0.01, slow - 0.01, 0.07, 0.09]), BAD),
        (np.array([slow, slow + 0.02, 0.08, 0.06]), BAD),
        (np.array([0.0, slow, 0.1, 0.07]), BAD),
    ]
    prior = np.exp(-0.5 * (np.log(GRID.steps / 0.08) / 0.3) ** 2)
    ratio = step_ratio(blocks, NOISE, GRID, prior)
    assert ratio.low < math.exp(0.08) < ratio.high
    assert step_ratio(blocks, NOISE, GRID).value < 0.7


def test_a_step_that_is_known_to_be_upwards_has_an_interval_above_one() -> None:
    chance = np.random.default_rng(0)
    for _ in range(10):
        blocks = [(0.02 * BAD + chance.normal(0, 0.02, 4), BAD) for _ in range(2)]
        assert step_ratio(blocks, NOISE, GRID, np.ones(len(GRID.steps))).low > 1


@pytest.mark.parametrize("step", [0.0003, 0.0006, 0.001, 0.002])
@pytest.mark.parametrize("direction", ["slower", "faster"])
def test_a_step_below_all_hypotheses_lies_in_its_interval(direction: str, step: float) -> None:
    hypotheses, sign = grid(direction), 1 if direction == "slower" else -1
    chance = np.random.default_rng(1)
    blocks = [(sign * step * BAD + chance.normal(0, 1e-6, 4), BAD) for _ in range(8)]
    quiet = NOISE * (hypotheses.noises[:, None] < 1e-3)
    ratio = step_ratio(blocks, quiet, hypotheses, np.ones(len(hypotheses.steps)))
    assert ratio.low < ratio.value < ratio.high and ratio.low < math.exp(sign * step) < ratio.high
    assert math.log(ratio.value) == pytest.approx(sign * step, abs=1e-4)
    assert ratio.low > 1 if sign > 0 else ratio.high < 1


def test_without_both_sides_nothing_is_known() -> None:
    assert step_ratio([], NOISE, GRID) is UNKNOWN
    assert step_ratio([(np.zeros(2), np.array([True, True]))], NOISE, GRID) is UNKNOWN


def test_what_is_known_of_the_ends_tells_the_order_of_magnitude_of_a_step_alone() -> None:
    known = np.zeros(2 * len(GRID.steps))
    both = np.concatenate([-GRID.steps[::-1], GRID.steps])
    known[len(known) - 12] = 1.0
    spread = broadened(known, both)
    middle = both[len(known) - 12]
    assert spread.sum() == pytest.approx(1)
    likely = both[spread > 0]
    assert likely.min() > 0, "never of the other direction"
    assert middle / 3.01 < likely.min() < middle / 2 and 2 * middle < likely.max() < 3.01 * middle
    np.testing.assert_allclose(spread[spread > 0], spread[len(known) - 12])
    np.testing.assert_allclose(broadened(np.ones(len(both)), both).sum(), len(both))


def test_an_interval_is_as_wide_as_is_asked_for() -> None:
    chance = np.random.default_rng(0)
    blocks = [(0.05 * BAD + chance.normal(0, 0.02, 4), BAD) for _ in range(6)]
    usual, wide = (step_ratio(blocks, NOISE, GRID, tail=tail) for tail in (0.025, 0.0075))
    assert wide.low < usual.low < usual.value < usual.high < wide.high
    assert wide.value == pytest.approx(usual.value, rel=1e-3)  # another grid


def test_one_block_of_which_a_value_strayed_is_not_taken_for_no_step() -> None:
    values = np.log([0.2899, 0.05635, 0.05766, 0.4314])
    likely = np.exp(-0.5 * (np.log(GRID.noises / 0.14) / 0.3) ** 2)
    noise = likely[:, None] * np.array([0.51, 0.39, 0.1])
    prior = np.where(GRID.steps < 0.45, 0.016, 0.088)  # a large step, and perhaps one that others undo
    ratio = step_ratio([(values, np.array([True, False, False, True]))], noise, GRID, prior)
    assert 4 < ratio.value < 8


def some_blocks(
    seed: int, count: int, step: float, noise: float, slow: float = 0.0
) -> list[tuple[Floats, Bools]]:
    """Blocks of two processes a side; with a chance of `slow` each of them runs 1.8 times as long."""
    chance = np.random.default_rng([seed, 7])
    blocks = []
    for _ in range(count):
        values = chance.normal(0, 0.3) + step * BAD + chance.normal(0, noise, 4)
        blocks.append((values + math.log(1.8) * (chance.random(4) < slow), BAD))
    return blocks


def near(step: float) -> Floats:
    """What a search knows of a step, as a confirmed one is told."""
    return broadened(np.exp(-0.5 * (np.log(GRID.steps / step) / 0.3) ** 2), GRID.steps)


def machine(noise: float) -> Floats:
    """What a search knows of the noise and the strays."""
    likely = np.exp(-0.5 * (np.log(GRID.noises / noise) / 0.4) ** 2)
    return np.asarray(likely[:, None] * np.array([0.4, 0.4, 0.2]))


def test_few_blocks_of_a_machine_with_two_speeds_have_a_ratio_of_the_right_size() -> None:
    # A narrow peak and a long tail of larger steps beside it, where values may have strayed: once it said 2.8e-8.
    for seed in range(40):
        ratio = step_ratio(
            some_blocks(seed, 2, math.log(5), 0.1, 0.3), machine(0.1), GRID, near(math.log(5)), 0.0075
        )
        assert 1 < ratio.low < ratio.value < ratio.high < math.inf
        assert 5 / 3 < ratio.value < 5 * 3


@pytest.mark.parametrize("count", [1, 2, 4])
def test_its_middle_is_not_off_to_one_side(count: int) -> None:
    found = [
        step_ratio(some_blocks(seed, count, 1.6, 0.02), machine(0.02), GRID, near(1.6)).value
        for seed in range(60)
    ]
    assert np.mean(np.log(found)) == pytest.approx(1.6, abs=4 * 0.02 / math.sqrt(count * 60))


LOGS = st.floats(-3, 3)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(LOGS, min_size=4, max_size=4).map(np.array), min_size=1, max_size=4),
    st.sampled_from(["slower", "faster", "either"]),
    st.sampled_from([0.005, 0.05, 0.3]),
)
def test_whatever_the_blocks_the_middle_lies_in_the_interval_and_on_the_side_that_is_known(
    values: list[Floats], direction: str, noise: float
) -> None:
    hypotheses = grid(direction)
    blocks = [(each, BAD) for each in values]
    ratio = step_ratio(blocks, machine(noise), hypotheses, np.ones(len(hypotheses.steps)))
    assert 0 < ratio.low <= ratio.value <= ratio.high < math.inf
    assert direction == "either" or (ratio.low >= 1 if direction == "slower" else ratio.high <= 1)
    without = step_ratio(blocks, machine(noise), hypotheses)
    assert without.low <= without.value <= without.high


def test_sides_that_are_swapped_turn_it_over() -> None:
    for seed in range(10):
        blocks = some_blocks(seed, 3, 0.1, 0.02)
        there = step_ratio(blocks, machine(0.02), GRID)
        back = step_ratio([(values, ~bad) for values, bad in blocks], machine(0.02), GRID)
        turned = 1 / np.array([back.value, back.high, back.low])
        np.testing.assert_allclose([there.value, there.low, there.high], turned, rtol=1e-3)
