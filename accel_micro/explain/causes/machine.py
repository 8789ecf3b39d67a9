"""The machine: threads and what others do with its cores."""

from collections.abc import Iterator
from statistics import fmean
from typing import Final

from accel_micro.explain.causes.cause import (
    Cause,
    of_sides,
)
from accel_micro.explain.explanation import Explanation
from accel_micro.explain.setting import Setting

_WAITING: Final = 0.1


def threads(e: Explanation) -> Iterator[Cause]:
    """More threads than cores, or cores that others have."""
    for name, capture, _ in of_sides(e):
        used, cores = capture.modes.get("threads"), capture.machine.get("cpu_cores_allowed", "")
        waiting = fmean(reading.waiting for reading in capture.readings)
        if capture.device != "cpu" or not isinstance(used, int) or not cores.isdecimal():
            continue
        if used > int(cores):
            yield Cause(
                "too many threads",
                name,
                f"{used} threads share {cores} cores, and waited {waiting:.2g} s a second for them",
                f"the {name} with threads={cores}",
                Setting.parse(capture.setting).changed(threads=cores),
            )
        elif waiting > _WAITING:
            yield Cause(
                "other programs",
                name,
                f"threads waited {waiting:.2g} s a second for cores that other programs had: "
                "these times are not the model's own",
                "the same with nothing else running",
            )
