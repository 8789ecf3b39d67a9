"""The host: launches, waits, calls of an optimizer, Python between the ops."""

from collections.abc import Iterator
from statistics import fmean
from typing import Final

from accel_micro.explain.capture import Capture
from accel_micro.explain.causes.cause import (
    Cause,
    milliseconds,
    of_sides,
    slower,
    slowing,
)
from accel_micro.explain.explanation import SIDES, Explanation
from accel_micro.explain.setting import Setting

HOST_BOUND: Final = 0.9
IDLE: Final = 0.7
_OPTIMIZER_SHARE: Final = 0.25
_SMALL_SECONDS: Final = 30e-6
_FRAMEWORK_SHARE: Final = 0.3


def launch_bound(e: Explanation) -> Iterator[Cause]:
    """The device waits for the host."""
    for name, capture, side in of_sides(e):
        closure = e.closures[side]
        if closure is None or closure.host is None or closure.device is None:
            continue
        if closure.host > HOST_BOUND and closure.device < IDLE:
            calls = len(capture.sequence)
            each = 1e6 * closure.host * capture.step_seconds / calls
            yield Cause(
                "launch-bound",
                name,
                f"{capture.device} is busy for {100 * closure.device:.0f} % of a step, and enqueueing takes "
                f"{100 * closure.host:.0f} %: {calls} calls, {each:.2g} µs each",
                "a larger batch, where each call has more to do",
                Setting.parse(capture.setting).changed(batch=str(4 * capture.batch)),
            )


def synchronising(e: Explanation) -> Iterator[Cause]:
    """Numbers that the host asks the device for. On a CPU nobody waits, and that is said, with what it costs."""
    asked = [_asked(capture) for _, capture, _ in of_sides(e)]
    counts = [sum(capture.rows[n].count for n in asked[side]) for _, capture, side in of_sides(e)]
    for name, capture, side in of_sides(e):
        times = "once" if counts[side] == 1 else f"{counts[side]} times"
        if counts[side] and any(reading.host_seconds is not None for reading in capture.readings):
            yield Cause(
                "synchronisation",
                name,
                f"a step asks the device for a number {times} (.item() and the like), and waits each time",
                "the step without reading numbers back",
            )
        elif capture.device == "cpu" and counts[side] > counts[1 - side]:
            seconds = [sum(r.ops[n] for n in asked[side]) for r in capture.readings if r.ops]
            cost = f" and the calls take {1e6 * fmean(seconds):.2g} µs of a step," if seconds else ""
            yield Cause(
                "synchronisation",
                name,
                f"a step asks for a number {times} (.item() and the like): on a CPU nobody waits for it,{cost} "
                "while a device that works on its own would run out of work each time",
                "nothing here; on such a device the step without reading numbers back",
            )


def _asked(capture: Capture) -> list[int]:
    """Rows that need a number of the device. On a CPU an optimizer's own counts of steps look the same: left out."""
    on_cpu = capture.device == "cpu"
    return [
        n for n, row in enumerate(capture.rows) if row.waits and not (on_cpu and row.phase == "optimizer")
    ]


def optimizer_one_by_one(e: Explanation) -> Iterator[Cause]:
    """An optimizer that spends its time on calls, one for each tensor."""
    for name, capture, side in of_sides(e):
        rows = [(n, row) for n, row in enumerate(capture.rows) if row.phase == "optimizer"]
        calls = sum(row.count for _, row in rows)
        if not rows or not capture.has_ops:
            continue
        seconds = fmean(sum(r.ops[n] + r.gaps[n] for n, _ in rows) for r in capture.readings)
        share = seconds / capture.step_seconds
        if side != slower(e) and capture.device == "cpu":
            continue
        small = seconds / calls < _SMALL_SECONDS
        foreach = any("_foreach_" in row.op or "_fused_" in row.op for _, row in rows)
        if share < _OPTIMIZER_SHARE or foreach or not small or calls < 2 * capture.tensors:
            continue
        setting = Setting.parse(capture.setting)
        yield Cause(
            "optimizer one by one",
            name,
            f"{100 * share:.0f} % of a step is the optimizer: {calls} calls for {capture.tensors} tensors, "
            f"{1e6 * seconds / calls:.2g} µs each",
            f"the {name} with foreach=on",
            None
            if "foreach" in setting.switches or "fused" in setting.switches
            else setting.changed(foreach="on"),
        )


def framework_bound(e: Explanation) -> Iterator[Cause]:
    """Python and autograd between the ops."""
    side = slower(e)
    capture = (e.baseline, e.contender)[side]
    pieces = [each for each in slowing(e, side) if each.group.kind == "framework"]
    if pieces and abs(pieces[0].seconds.value) > _FRAMEWORK_SHARE * abs(e.difference):
        seconds = abs(pieces[0].seconds.value)
        yield Cause(
            "Python between the ops",
            SIDES[side],
            f"{pieces[0].group.label}, {pieces[0].group.phase}: {milliseconds(seconds)} an example more in which "
            f"no op runs, {100 * seconds / abs(e.difference):.0f} % of the difference",
            "the module without its own Python, or compiled",
        )
    elif capture.has_ops:
        share = fmean(r.framework_seconds / r.step_seconds for r in capture.readings)
        if share > _FRAMEWORK_SHARE and capture.device == "cpu":
            yield Cause(
                "Python between the ops",
                SIDES[side],
                f"in {100 * share:.0f} % of a step no op runs: "
                f"Python and autograd between {len(capture.sequence)} calls",
                "a larger batch, where each call has more to do",
                Setting.parse(capture.setting).changed(batch=str(4 * capture.batch)),
            )
