"""Faults of the measurement itself: told when planted, and not when absent."""

from dataclasses import replace

from tests.explain.test_causes import named
from tests.explain.worlds import capture


def test_a_side_that_differs_from_itself() -> None:
    found = named(capture(slower={0: 1.5}, noise=0.002), capture(noise=0.002, seed=4))["harness artefact"]
    assert found.side == "baseline" and "though they took turns" in found.text
    assert "harness artefact" not in named(capture(noise=0.01), capture(noise=0.01, seed=4))
    other = capture(noise=0.002, seed=4, setting="cpu batch=4 threads=1")
    assert "harness artefact" not in named(capture(slower={0: 1.5}, noise=0.002), other)
    newer = replace(capture(noise=0.002, seed=4), torch="2.14.0")
    assert "harness artefact" not in named(capture(slower={0: 1.5}, noise=0.002), newer)


CARD = {"device": "cuda", "setting": "cuda batch=4"}


def test_a_device_that_is_busy_for_longer_than_its_step() -> None:
    step = capture().step_seconds
    wrong = capture(reading={"host_seconds": step, "device_seconds": 2 * step}, **CARD)  # type: ignore[arg-type]
    assert "something does not wait" in named(capture(), wrong)["harness artefact"].text
    right = capture(reading={"host_seconds": step, "device_seconds": 0.9 * step}, **CARD)  # type: ignore[arg-type]
    assert "harness artefact" not in named(capture(), right)


def test_what_a_stopwatch_that_does_not_wait_would_say() -> None:
    step = capture().step_seconds
    deep = capture(reading={"host_seconds": 0.1 * step, "device_seconds": 0.9 * step}, **CARD)  # type: ignore[arg-type]
    found = named(capture(), deep)["unsynchronised timing"]
    assert found.side == "contender" and "a speedup of 10:" in found.text
    bound = capture(reading={"host_seconds": 0.95 * step, "device_seconds": 0.3 * step}, **CARD)  # type: ignore[arg-type]
    assert "unsynchronised timing" not in named(capture(), bound)


def test_steps_that_end_in_nan() -> None:
    assert "not finite" in named(capture(reading={"finite": False}), capture())
    assert "not finite" not in named(capture(), capture())
