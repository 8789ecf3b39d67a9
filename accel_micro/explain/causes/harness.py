"""The measurement itself: a side against itself, a stopwatch that does not wait, numbers that are none."""

from collections.abc import Iterator
from statistics import fmean
from typing import Final

from accel_micro.explain.capture import Capture
from accel_micro.explain.causes.cause import Cause, milliseconds, of_sides, slower
from accel_micro.explain.explanation import SIDES, Explanation

_BUSIER: Final = 1.05
_MISLED: Final = 1.5


def itself(e: Explanation) -> Iterator[Cause]:
    """A side against itself must show nothing."""
    one, other = e.baseline, e.contender
    same = all(
        getattr(one, name) == getattr(other, name)
        for name in ("model", "setting", "batch", "training", "torch", "machine", "modes")
    )
    if e.differs and same:
        how = "though they took turns" if e.interleaved else "since they did not take turns"
        yield Cause(
            "harness artefact",
            SIDES[slower(e)],
            f"nothing tells the sides apart, neither setting nor machine nor torch, and they differ {how}: what is "
            "compared is the machine at two moments",
            "the same again, by turns, with nothing else running",
        )


def not_waited(e: Explanation) -> Iterator[Cause]:
    """A device that is busy for longer than its step lasts, and what a stopwatch that does not wait would read."""
    misled = []
    for name, capture, _ in of_sides(e):
        busy = [r.device_seconds for r in capture.readings if r.device_seconds is not None]
        if busy and fmean(busy) > _BUSIER * capture.step_seconds:
            yield Cause(
                "harness artefact",
                name,
                f"{capture.device} is busy for {milliseconds(fmean(busy))} with a step that lasts "
                f"{milliseconds(capture.step_seconds)}: something does not wait for it",
                "a synchronisation before each reading of the clock",
            )
        misled.append(_unsynchronised(capture) / capture.batch)
    real = e.baseline.step_seconds / e.baseline.batch / (e.contender.step_seconds / e.contender.batch)
    read = misled[0] / misled[1]
    if max(real / read, read / real) > _MISLED:
        sides = (e.baseline, e.contender)
        side = max((0, 1), key=lambda n: sides[n].step_seconds / _unsynchronised(sides[n]))
        capture = sides[side]
        yield Cause(
            "unsynchronised timing",
            SIDES[side],
            f"a stopwatch that does not wait for {capture.device} reads "
            f"{milliseconds(_unsynchronised(capture))} a step where {milliseconds(capture.step_seconds)} pass, and a "
            f"speedup of {read:.3g}: timings elsewhere that differ so from these did not wait",
            "a synchronisation before each reading of the clock",
        )


def _unsynchronised(capture: Capture) -> float:
    host = [r.host_seconds for r in capture.readings if r.host_seconds is not None]
    return min(fmean(host), capture.step_seconds) if host else capture.step_seconds


def not_finite(e: Explanation) -> Iterator[Cause]:
    """A step that ends in NaN or infinity: some ops are slower on such numbers, others faster."""
    for name, capture, _ in of_sides(e):
        if not all(reading.finite for reading in capture.readings):
            yield Cause(
                "not finite",
                name,
                "what a step gives is NaN or infinity, so its ops were timed on numbers that no use has",
                "a batch and weights of usual size",
            )
