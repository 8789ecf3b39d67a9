"""Steps over batch sizes: a line, where it does not fit, and where convolutions change."""

import random
from typing import Any

import pytest

from accel_micro.explain.batches import fit
from accel_micro.explain.confirming import confirm_switch
from tests.explain.worlds import capture, row


def at(batch: int, seconds: float, backend: str = "Slow2d", noise: float = 0.01, seed: int = 0) -> Any:
    drawn = random.Random(1000 * seed + batch)
    readings = []
    for _ in range(5):
        step = seconds * (1 + noise * drawn.gauss(0, 1))
        readings += capture(processes=1, reading={"steps": (step,)}).readings
    return capture(batch=batch, rows=[row(0, backend=backend), *capture().rows[1:]], readings=tuple(readings))


def test_a_line_is_found() -> None:
    found = fit([at(n, 3e-3 + 2e-3 * n) for n in (4, 8, 16, 32, 64)])
    assert found.fits and found.breaks is None and not found.switches
    assert found.per_example == pytest.approx(2e-3, rel=0.03) and found.per_step == pytest.approx(
        3e-3, rel=0.2
    )


def test_a_line_is_rarely_rejected() -> None:
    assert sum(fit([at(n, 3e-3 + 2e-3 * n, seed=s) for n in (2, 4, 8, 16)]).fits for s in range(60)) >= 57


def test_a_switch_is_found_and_named() -> None:
    sizes = (4, 8, 12, 16, 32, 64)
    found = fit(
        [at(n, n * (2e-3 if n < 16 else 4e-3), "Slow2d" if n < 16 else "NnpackSpatial") for n in sizes]
    )
    assert not found.fits and found.breaks == (12, 16)
    (switch,) = found.switches
    assert (switch.below, switch.above, switch.before, switch.after) == (12, 16, "Slow2d", "NnpackSpatial")


def test_a_switch_is_confirmed_by_what_turns_it_off() -> None:
    sizes = (4, 8, 12, 16, 32, 64)
    line = fit([at(n, n * (4e-3 if n < 16 else 3e-3), "Slow2d" if n < 16 else "Nnpack") for n in sizes])
    (switch,) = line.switches
    assert line.before(16) == pytest.approx(16 * 4e-3, rel=0.03)

    def tried(without: float) -> Any:
        return confirm_switch(line, switch, at(16, 48e-3), at(16, without, seed=1))

    back = tried(64e-3)
    assert back.confirmed and back.jump == pytest.approx(0.75, rel=0.03)
    assert back.low < 64 / 48 < back.high and back.batch == 16
    assert not tried(48e-3).confirmed, "it changes nothing"
    assert not tried(40e-3).confirmed, "it changes the step, and away from what the smaller sizes say"


def test_what_smaller_sizes_make_of_a_step() -> None:
    line = fit([at(n, 1e-3 * n, noise=0) for n in (4, 8, 16, 32)])
    assert line.before(8) == pytest.approx(8e-3) and line.before(64) == pytest.approx(64e-3)
    with pytest.raises(ValueError, match="no size below 4"):
        line.before(4)


def test_a_step_cannot_take_less_than_nothing() -> None:
    found = fit([at(n, 2e-3 * n - 5e-3, noise=0.05) for n in (4, 8, 16, 32)])
    assert found.per_step < 0 and not found.fits


def test_three_sizes_are_too_few() -> None:
    with pytest.raises(ValueError, match="4 are needed"):
        fit([at(n, 1e-3 * n) for n in (1, 2, 3)])
