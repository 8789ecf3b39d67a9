"""Does the sum of the parts reach the measured step? In place, and with replays in place of that."""

import math
from statistics import fmean, median, variance

from accel_micro.explain import clocks
from accel_micro.explain.capture import Capture
from accel_micro.explain.explanation import CONFIDENCE, Closure, Interval
from accel_micro.stats import student


def closure(capture: Capture) -> Closure:
    """Of one side; the interval is that of the mean over processes."""
    shares = [
        clocks.of_reading(capture, reading).seconds() / reading.step_seconds for reading in capture.readings
    ]
    middle = fmean(shares)
    half = math.inf
    if len(shares) > 1:
        half = student.margin(len(shares) - 1, CONFIDENCE) * math.sqrt(variance(shares) / len(shares))
    steps = capture.step_seconds
    replayed = _replayed(capture)
    # Each ÷ its own process's step: a host that was faster in one process while it only enqueued does not decide.
    host = [r.host_seconds / r.step_seconds for r in capture.readings if r.host_seconds is not None]
    device = [r.device_seconds / r.step_seconds for r in capture.readings if r.device_seconds is not None]
    return Closure(
        Interval(middle, middle - half, middle + half),
        None if replayed is None else replayed[0] / steps,
        None if replayed is None else replayed[1] / steps,
        median(host) if host else None,
        median(device) if device else None,
    )


def _replayed(capture: Capture) -> tuple[float, float] | None:
    """A step with hot and with cold replays in place of the ops in place; by the two-clock model where there is one.

    A call that was not replayed keeps its time in place. None: nothing was.
    """
    if capture.is_queued:
        played = fmean(clocks.of_reading(capture, reading).seconds() for reading in capture.readings)
        return played, played
    if all(row.hot_seconds is None for row in capture.rows):
        return None
    framework = fmean(reading.framework_seconds for reading in capture.readings)
    in_place = [fmean(reading.ops[n] for reading in capture.readings) for n in range(len(capture.rows))]
    hot = cold = framework
    for row, seconds in zip(capture.rows, in_place, strict=True):
        hot += seconds if row.hot_seconds is None else row.count * row.hot_seconds
        cold += seconds if row.cold_seconds is None else row.count * row.cold_seconds
    return hot, cold


def predicted(sides: tuple[Capture, Capture]) -> tuple[float, float] | None:
    replays = [_replayed(side) for side in sides]
    if replays[0] is None or replays[1] is None:
        return None
    per = [side.batch for side in sides]
    hot, cold = (replays[0][n] / per[0] / (replays[1][n] / per[1]) for n in (0, 1))
    return hot, cold
