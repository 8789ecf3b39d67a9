"""A sound machine is blessed, and one whose p-values are too small is not: simulated with the judge itself."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.stats import judge
from accel_micro.stats.false_alarms import (
    comparisons,
    false_alarms,
    groups_a_comparison,
    p_values,
    split,
)
from tests.stats.worlds import SOUND, World, in_step, processes

ALPHA = 0.01
JUDGE = partial(judge, alpha=ALPHA, turns=True)
MACHINES = 2000


def pool(world: World, side: int, count: int) -> np.ndarray:
    """P-values of independent A/A comparisons in that world."""
    chance = np.random.default_rng(7)
    logs = [world(chance, 2 * side) for _ in range(count)]
    return np.array([JUDGE(*split(processes(each))).p_value for each in logs])


def refused(values: np.ndarray, of_each: int) -> float:
    """Share of machines, each with so many comparisons, that are found to exceed the level."""
    drawn = np.random.default_rng(8).choice(values, (MACHINES, of_each))
    return sum(false_alarms(list(map(float, each)), ALPHA).exceeds for each in drawn) / MACHINES


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("side", [4, 10])
def test_a_sound_machine_is_refused_at_most_five_times_in_a_hundred(name: str, side: int) -> None:
    assert refused(pool(SOUND[name], side, MACHINES), 24) <= 0.05


def test_a_machine_with_three_times_the_promised_rate_is_mostly_refused_after_half_an_hour() -> None:
    # Normal deviates that are 1.187 times too wide: 3 % of them are beyond the critical value of 1 %.
    chance = np.random.default_rng(9)
    values = np.vectorize(math.erfc)(np.abs(1.187 * chance.normal(size=20_000)) / math.sqrt(2))
    assert np.mean(values < ALPHA) == pytest.approx(0.03, abs=0.004)
    assert refused(values, 200) > 0.9
    # Five minutes do not show that, and say so.
    assert refused(values, 24) < 0.5
    assert false_alarms(list(map(float, values[:24])), ALPHA).findable > 0.03


def test_a_machine_disturbed_in_step_with_the_comparison_is_refused() -> None:
    values = pool(in_step, 10, MACHINES)
    assert np.mean(values < ALPHA) > 3 * ALPHA
    assert refused(values, 24) > 0.8


def test_the_findable_rate_is_found_four_times_in_five() -> None:
    # The uniform p-values of deviates with the variance at which that rate is promised.
    findable = false_alarms([0.5] * 24, ALPHA).findable
    deviate = 2.5758
    wide = deviate / (math.sqrt(2) * _inverse_erfc(findable))
    chance = np.random.default_rng(10)
    values = np.vectorize(math.erfc)(np.abs(wide * chance.normal(size=(MACHINES, 24))) / math.sqrt(2))
    found = sum(false_alarms(list(map(float, each)), ALPHA).low > ALPHA for each in values) / MACHINES
    assert found == pytest.approx(0.8, abs=0.03)


def _inverse_erfc(value: float) -> float:
    from scipy.special import erfcinv

    return float(erfcinv(value))


@given(st.lists(st.floats(0, 1), max_size=40), st.floats(0.001, 0.2))
def test_rates_lie_in_their_intervals(values: list[float], alpha: float) -> None:
    found = false_alarms(values, alpha)
    assert 0 <= found.counted_low <= found.counted_high <= 1
    assert found.comparisons == len(values)
    if values:
        assert found.counted_low <= found.alarms / found.comparisons <= found.counted_high
        assert found.low <= found.rate <= found.high


def test_nothing_measured_is_no_reason_to_refuse() -> None:
    found = false_alarms([], ALPHA)
    assert not found.exceeds
    assert math.isnan(found.rate)
    assert (found.low, found.high, found.counted_low, found.counted_high) == (0, 1, 0, 1)


def test_intervals_by_counting_are_those_of_clopper_and_pearson() -> None:
    from scipy.stats import binomtest

    found = false_alarms([0.001, 0.002, *[0.5] * 28], ALPHA)
    expected = binomtest(2, 30).proportion_ci(0.975, "exact")
    assert (found.counted_low, found.counted_high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(("values", "alpha"), [([0.5], 0.0), ([0.5], 1.0), ([1.5], 0.01), ([math.nan], 0.01)])
def test_nonsense_is_refused(values: list[float], alpha: float) -> None:
    with pytest.raises(ValueError, match=r"alpha must|p-value is not"):
        false_alarms(values, alpha)


@given(st.lists(st.integers(0, 130), min_size=1, max_size=9))
def test_comparisons_are_disjoint_and_of_whole_groups(counts: list[int]) -> None:
    cases = [[[float(i + 1)] for i in range(count)] for count in counts]
    size = groups_a_comparison(cases)
    assert 2 <= size <= 5
    for case in cases:
        runs = comparisons(case, size)
        assert all(len(run) == 4 * size for run in runs)
        assert [process for run in runs for process in run] == case[: 4 * size * len(runs)]
    made = sum(len(comparisons(case, size)) for case in cases)
    assert made >= 24 or size == 2


def test_drift_in_a_straight_line_cancels() -> None:
    a, b = split([[float(i)] for i in range(1, 41)])
    assert sum(x for (x,) in a) == sum(x for (x,) in b)
    assert len(a) == len(b) == 20


def test_p_values_come_case_by_case_from_the_judge() -> None:
    steady = [[1.0 + 0.001 * (i % 3)] for i in range(8)]
    planted = [[1.0 + 0.001 * (i % 3) + 0.5 * (i % 4 in (1, 2))] for i in range(8)]
    same, differs = p_values([steady, planted], JUDGE)
    assert same > 0.05
    assert differs < 1e-4
