"""The posterior over builds."""

import numpy as np
import pytest

from accel_micro.bisect.dates import Dates
from accel_micro.bisect.likelihood import Grid, grid, log_likelihood, log_sum

SMALL = Grid(np.array([0.05, 0.1]), np.array([0.01, 0.02, 0.04, 0.08, 0.16]), np.array([0.01, 0.2]))
BLOCKS = [
    (np.array([0.0, 0.1, 0.02, 0.08]), (0, 6, 2, 4)),
    (np.array([0.51, 0.6, 0.59, 0.6]), (0, 6, 3, 4)),
    (np.array([0.2, 0.1, 0.2]), (5, 1, 6)),
]


def test_it_is_the_product_of_what_the_blocks_say_of_each_build() -> None:
    dates = Dates(0, 6, SMALL)
    expected = np.zeros(6)
    for first_bad in range(1, 7):
        total = SMALL.flat_prior()
        for values, builds in BLOCKS:
            total = total + log_likelihood(values, np.array([[b >= first_bad for b in builds]]), SMALL)[0]
        expected[first_bad - 1] = log_sum(total)
    for values, builds in BLOCKS:
        dates.add(values, builds)
    np.testing.assert_allclose(dates.first_bad, np.exp(expected - log_sum(expected)), rtol=1e-4)
    assert dates.first_bad.argmax() == 2  # build 3: it was seen slow, and build 2 fast
    assert dates.machine.shape == SMALL.shape and dates.machine.sum() == pytest.approx(1)


def test_builds_outside_of_the_range_are_left_out() -> None:
    whole, inner = Dates(2, 5, SMALL), Dates(2, 5, SMALL)
    whole.add(np.array([0.9, 0.1, 0.2, 0.7]), (1, 2, 5, 6))
    inner.add(np.array([0.1, 0.2]), (2, 5))
    np.testing.assert_allclose(whole.machine, inner.machine)
    before = whole.first_bad.copy()
    whole.add(np.array([0.1, 0.2]), (2, 9))  # one value alone has nothing to be compared with
    np.testing.assert_array_equal(whole.first_bad, before)


def test_unlikely_noises_can_be_left_out() -> None:
    dates = Dates(0, 6, grid("slower"))
    chance = np.random.default_rng(0)
    for _ in range(10):
        dates.add(np.array([0, 0, 0.3, 0.3]) + chance.normal(0, 0.01, 4), (0, 2, 4, 6))
    before, machine = dates.first_bad.copy(), dates.machine
    dates.narrow(1e-6)
    assert 2 <= len(dates.hypotheses.noises) < 10
    np.testing.assert_allclose(dates.first_bad, before, atol=1e-4)
    kept = np.isin(grid("slower").noises, dates.hypotheses.noises)
    np.testing.assert_allclose(dates.machine, machine[:, kept], atol=1e-4)
