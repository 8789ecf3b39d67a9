"""What comes around a step: its batches, compilations, and the first one."""

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
_LOADER_SHARE: Final = 0.2
_TRANSFORM_SHARE: Final = 0.5
_FEWEST_COMPILATIONS: Final = 0.02
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


def slow_transform(e: Explanation) -> Iterator[Cause]:
    """The loader spends its time on changing examples, and not on reading them or on making batches."""
    for name, capture, _ in of_sides(e):
        fed = [reading.fed for reading in capture.readings if reading.fed]
        apart = [each for each in fed if each.transform_seconds is not None]
        if not apart or len(apart) < len(fed):
            continue
        transform = fmean(each.transform_seconds or 0.0 for each in apart)
        fetch = fmean(each.fetch_seconds or 0.0 for each in apart)
        collate = fmean(each.collate_seconds or 0.0 for each in apart)
        # What a step waits for its batch: all of it, or what workers could not do beside the step.
        waited = fmean(each.step_seconds for each in fed) - fmean(
            reading.step_seconds for reading in capture.readings
        )
        long = waited > _LOADER_SHARE * fmean(each.step_seconds for each in fed)
        if long and transform > _TRANSFORM_SHARE * (transform + fetch + collate):
            yield Cause(
                "slow transform",
                name,
                f"of {milliseconds(transform + fetch + collate)} that one worker needs for a batch, "
                f"{milliseconds(transform)} are its transform ({apart[0].transform}), {milliseconds(fetch)} "
                f"examples and {milliseconds(collate)} putting them together",
                "examples that are transformed beforehand, or the transform of whole batches on the device",
            )


def recompiling(e: Explanation) -> Iterator[Cause]:
    """A steady step that is compiled again."""
    for name, capture, _ in of_sides(e):
        count = fmean(reading.compilations for reading in capture.readings)
        if count < _FEWEST_COMPILATIONS or not all(reading.compilations for reading in capture.readings):
            continue
        seconds = fmean(reading.compile_seconds for reading in capture.readings)
        share = min(1.0, seconds / capture.step_seconds)
        took = (
            f", which takes {100 * share:.0f} % of its {milliseconds(capture.step_seconds)}"
            if seconds
            else ""
        )
        yield Cause(
            "recompilation",
            name,
            f"{count:.2g} programs are compiled in each steady step{took}: shapes or numbers that change, "
            "which the program has as constants",
            "the same shapes in each step, and numbers that change as tensors",
            None,
            seconds / capture.batch if seconds else None,
        )
