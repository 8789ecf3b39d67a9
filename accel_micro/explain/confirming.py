"""Is a cause the cause? Its ablation, held against what it should have done. Pure."""

from typing import Final

from accel_micro.explain.attribution import explain
from accel_micro.explain.batches import Fit, Switch, Tried
from accel_micro.explain.capture import Capture
from accel_micro.explain.causes import Ablation, Cause

_ENOUGH: Final = 0.5
"""Share of the expected change from which on an ablation confirms."""


def confirm(cause: Cause, before: Capture, after: Capture, difference: float) -> Ablation:
    """Hold the side as it was against the side with the changed setting, measured by turns.

    A cause is confirmed when the side became faster by more than noise, and by half of what it is to explain at least:
    of its own figure where it has one, else of a fifth of the difference between the sides.

    Args:
        difference: of baseline and contender, seconds an example.
    """
    found = explain(before, after, interleaved=True)
    expected = cause.seconds if cause.seconds is not None else abs(difference) / 5
    moved = found.difference
    confirmed = found.verdict.kind == "improvement" and moved > _ENOUGH * expected
    times = f"{found.speedup.value:.2f} times as fast [{found.speedup.low:.2f}, {found.speedup.high:.2f}]"
    said = "confirmed" if confirmed else "not confirmed"
    return Ablation(
        cause,
        found.speedup.value,
        found.speedup.low,
        found.speedup.high,
        confirmed,
        f"{said}: with {after.setting} the {cause.side} is {times}",
    )


def confirm_switch(line: Fit, switch: Switch, before: Capture, after: Capture) -> Tried:
    """Hold a step at the first size above a switch against the same without its library, measured by turns.

    Confirmed: the step changes by more than noise, and to the side on which the sizes below the switch put it.

    Args:
        switch: between two sizes of the line.
    """
    found = explain(before, after, interleaved=True)
    jump = line.seconds[line.batches.index(switch.above)] / line.before(switch.above)
    low, high = 1 / found.speedup.high, 1 / found.speedup.low
    confirmed = found.differs and (low > 1.0 if jump < 1.0 else high < 1.0)
    return Tried(after.setting, switch.above, jump, 1 / found.speedup.value, low, high, confirmed)
