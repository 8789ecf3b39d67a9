"""Batches and compilations around a step: told when planted, and not when absent."""

from dataclasses import replace
from typing import Any

import pytest

from accel_micro.explain.capture import Fed
from tests.explain.test_causes import STEP, named
from tests.explain.worlds import capture


def fed(**changes: Any) -> dict[str, Any]:
    facts = {
        "loader_seconds": 2 * STEP, "transfer_seconds": 0.0, "step_seconds": 3 * STEP, "prefetches": False,
        "fetch_seconds": 0.2 * STEP, "transform_seconds": 1.7 * STEP, "collate_seconds": 0.1 * STEP,
        "transform": "Normalize",
    }  # fmt: skip
    return {"fed": Fed(**{**facts, **changes})}


QUICK = {"loader_seconds": 0.1 * STEP, "step_seconds": 1.1 * STEP, "transform_seconds": 0.05 * STEP,
         "fetch_seconds": 0.03 * STEP, "collate_seconds": 0.02 * STEP}  # fmt: skip


def test_a_slow_transform_is_told_from_slow_reading() -> None:
    fast = capture(reading=fed(**QUICK))
    found = named(capture(reading=fed()), fast)
    assert "its transform (Normalize)" in found["slow transform"].text and "loader-bound" in found
    reading = fed(fetch_seconds=1.7 * STEP, transform_seconds=0.2 * STEP)
    found = named(capture(reading=reading), fast)
    assert "slow transform" not in found and "loader-bound" in found
    # Workers that keep up make a slow transform cost nothing.
    hidden = fed(prefetches=True, step_seconds=1.02 * STEP, loader_seconds=0.9 * STEP)
    assert "slow transform" not in named(capture(reading=hidden), fast)
    unknown = fed(fetch_seconds=None, transform_seconds=None, collate_seconds=None)
    assert "slow transform" not in named(capture(reading=unknown), fast)


def test_a_step_that_is_compiled_each_time() -> None:
    anew = capture(
        reading={"compilations": 1.0, "compile_seconds": 0.8 * STEP}, device="xla", setting="xla batch=4"
    )
    found = named(anew, capture())["recompilation"]
    assert "1 programs are compiled in each steady step" in found.text and found.seconds == pytest.approx(
        0.8 * STEP / 4
    )
    assert "recompilation" not in named(capture(device="xla", setting="xla batch=4"), capture())
    once = replace(anew, readings=(anew.readings[0], *capture().readings[1:]))
    assert "recompilation" not in named(once, capture())  # one process met it once
