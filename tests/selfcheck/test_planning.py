"""Sections, their time, and growth."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.commands.selfcheck import FULLER, SECTIONS
from accel_micro.selfcheck.growth import exponent
from accel_micro.selfcheck.planning import PARTS, UnknownSection, known_names, plan


def test_the_time_is_shared_by_what_is_asked_for() -> None:
    assert sum(seconds for _, seconds in plan((), 600.0)) == pytest.approx(600)
    assert [(part.key, seconds) for part, seconds in plan(("scale",), 90.0)] == [("scale", 90.0)]
    assert [part.key for part, _ in plan(("scale", "truth"), 90.0)] == ["truth", "scale"]
    assert sum(part.share for part in PARTS) == pytest.approx(1)


def test_an_unknown_section_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownSection, match="unknown section 'speed'; there are truth, power"):
        plan(("speed",), 60.0)


def test_every_section_can_be_run_and_says_what_does_more() -> None:
    assert set(known_names()) == set(SECTIONS) == set(FULLER)


@given(st.floats(0.1, 3), st.floats(1e-6, 1))
def test_the_exponent_of_a_power_law_is_found(power: float, scale: float) -> None:
    sizes = [3.0, 30.0, 300.0]
    assert exponent(sizes, [scale * size**power for size in sizes]) == pytest.approx(power)
    with_start = [scale * size**power + 1.0 for size in sizes]
    assert exponent(sizes, with_start, fixed=1.0) == pytest.approx(power, rel=1e-3, abs=1e-3)


def test_one_size_has_no_exponent() -> None:
    assert math.isnan(exponent([3.0], [1.0]))
