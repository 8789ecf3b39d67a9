"""What comes around a step: its batches, and the first one."""

from collections.abc import Iterator
from statistics import fmean
from typing import Final

from accel_micro.explain.causes.cause import (
    Cause,
    milliseconds,
    of_sides,
)
from accel_micro.explain.explanation import Explanation

_FIRST_STEPS: Final = 20.0
_FIRST_SECONDS: Final = 0.5


def loader_bound(e: Explanation) -> Iterator[Cause]:
    """The step waits for its batches."""
    for name, capture, _ in of_sides(e):
        fed = [reading for reading in capture.readings if reading.fed]
        if not fed:
            continue
        loader = fmean(r.fed.loader_seconds for r in fed if r.fed)
        rest = fmean(r.step_seconds + r.fed.transfer_seconds for r in fed if r.fed)
        if loader > rest:
            yield Cause(
                "loader-bound",
                name,
                f"the loader takes {milliseconds(loader)} a batch, and the step with its transfer "
                f"{milliseconds(rest)}: a faster device changes nothing",
                "batches that are made beforehand",
            )


def warm_up(e: Explanation) -> Iterator[Cause]:
    """A first step that short measurements would count."""
    for name, capture, _ in of_sides(e):
        first = fmean(reading.first_step_seconds for reading in capture.readings)
        steps = first / capture.step_seconds
        if steps > _FIRST_STEPS and first > _FIRST_SECONDS:
            yield Cause(
                "first step",
                name,
                f"the first step takes {first:.2g} s, as long as {steps:.0f} others: an epoch of fewer than "
                f"{20 * steps:.0f} steps that counts it reads more than 5 % too much",
                "timings without the first step",
            )
