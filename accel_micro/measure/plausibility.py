"""Could this be true? Times below what the device can physically do are rejected.

A missing synchronisation, a lazy result that was dropped and an answer from a cache all look like speed.
"""

from typing import Final

from accel_micro.devices.base import Counted
from accel_micro.measure.records import Peak, Work

MARGIN: Final = 1.05
"""Share of the measured peak above which a rate is rejected: the peak was measured, so it has an error too."""

FEWEST_GROWTH: Final = 1.3
"""Least ratio of the time of 3n calls to that of n calls. Work that is really done reads about 3."""


def impossible(seconds: float, work: Work | None, peak: Peak | None) -> str | None:
    """None when a call may take `seconds`, else a sentence with the rate and the peak it exceeds."""
    if work is None or peak is None:
        return None
    flops = work.fewest_flops if work.fewest_flops is not None else work.flops
    for amount, most, unit in (
        (flops, peak.flops_per_second, "FLOP/s"),
        (work.bytes, peak.bytes_per_second, "B/s"),
    ):
        if amount and most and amount / seconds > MARGIN * most:
            return (
                f"{amount / seconds:.3g} {unit} is {amount / seconds / most:.3g} times the {most:.3g} {unit} "
                "that this device was measured to reach"
            )
    return None


def not_growing(once_seconds: float, thrice_seconds: float) -> str | None:
    """None when the time of 3n calls is sufficiently above that of n calls, else a sentence."""
    ratio = thrice_seconds / once_seconds if once_seconds > 0 else 0.0
    if ratio >= FEWEST_GROWTH:
        return None
    return f"three times as many calls take {ratio:.2f} times as long, so most of the work is not timed"


def not_the_op_alone(counted: Counted, calls: int, device: str) -> str | None:
    """None when the backend counted nothing but the execution of that many calls, else a sentence."""
    if counted.on_host:
        return f"{', '.join(counted.on_host)} ran on the CPU, since {device} has no kernel for it"
    if counted.compilations:
        seconds = "" if counted.compile_seconds is None else f", which took {counted.compile_seconds:.2g} s"
        return (
            f"{counted.compilations} programs were compiled in {calls} calls{seconds}: "
            "shapes or constants change from call to call"
        )
    if counted.executions is not None and counted.executions < calls:
        return (
            f"{counted.executions} of {calls} calls were executed: "
            "results are dropped, cached, or nothing but the inputs"
        )
    if counted.finished is not None and counted.finished < calls:
        return f"{counted.finished} of {calls} calls had been executed when the time was read"
    return None
