"""Warm-up: call until times are stable, so that caches, clocks and autotuners have settled before a block counts."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Final

from accel_micro.devices.base import Device
from accel_micro.measure.flags import Flag
from accel_micro.measure.gate import PRIOR_SENSITIVITY

BLOCK_SECONDS: Final = 10e-3
"""Least length of a block: a thousand times what the timer and a synchronisation cost."""

_SAMPLES: Final = 10
_AGREEMENT: Final = 0.01
_SHARE_OF_BUDGET: Final = 0.5
_DRIFTING: Final = 0.05


@dataclass(frozen=True)
class WarmUp:
    """What a warm-up leaves: the fastest seconds per call of its end, how long it lasted, and flags."""

    seconds_per_call: float
    seconds: float
    flags: tuple[Flag, ...]


def warm_up(
    device: Device,
    seconds_of: Callable[[int], float],
    budget_seconds: float,
    full_speed: float,
    most_calls: int | None = None,
) -> WarmUp:
    """Call until two successive medians of ten readings agree within 1 %, corrected for the machine's speed.

    It lasts at least the device's minimum, and at most the larger of twice that and half the budget; times that still
    moved by more than 5 % in the last half of a warm-up that had to end are flagged.

    Args:
        seconds_of: times that many calls together, seconds.
        full_speed: rate of the host's probe at full speed.
        most_calls: calls that may be made together; None: any number.
    """
    least = device.minimum_warmup_seconds
    most = max(2 * least, _SHARE_OF_BUDGET * budget_seconds)
    start = device.now()
    calls = 1
    medians: list[float] = []
    flags: tuple[Flag, ...] = ()
    while True:
        readings: list[float] = []
        while len(readings) < _SAMPLES:
            seconds = seconds_of(calls)
            while seconds < 0.1 * BLOCK_SECONDS and calls != most_calls and device.now() - start < most:
                wanted = round(calls * 0.15 * BLOCK_SECONDS / max(seconds, 1e-9))
                calls = max(calls + 1, min(10 * calls, wanted))
                calls = calls if most_calls is None else min(calls, most_calls)
                seconds = seconds_of(calls)
            readings.append(seconds / calls)
            if device.now() - start > most and len(readings) >= 2:
                break
        speed = min(1.0, device.probe_host_speed() / full_speed)
        medians.append(median(readings) * speed**PRIOR_SENSITIVITY)
        elapsed = device.now() - start
        settled = len(medians) > 1 and abs(medians[-1] / medians[-2] - 1) <= _AGREEMENT
        if elapsed >= least and settled:
            break
        if elapsed >= most:
            drift = abs(medians[-1] / medians[len(medians) // 2] - 1)
            if drift > _DRIFTING:
                detail = f"{100 * drift:.0f} % drift in the last half of {elapsed:.1f} s"
                flags = (Flag("warm-up capped", detail),)
            break
    return WarmUp(min(readings), device.now() - start, flags)
