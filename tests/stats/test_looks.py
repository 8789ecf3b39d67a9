"""Looking several times spends the level once: simulated, with Welch's t at each look, vectorised."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from accel_micro.stats.looks import PLAN, Plan, spent

REPETITIONS = 20_000
ALPHA, EQUIVALENCE_ALPHA, LIMIT = 0.01, 0.05, np.log(1.02)
SD = 0.01

Values = NDArray[np.float64]


def outcomes(
    plan: Plan, ratio: float, sd: float = SD, limit: float = LIMIT, seed: int = 1
) -> tuple[dict[str, float], float]:
    """Shares of verdicts, and the mean number of processes a side."""
    rng = np.random.default_rng(seed)
    size = (REPETITIONS, plan.processes[-1])
    baseline, contender = rng.normal(0, sd, size), rng.normal(np.log(ratio), sd, size)
    kinds = np.full(REPETITIONS, "inconclusive")
    used = np.full(REPETITIONS, plan.processes[-1])
    for processes, share in zip(plan.processes, plan.shares, strict=True):
        called = _called(baseline[:, :processes], contender[:, :processes], share, limit)
        new = (kinds == "inconclusive") & (called != "inconclusive")
        kinds[new], used[new] = called[new], processes
    names, counts = np.unique(kinds, return_counts=True)
    shares = dict.fromkeys(("regression", "improvement", "invariant", "inconclusive"), 0.0)
    return {**shares, **dict(zip(names.tolist(), (counts / REPETITIONS).tolist(), strict=True))}, used.mean()


def _called(a: Values, b: Values, share: float, limit: float) -> NDArray[np.str_]:
    n = a.shape[1]
    difference = b.mean(1) - a.mean(1)
    parts = np.stack([a.var(1, ddof=1), b.var(1, ddof=1)]) / n
    error, degrees = np.sqrt(parts.sum(0)), parts.sum(0) ** 2 * (n - 1) / (parts**2).sum(0)
    p_value = 2 * stdtr(degrees, -np.abs(difference) / error)
    significant = (np.minimum(1.0, p_value / share) <= ALPHA) & (np.abs(difference) > limit)
    half = stdtrit(degrees, 1 - share * EQUIVALENCE_ALPHA) * error
    same = (np.abs(difference) + half < LIMIT) & ~significant
    which = np.where(difference > 0, "regression", "improvement")
    return np.where(significant, which, np.where(same, "invariant", "inconclusive"))


@pytest.mark.parametrize("sd", [0.005, 0.01, 0.02, 0.05])
def test_sides_that_do_not_differ_are_called_different_no_more_often_than_the_level_says(sd: float) -> None:
    # Without the tolerance's help: any significant difference counts.
    shares, _ = outcomes(PLAN, 1.0, sd, limit=0.0)
    assert shares["regression"] + shares["improvement"] <= ALPHA
    shares, _ = outcomes(PLAN, 1.0, sd)
    assert shares["regression"] + shares["improvement"] <= ALPHA


def test_looking_at_the_whole_level_each_time_would_not_do() -> None:
    greedy = Plan(PLAN.processes[:1], (1.0,))
    wrong = 0.0
    rng = np.random.default_rng(2)
    a, b = rng.normal(0, SD, (2, REPETITIONS, PLAN.processes[-1]))
    ever = np.zeros(REPETITIONS, bool)
    for processes in PLAN.processes:
        called = _called(a[:, :processes], b[:, :processes], greedy.shares[0], 0.0)
        ever |= (called == "regression") | (called == "improvement")
    wrong = float(ever.mean())
    assert wrong > 2 * ALPHA


@pytest.mark.parametrize("sd", [0.005, 0.01, 0.02])
def test_a_difference_just_outside_the_tolerance_is_rarely_called_invariant(sd: float) -> None:
    shares, _ = outcomes(PLAN, 1.0201, sd)
    assert shares["invariant"] <= EQUIVALENCE_ALPHA


@pytest.mark.parametrize(
    ("ratio", "kind", "at_least", "at_most_processes"),
    [
        (1.0, "invariant", 0.99, 9.0),
        (1.03, "regression", 0.98, 7.5),
        (1.05, "regression", 0.999, 5.5),
        (0.95, "improvement", 0.999, 5.5),
    ],
)
def test_true_states_are_found_with_few_processes(
    ratio: float, kind: str, at_least: float, at_most_processes: float
) -> None:
    shares, processes = outcomes(PLAN, ratio)
    assert shares[kind] >= at_least
    assert processes <= at_most_processes


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(1e-6, 0.5))
def test_a_spent_p_value_is_below_the_level_exactly_where_a_look_may_call_it(
    p_values: list[float], level: float
) -> None:
    share = 1 / len(p_values)
    for p_value in p_values:
        if abs(p_value - level * share) > 1e-12:
            assert (spent(p_value, share) <= level) == (p_value <= level * share)
        assert p_value <= spent(p_value, share) <= 1


def test_an_early_end_spends_what_is_left_and_no_more() -> None:
    plan = Plan((4, 6, 8), (0.2, 0.3, 0.5))
    assert plan.last_share(0) == 1
    assert plan.last_share(1) == pytest.approx(0.8)
    assert plan.last_share(1, same_data=True) == 1
    assert plan.last_share(3) == 0
    assert plan.last_share(3, same_data=True) == 0.5


@pytest.mark.parametrize(
    ("processes", "shares"),
    [
        ((), ()),
        ((4,), (0.5, 0.5)),
        ((4, 4), (0.5, 0.5)),
        ((4, 6), (0.6, 0.6)),
        ((4, 6), (1.0, 0.0)),
        ((0,), (1,)),
    ],
)
def test_a_plan_that_does_not_keep_the_level_is_refused(
    processes: tuple[int, ...], shares: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match=r"looks|shares"):
        Plan(processes, shares)
