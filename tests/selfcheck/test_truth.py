"""Errors against a witness, by band and harness, and the spread of repeated runs."""

import math

import pytest

from accel_micro.selfcheck.truth import KERNELS, Reading, Timed, differences, errors, spread_of, spreads


def timed(name: str, unit: float, **readings: Reading) -> Timed:
    return Timed(name, unit, dict(readings))


def test_bands_share_no_case_and_miss_none() -> None:
    for exponent in range(-9, 2):
        for factor in (1.0, 2.9, 3.0, 9.99):
            seconds = factor * 10.0**exponent
            assert sum(band.has(seconds) for band in KERNELS) == 1


def test_errors_are_of_each_harness_in_each_band() -> None:
    cases = [
        timed("a.x", 20e-6, ours=Reading(20.2e-6, 20e-6, spent=1.0), theirs=Reading(30e-6, 20e-6)),
        timed("a.y", 40e-6, ours=Reading(38e-6, 40e-6, spent=3.0), theirs=Reading(44e-6, 40e-6)),
        timed("b.z", 1e-6, ours=Reading(1.1e-6, 1e-6)),
    ]
    cases[2].refused["theirs"] = "no graph"
    large_ours, large_theirs, small_ours, small_theirs = errors(cases, KERNELS, ["ours", "theirs"])
    assert (large_ours.harness, large_ours.band, large_ours.cases) == ("ours", KERNELS[0].name, 2)
    assert large_ours.middle == pytest.approx(0.03)
    assert large_ours.worst == pytest.approx(-0.05)
    assert large_ours.worst_case == "a.y"
    assert large_ours.spent == pytest.approx(2.0)
    assert large_theirs.worst == pytest.approx(0.5)
    assert small_ours.middle == pytest.approx(0.1)
    assert (small_theirs.cases, small_theirs.refused) == (0, 1)
    assert math.isnan(small_theirs.middle)


def test_in_its_own_state_a_harness_is_held_against_that_state() -> None:
    reading = Reading(15e-6, 10e-6, regime=15e-6)
    assert reading.error == pytest.approx(0.5)
    assert reading.error_in_regime == pytest.approx(0.0)
    assert Reading(15e-6, 10e-6).error_in_regime == pytest.approx(0.5)
    (found,) = errors([timed("a.x", 20e-6, ours=reading)], KERNELS, ["ours"])
    assert (found.worst, found.worst_in_regime) == (pytest.approx(0.5), pytest.approx(0.0))


def test_a_witness_of_nothing_is_no_error() -> None:
    row = timed("a.x", 0.0, ours=Reading(1e-6, 0.0))
    assert errors([row], KERNELS, ["ours"]) == []


def test_spread_is_over_the_median() -> None:
    assert spread_of([1.0, 1.1, 1.2]) == pytest.approx(0.2 / 1.1)
    assert math.isnan(spread_of([1.0]))
    row = Timed("a.x", again={"ours": [1.0, 1.1, 1.2], "theirs": [1.0]})
    assert dict(spreads([row, Timed("b.y")], ["ours", "theirs"])) == {
        "a.x": [("ours", pytest.approx(0.2 / 1.1), 3)]
    }


def test_processes_are_held_against_each_other_by_their_ratios_to_the_witness() -> None:
    rows = [
        timed("a.x", 20e-6, ours=Reading(20e-6, 20e-6), theirs=Reading(30e-6, 20e-6)),
        timed("a.x", 30e-6, ours=Reading(30e-6, 25e-6, regime=30e-6), theirs=Reading(33e-6, 30e-6)),
        timed("a.y", 20e-6, ours=Reading(20e-6, 20e-6)),
        timed("a.y", 20e-6, ours=Reading(40e-6, 20e-6, moved=0.1)),
        timed("b.z", 1e-6, ours=Reading(1e-6, 1e-6)),
    ]
    ours, theirs = differences(rows, KERNELS, ["ours", "theirs", "others"])
    assert (ours.harness, ours.band, ours.cases, ours.worst_case) == ("ours", KERNELS[0].name, 1, "a.x")
    assert ours.middle == ours.worst == 0.0, "the work took longer in one of them, and both read it"
    assert theirs.worst == pytest.approx(0.4 / 1.3)
