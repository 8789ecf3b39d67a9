"""The likelihood of a block, against what it stands for."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from accel_micro.bisect.likelihood import STRAY_DENSITY, Grid, capped, grid, log_likelihood, log_sum

ONE = Grid(np.array([0.05]), np.array([0.02]), np.array([0.1]))


def by_integral(values: list[float], bad: list[bool], step: float, noise: float, share: float) -> float:
    """The same by integrating over the speed, term by term: which of the processes stray."""
    total = 0.0
    for stray in itertools.product([False, True], repeat=len(values)):
        kept = [y - step * b for y, b, s in zip(values, bad, stray, strict=True) if not s]
        if kept:
            whole, _ = quad(
                lambda speed, kept=kept: float(np.prod(norm.pdf(kept, speed, noise))),
                min(kept) - 1, max(kept) + 1, points=sorted(kept), limit=200,
            )  # fmt: skip
            total += (1 - share) ** len(kept) * (share * STRAY_DENSITY) ** (len(values) - len(kept)) * whole
    return math.log(total)


@pytest.mark.parametrize(
    ("values", "bad"),
    [
        ([0.0, 0.01, 0.06], [False, False, True]),
        ([0.0, 0.6, 0.05, 0.64], [False, False, True, True]),
        ([0.3], [True]),
        ([0.0, 0.0], [True, True]),
    ],
)
def test_it_is_the_integral_over_the_speed_of_the_block(values: list[float], bad: list[bool]) -> None:
    found = log_likelihood(np.array(values), np.array([bad]), ONE)
    assert found.shape == (1, 1, 1, 1)
    assert found.item() == pytest.approx(by_integral(values, bad, 0.05, 0.02, 0.1), abs=1e-4)


@given(
    st.lists(st.tuples(st.floats(-2, 2), st.booleans()), min_size=1, max_size=6),
    st.floats(-20, 20),
)
def test_a_block_that_is_slower_as_a_whole_tells_the_same(block: list[tuple[float, bool]], by: float) -> None:
    values, bad = np.array([value for value, _ in block]), np.array([[is_bad for _, is_bad in block]])
    hypotheses = grid("slower")
    before = log_likelihood(values, bad, hypotheses)
    assert np.isfinite(before).all()
    np.testing.assert_allclose(log_likelihood(values + by, bad, hypotheses), before, atol=2e-3)


def test_a_step_down_is_a_step_up_seen_from_the_other_side() -> None:
    values, bad = np.array([0.1, 0.12, 0.3, 0.28]), np.array([[False, False, True, True]])
    up, down = (log_likelihood(values, bad, grid(direction)) for direction in ("slower", "faster"))
    swapped = log_likelihood(values, ~bad, grid("faster"))
    assert not np.allclose(up, down, atol=0.1)
    np.testing.assert_allclose(swapped, up, atol=1e-3)
    either = log_likelihood(values, bad, grid("either"))
    np.testing.assert_allclose(either, np.concatenate([down[:, ::-1], up], axis=1), atol=1e-3)


def test_an_unknown_direction_is_refused() -> None:
    with pytest.raises(ValueError, match="slower, faster, either, not 'sideways'"):
        grid("sideways")


def test_log_sums_do_not_overflow() -> None:
    assert log_sum(np.array([1000.0, 1000.0])) == pytest.approx(1000 + math.log(2))
    np.testing.assert_allclose(
        log_sum(np.array([[-2000.0, -2000.0], [0.0, 0.0]]), axis=1), [-2000 + math.log(2), math.log(2)]
    )


def test_groups_beyond_the_largest_step_are_laid_there_and_keep_their_noise() -> None:
    largest = grid("slower").steps.max()
    values = np.array([7.01, 0.02, 0.0, 6.99])
    laid = [largest + 0.02, 0.02, 0.0, largest]
    np.testing.assert_allclose(capped(values), laid)
    np.testing.assert_allclose(capped(values[::-1]), capped(values)[::-1])
    near = np.array([0.0, 2.0, 4.0, 0.1])
    np.testing.assert_array_equal(capped(near), near)
    np.testing.assert_allclose(capped(np.array([0.0, 5.0, 10.0])), [0.0, largest, largest])
    np.testing.assert_array_equal(capped(np.array([3.0])), [3.0])
