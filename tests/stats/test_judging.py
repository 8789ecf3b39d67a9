"""Verdicts: how often they are wrong and how often they find what is there, and properties on any input."""

import math
from collections import Counter
from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import stats

from accel_micro.stats import Verdict, judge, judge_family
from accel_micro.stats.contrast import by_turns
from accel_micro.stats.judging import FEWEST, q_values
from tests.stats.sides import LOG_NORMAL, WAVES, WORLDS, World

TURNS = {**WORLDS, "waves": WAVES}

REPETITIONS = 2000
ALPHA = 0.01


@cache
def verdicts(name: str, change: float = 0.0) -> list[Verdict]:
    rng = np.random.default_rng([sum(map(ord, name)), round(1e6 * change)])
    return [judge(*WORLDS[name].sides(rng, change), alpha=ALPHA) for _ in range(REPETITIONS)]


@cache
def verdicts_by_turns(name: str, change: float = 0.0) -> list[Verdict]:
    rng = np.random.default_rng([sum(map(ord, name)), round(1e6 * change), 1])
    return [judge(*TURNS[name].sides(rng, change), alpha=ALPHA, turns=True) for _ in range(REPETITIONS)]


def share(name: str, change: float, kind: str) -> float:
    return sum(verdict.kind == kind for verdict in verdicts(name, change)) / REPETITIONS


def at_most(rate: float) -> float:
    """What a true rate stays below in all but 1 of 1,000 such simulations."""
    return float(stats.binom.ppf(0.999, REPETITIONS, rate)) / REPETITIONS


def at_least(rate: float) -> float:
    return float(stats.binom.ppf(0.001, REPETITIONS, rate)) / REPETITIONS


@pytest.mark.parametrize("name", WORLDS)
def test_sides_that_do_not_differ_are_called_different_as_seldom_as_said(name: str) -> None:
    assert share(name, 0, "regression") <= ALPHA
    assert share(name, 0, "improvement") <= ALPHA
    significant = sum(verdict.p_value <= ALPHA for verdict in verdicts(name)) / REPETITIONS
    assert significant <= at_most(ALPHA)


def test_three_percent_are_found_at_a_spread_of_one() -> None:
    assert share("sd 1 %", 0.03, "regression") >= 0.95


def test_five_percent_are_found_where_one_process_in_seven_is_slow() -> None:
    assert share("one in seven slow", 0.05, "regression") >= 0.8
    # A plain t-test cannot: the slow processes make the spread.
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(300):
        baseline, contender = WORLDS["one in seven slow"].sides(rng, 0.05)
        logs = [np.log(np.median(side, axis=1)) for side in (baseline, contender)]
        found += stats.ttest_ind(*logs, equal_var=False).pvalue <= ALPHA
    assert found / 300 < 0.3


@pytest.mark.parametrize("name", ["three in ten slow", "half slow", "heavy tails", "drift 5 %"])
def test_five_percent_are_found_on_worse_machines_too(name: str) -> None:
    assert share(name, 0.05, "regression") >= 0.8


@pytest.mark.parametrize("name", WORLDS)
def test_a_change_just_outside_the_tolerance_is_seldom_called_invariant(name: str) -> None:
    assert share(name, 0.0201, "invariant") <= at_most(0.05)


def test_sides_that_do_not_differ_are_shown_to_be_equal() -> None:
    assert share("sd 1 %", 0, "invariant") >= 0.95


@pytest.mark.parametrize("change", [0.0, 0.03, 0.05])
@pytest.mark.parametrize("name", WORLDS)
def test_intervals_cover_the_true_ratio_as_often_as_said(name: str, change: float) -> None:
    covered = [verdict.ratio_low <= 1 + change <= verdict.ratio_high for verdict in verdicts(name, change)]
    rate = sum(covered) / REPETITIONS
    if name in LOG_NORMAL:
        assert at_least(0.95) <= rate <= at_most(0.95)
    else:
        assert rate >= at_least(0.94)


def test_processes_needed_is_about_what_is_needed() -> None:
    """With as many more as it says, most comparisons are decided."""
    rng = np.random.default_rng(5)
    decided = asked = 0
    while asked < 150:
        verdict = judge(*World(0.02, processes=6).sides(rng, 0.05))
        if verdict.processes_needed and abs(verdict.ratio / 1.05 - 1) < 0.01:
            more = World(0.02, processes=6 + verdict.processes_needed)
            decided += judge(*more.sides(rng, 0.05)).decided
            asked += 1
    assert 0.6 < decided / asked <= 1


