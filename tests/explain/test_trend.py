"""Mann and Kendall's test: known answers, scipy's, and how often it is wrong."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from accel_micro.explain.trend import fall, falling


def test_a_series_that_falls_and_one_that_rises() -> None:
    assert falling([list(range(10, 0, -1))]) < 1e-4
    assert falling([list(range(10))]) == 1.0
    assert falling([[1.0] * 10]) == 1.0 and falling([]) == 1.0


def test_the_exact_figures_of_a_small_series() -> None:
    # S = 1 - 9 = -8 of ten pairs: z = 7 ÷ sqrt(5·4·15 ÷ 18) = 1.7146
    assert falling([[5.0, 4.0, 2.0, 3.0, 1.0]]) == pytest.approx(0.0432, abs=1e-4)


@settings(deadline=None)
@given(st.lists(st.floats(0.5, 2.0), min_size=8, max_size=30, unique=True))
def test_it_agrees_with_kendalls_tau(series: list[float]) -> None:
    tau = kendalltau(range(len(series)), series)
    n = len(series)
    deviation = (n * (n - 1) * (2 * n + 5) / 18) ** 0.5
    z = tau.statistic * n * (n - 1) / 2 / deviation
    found = falling([series])
    assert (found < 0.5) == (z < -1.0 / deviation) or found == pytest.approx(0.5)


def test_series_without_a_trend_seldom_seem_to_fall() -> None:
    drawn = random.Random(3)
    wrong = sum(
        falling([[drawn.gauss(1, 0.1) for _ in range(9)] for _ in range(5)]) < 0.05 for _ in range(400)
    )
    assert wrong / 400 < 0.08


def test_the_size_of_a_fall() -> None:
    assert fall([2.0, 2.0, 1.5, 1.0, 1.0, 1.0]) == 0.5 and fall([1.0, 1.0]) == 0.0
