"""False alarms, misses, and what they cost, from rounds that nobody measured."""

import math
import random
from collections.abc import Sequence

import pytest

from accel_micro.commands import selfcheck_power as power
from accel_micro.selfcheck.peers import rules, worker
from accel_micro.selfcheck.rates import (
    BASELINE,
    LEVELS,
    Judged,
    Method,
    Process,
    Rounds,
    precision,
    processes_needed,
    rate,
    rates,
)


def rounds_of(count: int, spread: float, *, methods: Sequence[str] = (worker.OURS,), seed: int = 1) -> Rounds:
    """Rounds of one op whose processes scatter by so much, and samples in them by a third of that."""
    chance, found = random.Random(seed), Rounds()
    for _ in range(count):
        for method in methods:
            for level, more in LEVELS.items():
                centre = 1e-3 * (1 + more / 100) * math.exp(chance.gauss(0, spread))
                samples = tuple(centre * math.exp(chance.gauss(0, spread / 3)) for _ in range(20))
                found.add("mm", method, level, Process(samples, 0.5))
    return found


def first(pairs: Sequence[tuple[Process, Process]]) -> Judged:
    a, b = pairs[0]
    return Judged("slower" if b.samples[0] > a.samples[0] else "same", 2)


def test_comparisons_begin_at_every_step_and_pay_for_what_they_use() -> None:
    found = rate(rounds_of(7, 1e-6), Method("m", worker.OURS, 3, first, 2), "+5 %")
    assert (found.comparisons, found.slower, found.found) == (3, 3, 1.0)
    assert found.seconds == pytest.approx(2.0)
    assert rate(rounds_of(2, 0.01), Method("m", worker.OURS, 3, first), "+5 %").comparisons == 0


def test_a_process_without_a_time_costs_its_round() -> None:
    rounds = rounds_of(5, 0.01)
    rounds.processes["mm", worker.OURS, "+5 %"][2] = None
    assert len(rounds.pairs("mm", worker.OURS, "+5 %")) == 4


def test_every_level_but_the_baseline_is_judged() -> None:
    levels = [one.level for one in rates(rounds_of(4, 0.01), [Method("m", worker.OURS, 1, first)])]
    assert levels == [level for level in LEVELS if level != BASELINE]


def test_on_a_machine_with_noise_between_processes_pooled_samples_cry_wolf_and_ours_does_not() -> None:
    rounds = rounds_of(60, 0.01)
    ours, _, _, pooled, _ = power.methods()
    assert rate(rounds, ours, "A again").alarms == 0
    assert rate(rounds, pooled, "A again").alarms > 0.2
    assert rate(rounds, ours, "+10 %").found == 1.0
    assert rate(rounds, ours, "+5 %").found > 0.9


def test_ours_stops_where_it_is_decided_and_says_when_it_is_open() -> None:
    quiet, noisy = rounds_of(40, 0.003), rounds_of(4, 0.2)
    decided = power.by_ours(quiet.pairs("mm", worker.OURS, "+10 %"))
    assert (decided.called, decided.rounds, decided.open) == ("slower", 4, False)
    assert power.by_ours(noisy.pairs("mm", worker.OURS, "+2 %")) == Judged("same", 4, True)


def test_asvs_rule_is_asvs_own() -> None:
    base = [1.0 + 0.001 * n for n in range(10)]
    assert rules.asv_compare(base, [1.05 * x for x in base]) == "same", "within its factor"
    assert rules.asv_compare(base, [1.3 * x for x in base]) == "slower"
    assert rules.asv_compare([1.3 * x for x in base], base) == "faster"
    assert rules.pooled(base, [1.05 * x for x in base]) == "slower"
    assert rules.pooled(base, base) == "same"
    assert rules.medians(1.0, 1.019) == "same"
    assert (rules.medians(1.0, 1.03), rules.medians(1.03, 1.0)) == ("slower", "faster")


@pytest.mark.parametrize(("spread", "count"), [(1e-9, 2), (0.01, 7), (0.1, 391)])
def test_processes_for_one_percent(spread: float, count: int) -> None:
    assert processes_needed(spread) == count


def test_no_number_of_processes_is_enough_for_a_machine_that_does_anything() -> None:
    assert processes_needed(50.0) is None


def test_precision_is_of_the_processes_without_planted_work() -> None:
    found = precision(rounds_of(200, 0.01), worker.OURS, "mm")
    assert found is not None
    assert found.spread == pytest.approx(0.01, rel=0.2)
    assert found.processes is not None
    assert found.seconds == found.processes * 0.5
    assert precision(rounds_of(1, 0.01), worker.OURS, "mm") is None