def test_a_side_that_is_slow_more_often_is_not_called_invariant() -> None:
    fast, slow = (
        [[1e-3 * (1 + 0.002 * i)] for i in range(10)],
        [[1.8e-3 * (1 + 0.002 * i)] for i in range(10)],
    )
    verdict = judge(fast, [*fast[:2], *slow[:8]])
    assert verdict.kind == "regression"
    assert verdict.ratio > 1.3
    verdict = judge(fast[:8], [*fast[:4], *slow[:4]])
    assert verdict.kind == "inconclusive"
    assert "speed mode" in verdict.reason


def test_processes_of_another_mode_are_set_aside() -> None:
    fast = [[1e-3 * (1 + 0.002 * i)] for i in range(10)]
    verdict = judge([*fast, [1.8e-3]], [*fast, [1.81e-3]])
    assert verdict.set_aside == (1, 1)
    assert verdict.ratio == pytest.approx(1)
    assert verdict.contender_spread < 0.01


def test_a_change_as_large_as_a_mode_is_a_change() -> None:
    fast = [[1e-3 * (1 + 0.002 * i)] for i in range(10)]
    slow = [[1.8e-3 * (1 + 0.002 * i)] for i in range(10)]
    assert judge(fast, slow).kind == "regression"
    assert judge(fast, slow).set_aside == (0, 0)


def test_one_process_a_side_is_never_enough() -> None:
    verdict = judge([[1e-3] * 20], [[5e-3] * 20])
    assert verdict.kind == "inconclusive"
    assert verdict.processes_needed == FEWEST - 1
    assert verdict.ratio == pytest.approx(5)
    assert (verdict.ratio_low, verdict.ratio_high, verdict.p_value) == (0, math.inf, 1)
    assert "one process" in verdict.reason


def test_a_missing_side_is_said() -> None:
    verdict = judge([], [[1e-3]] * 5)
    assert verdict.kind == "inconclusive"
    assert math.isnan(verdict.ratio)
    assert "no process" in verdict.reason


def test_equal_processes_are_equal_and_sure_differences_are_sure() -> None:
    same = judge([[1e-3] * 20] * 3, [[1e-3] * 20] * 4)
    assert (same.kind, same.ratio, same.p_value) == ("invariant", 1.0, 1.0)
    assert judge([[1e-3] * 20] * 3, [[1.1e-3] * 20] * 3).kind == "regression"


@pytest.mark.parametrize("bad", [0.0, -1e-3, math.nan, math.inf])
def test_what_is_no_time_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="not a positive number"):
        judge([[1e-3, bad, 1e-3]] * 3, [[1e-3]] * 3)
    with pytest.raises(ValueError, match="without samples"):
        judge([[]], [[1e-3]] * 3)


@pytest.mark.parametrize(
    "options",
    [{"alpha": 0}, {"alpha": 0.6}, {"tolerance": 0}, {"tolerance": math.nan}, {"equivalence_alpha": 1}],
)
def test_thresholds_that_mean_nothing_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        judge([[1e-3]] * 3, [[1e-3]] * 3, **options)


def test_a_family_keeps_the_share_of_false_findings() -> None:
    """Of 25 cases five are slower by 5 %; over many families, what else is called different is at most alpha."""
    rng, kinds = np.random.default_rng(11), Counter[tuple[bool, str]]()
    for _ in range(80):
        pairs = [World(processes=10).sides(rng, 0.05 if i < 5 else 0) for i in range(25)]
        for i, verdict in enumerate(judge_family(pairs, alpha=ALPHA)):
            kinds[i < 5, verdict.kind] += 1
    found = kinds[True, "regression"]
    assert found >= 0.95 * 400
    assert kinds[False, "regression"] + kinds[False, "improvement"] <= at_most(ALPHA) * 400


def test_a_family_counts_only_what_can_be_tested() -> None:
    base, slow = [[1.00e-3], [1.01e-3], [0.99e-3]], [[1.10e-3], [1.11e-3], [1.09e-3]]
    alone = judge(base, slow)
    family = judge_family([(base, slow), *[(base[:1], slow[:1])] * 50])
    assert family[0].q_value == pytest.approx(alone.p_value)
    assert family[1].kind == "inconclusive"
    assert judge_family([]) == []
    with pytest.raises(ValueError, match="2 tolerances"):
        judge_family([(base, slow)], tolerance=[0.02, 0.03])


@given(st.lists(st.floats(0, 1), max_size=30))
def test_q_values_are_those_of_benjamini_and_hochberg(p_values: list[float]) -> None:
    ours = q_values(p_values)
    if p_values:
        assert ours == pytest.approx(stats.false_discovery_control(p_values).tolist())
    assert all(q >= p * (1 - 1e-12) for p, q in zip(p_values, ours, strict=True))


