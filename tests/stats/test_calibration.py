"""What is found out about a machine, on machines about which it is known."""

import math
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from accel_micro.stats import judge
from accel_micro.stats.calibration import FLOOR, CaseRun, find
from accel_micro.stats.sensitivity import detectable, differences
from tests.stats.worlds import SPREAD, World, in_step, processes, quiet, two_modes

ALPHA = 0.01
JUDGE = partial(judge, alpha=ALPHA, turns=True)


def runs(world: World, count: int = 40, cases: int = 8, seed: int = 1, apart: float = 10.0) -> list[CaseRun]:
    chance = np.random.default_rng(seed)
    times = tuple(apart * i for i in range(count))
    return [CaseRun(processes(world(chance, count)), times, 1.0) for _ in range(cases)]


def test_a_quiet_machine_is_blessed_with_its_own_spread() -> None:
    found = find(runs(quiet), JUDGE)
    assert found.blessed
    assert found.why_not == ""
    assert found.spread == pytest.approx(SPREAD, rel=0.2)
    assert found.worst_spread >= found.spread
    assert found.tolerance == FLOOR
    # 1.96 standard errors of ten processes a side.
    assert found.difference == pytest.approx(1.96 * SPREAD * math.sqrt(2 / 10), rel=0.2)
    assert found.worst_difference >= found.difference
    assert (found.others, found.slowdown) == (0, 1)


def test_a_wide_machine_gets_a_wide_tolerance() -> None:
    def wide(chance: np.random.Generator, count: int) -> np.ndarray:
        return 5 * quiet(chance, count)

    found = find(runs(wide), JUDGE)
    assert found.tolerance == found.difference > FLOOR
    assert found.difference == pytest.approx(math.expm1(1.96 * 0.05 * math.sqrt(0.2)), rel=0.2)
    assert all(change is None or change >= found.tolerance for change in found.detectable.values())


def test_modes_are_told_and_do_not_widen_the_tolerance() -> None:
    found = find(runs(two_modes), JUDGE)
    assert found.blessed
    assert found.others == pytest.approx(1 / 7, abs=0.06)
    assert found.slowdown == pytest.approx(1.8, rel=0.02)
    assert found.spread == pytest.approx(SPREAD, rel=0.25)
    assert found.tolerance == FLOOR


def test_drift_is_told_and_is_no_reason_to_refuse() -> None:
    def slower(chance: np.random.Generator, count: int) -> np.ndarray:
        return quiet(chance, count) + np.linspace(0, 0.06, count)

    found = find(runs(slower, apart=3600 / 40), JUDGE)
    assert found.blessed
    assert found.drift is not None
    assert found.drift.low < 0.06 < found.drift.high
    assert found.drift.high - found.drift.low < 0.02
    assert found.halves == 8


def test_a_machine_disturbed_in_step_is_refused_and_told_why() -> None:
    found = find(runs(in_step, count=100), JUDGE)
    assert not found.blessed
    assert "where 1 % is promised" in found.why_not


def test_too_few_comparisons_are_not_enough_to_tell() -> None:
    found = find(runs(quiet, count=9, cases=5), JUDGE)
    assert not found.blessed
    assert found.why_not == (
        "5 comparisons of a build with itself are too few to tell how often they find a difference; 16 are needed"
    )
    assert found.tolerance >= FLOOR


def test_one_process_a_case_gives_an_answer_too() -> None:
    found = find(runs(quiet, count=1, cases=2), JUDGE)
    assert not found.blessed
    assert math.isnan(found.spread)
    assert math.isnan(found.difference)
    assert found.drift is None
    assert found.tolerance == FLOOR
    assert set(found.detectable.values()) == {None}


def test_nothing_measured_is_an_error() -> None:
    with pytest.raises(ValueError, match="no process"):
        find([], JUDGE)


def test_the_same_processes_give_the_same_calibration() -> None:
    assert repr(find(runs(quiet), JUDGE)) == repr(find(runs(quiet), JUDGE))


def test_differences_do_not_depend_on_a_bias_between_the_labels() -> None:
    # A and B are drawn to either side, so a constant bias shows as a difference and never cancels for good.
    biased = [[1.0 + 0.1 * (i % 4 in (1, 2))] for i in range(40)]
    drawn = differences(biased, JUDGE)
    assert max(drawn) > 0.05
    assert differences(biased[:3], JUDGE) == []


@pytest.mark.parametrize("side", [10, 30])
def test_the_smallest_detectable_change_is_found_four_times_in_five(side: int) -> None:
    spread, tolerance = 0.02, 0.02
    change = detectable(side, spread, ALPHA, tolerance)
    assert change is not None
    chance = np.random.default_rng(3)
    found = 0
    for _ in range(1000):
        slow = processes(math.log1p(change) + chance.normal(0, spread, side))
        verdict = judge(processes(chance.normal(0, spread, side)), slow, alpha=ALPHA, tolerance=tolerance)
        found += verdict.kind == "regression"
    assert found / 1000 == pytest.approx(0.8, abs=0.06)


def test_more_time_finds_less_and_never_below_the_tolerance() -> None:
    changes = [detectable(side, 0.02, ALPHA, 0.02) for side in (3, 10, 100, 1000, 100_000)]
    assert all(a is not None and b is not None and a > b > 0.02 for a, b in pairwise(changes))
    assert changes[-1] == pytest.approx(0.02, rel=0.02)
    assert detectable(2, 0.02, ALPHA, 0.02) is None
    assert detectable(10, math.nan, ALPHA, 0.02) is None
