"""Epochs as a·images + b·steps: exact on exact data, and an interval where epochs were repeated."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.explain.published.fitting import Epoch, fit


def epoch(batch: int, per_image: float, per_step: float, images: int = 1000, off: float = 1.0) -> Epoch:
    steps = math.ceil(images / batch)
    return Epoch(batch, images, steps, off * (per_image * images + per_step * steps))


@given(
    st.floats(1e-6, 10.0),
    st.floats(1e-6, 10.0),
    st.lists(st.integers(1, 256), min_size=2, max_size=6, unique=True).filter(
        lambda sizes: math.ceil(1000 / min(sizes)) > 1.2 * math.ceil(1000 / max(sizes))
    ),
)
def test_a_and_b_are_recovered(per_image: float, per_step: float, batches: list[int]) -> None:
    epochs = [epoch(batch, per_image, per_step) for batch in batches]
    line = fit(epochs)
    assert line is not None and line.is_possible and line.halves is None
    whole = max(each.seconds for each in epochs)
    for each in epochs:
        told = line.per_image * each.images + line.per_step * each.steps
        assert told == pytest.approx(each.seconds, rel=1e-6)
    assert 1000 * line.per_image == pytest.approx(1000 * per_image, abs=1e-6 * whole, rel=1e-6)
    assert line.per_step == pytest.approx(per_step, abs=1e-6 * whole, rel=1e-6)


def test_a_fit_by_hand() -> None:
    line = fit([Epoch(4, 1000, 250, 42.05), Epoch(64, 1000, 16, 63.90)])
    assert line is not None
    assert line.per_step == pytest.approx((42.05 - 63.90) / 234)
    assert line.per_image == pytest.approx((42.05 - 250 * line.per_step) / 1000)
    assert not line.is_possible
    assert line.margin == pytest.approx(1 - 42.05 / 63.90)
    assert line.shares == pytest.approx((250 * line.per_step / 42.05, 16 * line.per_step / 63.90))


@given(st.floats(0.01, 0.9))
def test_the_margin_is_what_makes_b_zero(off: float) -> None:
    line = fit([Epoch(4, 1000, 250, 10.0), Epoch(64, 1000, 16, 10.0 * (1 - off))])
    assert line is not None and line.margin == pytest.approx(off)
    moved = fit([Epoch(4, 1000, 250, 10.0 * (1 - line.margin)), Epoch(64, 1000, 16, 10.0 * (1 - off))])
    assert moved is not None and moved.per_step == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("epochs", [[epoch(4, 1, 1)], [epoch(4, 1, 1), epoch(4, 1, 1.1)]])
def test_one_batch_has_no_line(epochs: list[Epoch]) -> None:
    assert fit(epochs) is None


def test_repeats_give_an_interval_that_covers() -> None:
    drawn = random.Random(5)
    inside = 0
    for _ in range(200):
        epochs = [epoch(b, 1e-2, 2e-2, off=drawn.gauss(1, 0.02)) for b in (4, 64) for _ in range(4)]
        line = fit(epochs)
        assert line is not None and line.halves is not None
        inside += abs(line.per_step - 2e-2) <= line.halves[1] and line.halves[1] < 2e-2
    assert inside >= 180  # of 95 %: 180 or fewer have a probability of one in a thousand


def test_scatter_may_make_a_negative_b_possible() -> None:
    exact = [Epoch(4, 1000, 250, 10.0), Epoch(64, 1000, 16, 10.2)]
    noisy = [*exact, Epoch(4, 1000, 250, 11.0), Epoch(64, 1000, 16, 11.5)]
    assert (one := fit(exact)) is not None and not one.is_possible
    assert (other := fit(noisy)) is not None and other.per_step < 0 and other.is_possible