seconds = st.floats(min_value=1e-7, max_value=1e2)
sides = st.lists(st.lists(seconds, min_size=1, max_size=5), min_size=1, max_size=9)
OPPOSITE = {"regression": "improvement", "improvement": "regression"}


@given(sides, sides)
def test_swapped_sides_give_the_opposite(baseline: list[list[float]], contender: list[list[float]]) -> None:
    one, other = judge(baseline, contender), judge(contender, baseline)
    assert other.ratio == pytest.approx(1 / one.ratio, rel=1e-6)
    assert other.p_value == pytest.approx(one.p_value, rel=1e-6, abs=1e-9)
    near = abs(one.p_value - ALPHA) < 1e-6 or abs(abs(math.log(one.ratio)) - math.log1p(0.02)) < 1e-6
    assume(not near)
    assert other.kind == OPPOSITE.get(one.kind, one.kind)


@example([[1.0]] * 3, [[1.0], [1.0], [4.0, 2**-8, 2**-9, 2**-9]], 0)
@given(sides, sides, st.integers(-12, 12))
def test_another_unit_of_time_changes_nothing(
    baseline: list[list[float]], contender: list[list[float]], power: int
) -> None:
    one = judge(baseline, contender)
    other = judge(*([[2.0**power * x for x in p] for p in side] for side in (baseline, contender)))
    assert other.ratio == pytest.approx(one.ratio, rel=1e-6)
    assert other.p_value == pytest.approx(one.p_value, rel=1e-4, abs=1e-9)


@given(sides, sides, st.randoms(use_true_random=False))
def test_order_does_not_matter(baseline: list[list[float]], contender: list[list[float]], rng) -> None:  # type: ignore[no-untyped-def]
    def shuffled(side: list[list[float]]) -> list[list[float]]:
        return rng.sample([rng.sample(p, len(p)) for p in side], len(side))

    one, other = judge(baseline, contender), judge(shuffled(baseline), shuffled(contender))
    assert other.ratio == pytest.approx(one.ratio, rel=1e-6)
    assert other.p_value == pytest.approx(one.p_value, rel=1e-4, abs=1e-9)


@given(sides, sides)
def test_every_verdict_is_whole(baseline: list[list[float]], contender: list[list[float]]) -> None:
    verdict = judge(baseline, contender)
    assert 0 <= verdict.p_value <= 1
    assert verdict.ratio_low <= verdict.ratio * (1 + 1e-12)
    assert verdict.ratio <= verdict.ratio_high * (1 + 1e-12)
    assert verdict.reason
    assert (verdict.processes_needed == 0) == verdict.decided
    if min(len(baseline), len(contender)) < FEWEST:
        assert not verdict.decided


def test_wildly_unequal_sides_are_judged() -> None:
    rng = np.random.default_rng(3)
    many = [[1e-3 * math.exp(rng.normal(0, 0.01))] for _ in range(300)]
    few = [[1.1e-3 * math.exp(rng.normal(0, 0.01))] for _ in range(3)]
    assert judge(many, few).kind == "regression"
    assert judge(few, many).kind == "improvement"


@pytest.mark.parametrize("name", TURNS)
def test_by_turns_the_level_holds_too(name: str) -> None:
    kinds = Counter(verdict.kind for verdict in verdicts_by_turns(name))
    assert max(kinds["regression"], kinds["improvement"]) / REPETITIONS <= ALPHA
    assert sum(v.p_value <= ALPHA for v in verdicts_by_turns(name)) / REPETITIONS <= at_most(ALPHA)
    outside = Counter(verdict.kind for verdict in verdicts_by_turns(name, 0.0201))
    assert outside["invariant"] / REPETITIONS <= at_most(0.05)


@pytest.mark.parametrize("change", [0.0, 0.05])
@pytest.mark.parametrize("name", TURNS)
def test_by_turns_intervals_cover_too(name: str, change: float) -> None:
    found = verdicts_by_turns(name, change)
    covered = sum(v.ratio_low <= 1 + change <= v.ratio_high for v in found) / REPETITIONS
    assert covered >= (at_least(0.94) if name in LOG_NORMAL else at_least(0.93))


@pytest.mark.parametrize("turns", [4, 5, 6, 8, 10, 14, 20, 40])
def test_differences_of_turns_hold_small_levels(turns: int) -> None:
    rng = np.random.default_rng(turns)
    zeros, repetitions, level = [0.0] * turns, 20_000, 0.002
    p_values = [
        by_turns(zeros, differences, (0.0, 0.0)).p_value
        for differences in rng.normal(0, 0.01, (repetitions, turns)).tolist()
    ]
    found = sum(p_value <= level for p_value in p_values)
    assert found <= stats.binom.ppf(0.999, repetitions, level)


