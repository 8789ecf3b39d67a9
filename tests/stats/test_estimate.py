"""Estimates: their properties on any trial, and that their intervals cover as often as they say."""

import math
import random
import statistics
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from accel_micro.stats.estimate import Estimate, estimate, median_order

seconds = st.floats(min_value=1e-9, max_value=1e3)
processes = st.lists(st.lists(seconds, min_size=1, max_size=24), min_size=1, max_size=8)


@given(processes, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_interval_holds_the_estimate(trial: list[list[float]], confidence: float) -> None:
    e = estimate(trial, confidence)
    assert 0 < e.low <= e.seconds <= e.high
    assert min(map(min, trial)) * (1 - 1e-12) <= e.seconds <= max(map(max, trial)) * (1 + 1e-12)
    assert (e.processes, e.samples) == (len(trial), sum(map(len, trial)))
    assert e.within_only == (len(trial) < 3) == (e.order is not None)


@given(processes, st.floats(min_value=1e-6, max_value=1e6))
def test_another_unit_of_time_scales_everything(trial: list[list[float]], factor: float) -> None:
    e = estimate(trial)
    scaled = estimate([[factor * sample for sample in process] for process in trial])
    for name in ("seconds", "low", "high"):
        assert getattr(scaled, name) == pytest.approx(factor * getattr(e, name), rel=1e-9)
    assert scaled.spread == pytest.approx(e.spread, rel=1e-6, abs=1e-9)
    assert (scaled.within_only, scaled.order, scaled.confidence) == (e.within_only, e.order, e.confidence)


@given(processes, st.randoms(use_true_random=False))
def test_order_of_samples_and_processes_does_not_matter(trial: list[list[float]], rng: random.Random) -> None:
    shuffled = [rng.sample(process, len(process)) for process in trial]
    rng.shuffle(shuffled)
    one, other = estimate(trial), estimate(shuffled)
    for name in ("seconds", "low", "high"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9)


@given(processes)
def test_more_confidence_never_narrows_the_interval(trial: list[list[float]]) -> None:
    narrow, wide = estimate(trial, 0.8), estimate(trial, 0.99)
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


def test_equal_processes_give_their_value_exactly() -> None:
    e = estimate([[3.1e-6] * 20] * 4)
    assert (e.low, e.seconds, e.high, e.spread) == (3.1e-6, 3.1e-6, 3.1e-6, 0.0)


def test_three_processes_give_students_interval_of_the_log_medians() -> None:
    medians = [10e-6, 12e-6, 11e-6]
    e = estimate([[m * 0.9, m, m * 1.3] for m in medians])
    logs = [math.log(m) for m in medians]
    low, high = stats.t.interval(0.95, 2, loc=statistics.fmean(logs), scale=stats.sem(logs))
    assert e.seconds == pytest.approx(math.exp(statistics.fmean(logs)))
    assert (e.low, e.high) == (pytest.approx(math.exp(low)), pytest.approx(math.exp(high)))
    assert e.spread == pytest.approx(statistics.stdev(logs))
    assert (e.confidence, e.within_only) == (0.95, False)


def test_one_process_of_twenty_samples_gives_the_sixth_to_the_fifteenth() -> None:
    samples = [float(i) for i in range(1, 21)]
    e = estimate([samples])
    assert (e.low, e.seconds, e.high, e.order) == (6.0, 10.5, 15.0, (6, 15))
    assert e.confidence == pytest.approx(0.9586, abs=1e-4)
    assert e.within_only


def test_two_processes_give_the_hull_of_their_intervals() -> None:
    fast, slow = [1.0 + i / 100 for i in range(20)], [2.0 + i / 100 for i in range(20)]
    e = estimate([slow, fast])
    assert (e.low, e.high) == (fast[5], slow[14])
    assert e.seconds == pytest.approx(math.sqrt(1.095 * 2.095))
    assert e.within_only


def test_a_single_sample_claims_no_interval() -> None:
    assert estimate([[2e-6]]) == Estimate(2e-6, 2e-6, 2e-6, 1, 1, True, 0.0, 0.0, (1, 1))


@pytest.mark.parametrize(
    ("trial", "message"),
    [
        ([], "no process"),
        ([[1.0], []], "without samples"),
        ([[1.0, 0.0]], "not a positive number"),
        ([[-1e-9]], "not a positive number"),
        ([[math.nan]], "not a positive number"),
        ([[math.inf]], "not a positive number"),
    ],
)
def test_what_is_no_trial_is_refused(trial: list[list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimate(trial)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 95.0])
def test_confidence_is_a_fraction(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        estimate([[1.0]], confidence)


@given(st.integers(1, 200), st.floats(0.5, 0.999))
def test_median_order_is_the_exact_binomial_and_the_narrowest(samples: int, confidence: float) -> None:
    (lower, upper), covered = median_order(samples, confidence)
    assert 1 <= lower <= upper == samples + 1 - lower
    below = stats.binom.cdf([lower - 1, lower], samples, 0.5)
    assert covered == pytest.approx(1 - 2 * below[0])
    if lower > 1:
        assert covered >= confidence
    if lower < (samples + 1) // 2:
        assert 1 - 2 * below[1] < confidence + 1e-12, "the next pair would have covered as well"


TRIALS = 1500
TRUTH = 20e-6


def simulated_coverage(seed: int, count: int, process_sd: float) -> float:
    """Share of simulated trials whose interval holds the truth: skewed samples, log-normal processes."""
    rng = random.Random(seed)
    covered = 0
    for _ in range(TRIALS):
        trial = []
        for _ in range(count):
            median = TRUTH * math.exp(rng.gauss(0, process_sd))
            trial.append([median * math.exp(0.01 * (rng.expovariate(1) - math.log(2))) for _ in range(20)])
        e = estimate(trial)
        covered += e.low <= TRUTH <= e.high
    return covered / TRIALS


def tolerance(probability: float) -> float:
    """Four standard deviations of a share of `TRIALS`, and a little for the skew of the process medians."""
    return 4 * math.sqrt(probability * (1 - probability) / TRIALS) + 0.003


@pytest.mark.parametrize("count", [3, 5, 10])
def test_the_interval_over_processes_covers_as_often_as_it_says(count: int) -> None:
    assert simulated_coverage(count, count, process_sd=0.05) == pytest.approx(0.95, abs=tolerance(0.95))


def test_the_interval_within_a_process_covers_its_median_as_often_as_it_says() -> None:
    exact = estimate([[1.0] * 20]).confidence
    assert simulated_coverage(1, 1, process_sd=0.0) == pytest.approx(exact, abs=tolerance(exact))


def test_two_processes_cover_at_least_as_often_as_they_say() -> None:
    assert simulated_coverage(2, 2, process_sd=0.0) > 0.95 - tolerance(0.95)


def test_the_interval_within_a_process_does_not_know_other_processes() -> None:
    # What `within_only` warns of: once processes differ, one process almost never covers the truth.
    assert simulated_coverage(3, 1, process_sd=0.05) < 0.3


def test_importing_needs_no_scipy() -> None:
    code = (
        "import sys, accel_micro.stats.estimate; sys.exit('scipy' in sys.modules or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
