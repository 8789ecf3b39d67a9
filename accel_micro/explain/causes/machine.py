"""The machine: threads and what others do with its cores, clocks that fall, ops that a device does not have."""

from collections.abc import Iterator
from statistics import fmean, median
from typing import Final

from accel_micro.explain.causes.cause import (
    Cause,
    of_sides,
)
from accel_micro.explain.explanation import Explanation
from accel_micro.explain.setting import Setting
from accel_micro.explain.trend import fall, falling

_WAITING: Final = 0.1
_ALPHA: Final = 0.01
_FEWEST_BLOCKS: Final = 5
_FEWEST_SERIES: Final = 3
_LEAST_FALL: Final = {False: 0.08, True: 0.03}
"""Share by which a clock must fall, by whether it is the device's own; the host's is read by a probe that scatters."""


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


def throttling(e: Explanation) -> Iterator[Cause]:
    """A clock that falls while the model runs, or that the driver holds down."""
    for name, capture, _ in of_sides(e):
        held = sorted({reason for reading in capture.readings for reason in reading.held})
        on_device = any(reading.block_hertz for reading in capture.readings)
        series = [
            reading.block_hertz if on_device else reading.block_speeds
            for reading in capture.readings
            if on_device or capture.device == "cpu"
        ]
        series = [each for each in series if len(each) >= _FEWEST_BLOCKS]
        falls = [fall(each) for each in series]
        least = _LEAST_FALL[on_device]
        many = sum(each > least for each in falls)
        falls_much = len(falls) >= _FEWEST_SERIES and 3 * many >= 2 * len(falls) and falling(series) < _ALPHA
        if not (falls_much or held):
            continue
        whose = capture.device if on_device or held else "the processor"
        said = []
        if falls_much:
            said.append(f"the clock of {whose} falls by {100 * median(falls):.0f} % within a process")
        if held:
            said.append(f"the driver held it down: {', '.join(held)}")
        yield Cause(
            "throttling", name, "; ".join(said), f"the {name} after a rest, or with a pause between blocks"
        )


def fallback(e: Explanation) -> Iterator[Cause]:
    """Ops that run on the CPU in the device's place, and the copies there and back."""
    for name, capture, _ in of_sides(e):
        if capture.device == "cpu":
            continue
        ops = list(dict.fromkeys(op for reading in capture.readings for op in reading.on_host))
        steps = [row for row in capture.rows if row.phase != "optimizer"]
        there, back = (
            sum(row.count for row in steps if row.crossing == way) for way in ("to host", "to device")
        )
        worked = list(dict.fromkeys(row.operator for row in steps if row.crossing == "on host" and row.bytes))
        if ops:
            said = f"{capture.device} has no kernel for {', '.join(ops[:4])}, which ran on the CPU"
        elif there and back and worked:
            said = (
                f"a step takes numbers to the CPU {there} times and back {back} times, and works there: "
                f"{', '.join(worked[:4])}"
            )
        else:
            continue
        yield Cause(
            "CPU fallback", name, said, f"the step without these ops, or with kernels of {capture.device}"
        )