def test_turns_see_through_a_machine_that_is_slower_for_minutes() -> None:
    rng = np.random.default_rng(3)
    sides = [WAVES.sides(rng, 0.05) for _ in range(REPETITIONS)]
    found = {t: sum(judge(*each, turns=t).kind == "regression" for each in sides) for t in (False, True)}
    assert found[True] / REPETITIONS >= 0.9
    assert found[False] < found[True] / 1.5


def test_by_turns_three_percent_are_found_at_a_spread_of_one() -> None:
    found = Counter(verdict.kind for verdict in verdicts_by_turns("sd 1 %", 0.03))
    assert found["regression"] / REPETITIONS >= 0.95


def test_turns_need_as_many_processes_on_both_sides() -> None:
    with pytest.raises(ValueError, match="turns of 3 and 4"):
        judge([[1.0]] * 3, [[1.0]] * 4, turns=True)
    with pytest.raises(ValueError, match="turns or not for 1 of 2"):
        judge_family([([[1.0]] * 3, [[1.0]] * 3)] * 2, turns=[True])


def test_of_turns_only_their_order_may_change() -> None:
    rng = np.random.default_rng(5)
    base, cont = WAVES.sides(rng, 0.03)
    order = rng.permutation(len(base))
    same = judge([base[i] for i in order], [cont[i] for i in order], turns=True)
    assert same == judge(base, cont, turns=True)
    other = judge(cont, base, turns=True)
    assert other.ratio == pytest.approx(1 / same.ratio)
    assert other.p_value == pytest.approx(same.p_value)


turn_lists = st.lists(st.tuples(*[st.lists(seconds, min_size=1, max_size=4)] * 2), min_size=1, max_size=12)


@given(turn_lists, st.integers(-12, 12))
@example(
    [([0.5], [1.0])] * 4 + [([0.5], [0.5])], 0
)  # of two ways to pair the modes one finds no difference at all
def test_by_turns_swapped_sides_give_the_opposite_in_any_unit(
    turns: list[tuple[list[float], list[float]]], power: int
) -> None:
    base, cont = ([turn[side] for turn in turns] for side in (0, 1))
    one = judge(base, cont, turns=True)
    assert 0 <= one.p_value <= 1
    assert one.ratio_low <= one.ratio * (1 + 1e-12)
    assert one.ratio <= one.ratio_high * (1 + 1e-12)
    assert (one.processes_needed == 0) == one.decided
    scaled = ([[2.0**power * x for x in p] for p in side] for side in (cont, base))
    other = judge(*scaled, turns=True)
    assert other.p_value == pytest.approx(one.p_value, rel=1e-4, abs=1e-9)
    widths = [math.log(v.ratio_high / v.ratio_low) for v in (one, other) if v.ratio_high < math.inf]
    if len(widths) == 2 and widths[0] == pytest.approx(widths[1], rel=1e-6):
        near = abs(one.p_value - ALPHA) < 1e-6 or abs(abs(math.log(one.ratio)) - math.log1p(0.02)) < 1e-6
        assert near or other.kind == OPPOSITE.get(one.kind, one.kind)


@pytest.mark.parametrize("ratio", [1.57, 1.73, 1.8])
@pytest.mark.parametrize("processes", [6, 10])
def test_a_difference_about_as_large_as_that_of_two_speeds_is_not_turned_around(
    ratio: float, processes: int
) -> None:
    """The contender's usual processes then lie beside the slow ones of the baseline, of which it has a few."""
    random = Random(7)

    def side(ratio: float) -> list[list[float]]:
        speeds = [1.8 if random.random() < 1 / 7 else 1.0 for _ in range(processes)]
        return [[1e-3 * ratio * speed * math.exp(random.gauss(0, 0.01))] for speed in speeds]

    kinds = [judge(side(1.0), side(ratio), turns=True).kind for _ in range(300)]
    assert kinds.count("improvement") + kinds.count("invariant") <= 3, "20 to 25 of 100 were, before"
    assert kinds.count("regression") > (240 if processes == 6 else 285)


def test_two_ways_to_pair_speeds_that_disagree_leave_it_open() -> None:
    base = [[1.0], [1.005], [0.995], [1.002], [1.8], [1.799]]
    cont = [[1.73], [1.735], [1.728], [1.731], [1.729], [1.733]]
    for one, other in ((base, cont), (cont, base)):
        verdict = judge(one, other, turns=True)
        assert verdict.kind == "inconclusive"
        assert "speed mode" in verdict.reason
        assert verdict.ratio_low < 1 < verdict.ratio_high
        assert max(verdict.ratio_high, 1 / verdict.ratio_low) > 1.73
