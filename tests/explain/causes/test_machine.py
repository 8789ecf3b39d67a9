"""Clocks that fall, and ops that a device does not have: told when planted, and not when absent."""

import random
from dataclasses import replace
from typing import Any

import pytest

from accel_micro.explain.capture import Capture
from tests.explain.test_causes import named, rows
from tests.explain.worlds import capture


def speeds(fall: float, noise: float = 0.02, blocks: int = 12, seed: int = 1) -> list[tuple[float, ...]]:
    """Of five processes, each of which ends by that share below where it began."""
    drawn = random.Random(seed)
    return [
        tuple((1.0 - fall * n / (blocks - 1)) * (1 + noise * drawn.gauss(0, 1)) for n in range(blocks))
        for _ in range(5)
    ]


def with_series(name: str, series: list[tuple[float, ...]], **changes: Any) -> Capture:
    made = capture(noise=0.01, **changes)
    readings = [replace(r, **{name: each}) for r, each in zip(made.readings, series, strict=True)]  # type: ignore[arg-type]
    return replace(made, readings=tuple(readings))


def test_a_processor_that_grows_slow_under_load() -> None:
    found = named(with_series("block_speeds", speeds(0.25)), capture(noise=0.01, seed=3))
    assert found["throttling"].side == "baseline" and "within a process" in found["throttling"].text


@pytest.mark.parametrize("seed", range(20))
def test_speeds_that_scatter_are_no_trend(seed: int) -> None:
    for series in (speeds(0.0, 0.05, seed=seed), speeds(0.03, 0.02, seed=seed), speeds(-0.25, seed=seed)):
        assert "throttling" not in named(with_series("block_speeds", series), capture(noise=0.01, seed=3))


def test_one_process_that_grows_slow_has_met_a_neighbour() -> None:
    series = [*speeds(0.4)[:1], *speeds(0.0)[1:]]
    assert "throttling" not in named(with_series("block_speeds", series), capture(noise=0.01, seed=3))


def test_a_clock_of_a_card_and_its_driver() -> None:
    card = {"device": "cuda", "setting": "cuda batch=4"}
    hertz = [tuple(1.9e9 * x for x in each) for each in speeds(0.06, 0.002)]
    assert (
        "the clock of cuda falls"
        in named(with_series("block_hertz", hertz, **card), capture())["throttling"].text
    )
    steady = [tuple(1.9e9 * x for x in each) for each in speeds(0.0, 0.002)]
    assert "throttling" not in named(with_series("block_hertz", steady, **card), capture())
    # The host of a card that works on its own does not set its pace.
    assert "throttling" not in named(with_series("block_speeds", speeds(0.3), **card), capture())
    held = capture(reading={"held": ("power cap",)}, **card)
    assert "the driver held it down: power cap" in named(held, capture())["throttling"].text


def test_ops_that_ran_on_the_cpu_instead() -> None:
    lacking = capture(device="mps", setting="mps batch=4", reading={"on_host": ("aten::_fft_r2c",)})
    found = named(capture(), lacking)["CPU fallback"]
    assert found.side == "contender" and "mps has no kernel for aten::_fft_r2c" in found.text
    assert "CPU fallback" not in named(capture(), capture(device="mps", setting="mps batch=4"))


def test_copies_to_the_cpu_and_back_around_work_there() -> None:
    there = rows(crossing={0: "to host", 1: "on host", 2: "to device"})
    made = capture(device="cuda", setting="cuda batch=4", rows=there)
    assert (
        "to the CPU 1 times and back 1 times, and works there: relu"
        in named(made, capture())["CPU fallback"].text
    )
    counts = rows(crossing={5: "on host"})  # an optimizer's counts of steps
    assert "CPU fallback" not in named(capture(device="cuda", setting="cuda batch=4", rows=counts), capture())
    batch = rows(crossing={0: "to device"})
    assert "CPU fallback" not in named(capture(device="cuda", setting="cuda batch=4", rows=batch), capture())
