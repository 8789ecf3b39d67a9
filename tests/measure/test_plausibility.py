"""What cannot be true is rejected, and what can be is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.measure.plausibility import MARGIN, impossible, not_growing
from accel_micro.measure.records import Peak, Work

H100 = Peak(flops_per_second=784e12, bytes_per_second=3.3e12)


@pytest.mark.parametrize(
    ("seconds", "work"),
    [
        (73.9e-6, Work(flops=2 * 8192.0**3, bytes=3 * 2 * 8192.0**2)),  # no sync, bfloat16 product, H100
        (18e-6, Work(bytes=3 * 4 * 16777216.0)),  # no sync, addition of 64 MB, H100
        (0.03e-3, Work(flops=2 * 8192.0**3)),  # 17 PFLOP/s, as once reported for a laptop
    ],
)
def test_missing_synchronisations_are_rejected(seconds: float, work: Work) -> None:
    problem = impossible(seconds, work, H100)
    assert problem is not None
    assert "that this device was measured to reach" in problem


def test_true_times_are_not_rejected() -> None:
    assert impossible(1557e-6, Work(flops=2 * 8192.0**3, bytes=3 * 2 * 8192.0**2), H100) is None
    assert impossible(70e-6, Work(bytes=3 * 4 * 16777216.0), H100) is None


def test_a_fast_algorithm_may_beat_the_count_of_the_plain_one() -> None:
    winograd = Work(flops=1e12, fewest_flops=0.25e12)
    assert impossible(1e12 / (2 * 784e12), winograd, H100) is None
    assert impossible(1e12 / (5 * 784e12), winograd, H100) is not None


@given(st.floats(1e-9, 1e3), st.floats(1, 1e15), st.floats(1e6, 1e15))
def test_the_bound_is_the_peak_and_its_margin(seconds: float, flops: float, peak: float) -> None:
    rejected = impossible(seconds, Work(flops=flops), Peak(flops_per_second=peak)) is not None
    assert rejected == (flops / seconds > MARGIN * peak)


def test_nothing_is_rejected_without_a_peak_or_without_work() -> None:
    assert impossible(1e-12, None, H100) is None
    assert impossible(1e-12, Work(flops=1e12), None) is None
    assert impossible(1e-12, Work(flops=1e12), Peak()) is None


def test_growth() -> None:
    assert not_growing(1.0, 3.0) is None
    assert not_growing(1.0, 1.4) is None
    assert (
        not_growing(1.0, 1.1)
        == "three times as many calls take 1.10 times as long, so most of the work is not timed"
    )
    assert not_growing(0.0, 0.0) is not None
