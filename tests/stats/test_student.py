"""Student's t agrees with scipy's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from accel_micro.stats import student

DEGREES = st.floats(1, 60)


@given(DEGREES, st.floats(0.001, 0.999))
def test_a_quantile(degrees: float, probability: float) -> None:
    assert student.quantile(degrees, probability) == pytest.approx(
        stats.t.ppf(probability, degrees), abs=1e-9
    )


@given(DEGREES, st.floats(0.5, 0.999))
def test_a_margin_leaves_half_of_the_rest_on_each_side(degrees: float, confidence: float) -> None:
    margin = student.margin(degrees, confidence)
    assert stats.t.sf(margin, degrees) == pytest.approx((1 - confidence) / 2)


@given(DEGREES, st.floats(-20, 20))
def test_a_p_value_is_of_both_sides(degrees: float, t: float) -> None:
    assert student.p_value(degrees, t) == pytest.approx(2 * stats.t.sf(abs(t), degrees))
