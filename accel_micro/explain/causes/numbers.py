"""The numbers themselves: wrong ones, ones that are slow, and ones that are rounded more coarsely."""

import math
from collections.abc import Iterator
from statistics import fmean, median
from typing import Final

from accel_micro.explain.aligning import rows_of
from accel_micro.explain.capture import Capture, Row
from accel_micro.explain.causes.cause import (
    Cause,
    milliseconds,
    names,
    of_sides,
    slower,
    worst,
)
from accel_micro.explain.explanation import SIDES, Contribution, Explanation
from accel_micro.explain.setting import Setting

_DENORMAL_SHARE: Final = 1e-3
_MOST_OF_A_GROUP: Final = 0.5
_CLASSES: Final = (
    (1e-12, "float64"), (1e-5, "float32"), (1.5e-3, "TF32 or float16"), (3e-2, "bfloat16"), (math.inf, "less than that")
)  # fmt: skip
"""Errors below which products are of a class. Roundoffs are 2^-53, 2^-24, 2^-11 and 2^-8; sums have some of them."""
_FLOAT32: Final = 1


def wrong_results(e: Explanation) -> Iterator[Cause]:
    """Ops whose result is not right, the first of the step first."""
    for name, capture, _ in of_sides(e):
        order = list(dict.fromkeys(capture.sequence)) or list(range(len(capture.rows)))
        wrong = [capture.rows[n] for n in order if capture.rows[n].is_wrong]
        broken = [capture.rows[n] for n in order if capture.rows[n].non_finite]
        for rows, said in ((wrong, "is wrong"), (broken, "makes NaN or infinity of finite numbers")):
            if rows:
                row = rows[0]
                where = f" of {row.module}" if row.module else ""
                detail = f" ({row.check})" if row.is_wrong and rows is wrong else ""
                more = f", and {len(rows) - 1} more after it" if len(rows) > 1 else ""
                yield Cause(
                    "wrong result",
                    name,
                    f"{row.phase} {row.operator}{where} {said}{detail}{more}: its speed is worth nothing",
                    "the same op in float64, or on contiguous inputs",
                )


def denormals(e: Explanation) -> Iterator[Cause]:
    """Numbers too small for the format, which processors handle slowly."""
    side = slower(e)
    capture = (e.baseline, e.contender)[side]
    pieces = [
        each for each in worst(e, side, _has_denormals) if _denormal_share(each, side, capture) > _MOST_OF_A_GROUP
    ]  # fmt: skip
    if not pieces or capture.device != "cpu":
        return
    share, module = max(
        (row.subnormal, row.module) for p in pieces for row in rows_of(p.group, side, capture)
    )
    seconds = sum(abs(each.seconds.value) for each in pieces)
    setting = Setting.parse(capture.setting)
    yield Cause(
        "denormal numbers",
        SIDES[side],
        f"up to {100 * share:.2g} % of the numbers in {module or 'a tensor'} are too small for their format to hold in "
        f"full, which processors handle slowly; {names(pieces)} cost {milliseconds(seconds)} an example more",
        f"the {SIDES[side]} with flush_denormal=on",
        None if setting.switches.get("flush_denormal") == "on" else setting.changed(flush_denormal="on"),
        seconds,
    )


def _has_denormals(row: Row) -> bool:
    return row.subnormal > _DENORMAL_SHARE


def _denormal_share(piece: Contribution, side: int, capture: Capture) -> float:
    """Of what a group takes, by the ops that handle such numbers: Adam has a few in a layer that hardly learns."""
    seconds = {n: fmean(reading.ops[n] for reading in capture.readings) for n in piece.group.rows[side]}
    slow = sum(each for n, each in seconds.items() if _has_denormals(capture.rows[n]))
    return slow / (sum(seconds.values()) or 1.0)


def precision(e: Explanation) -> Iterator[Cause]:
    """Products that one side rounds more coarsely, and faster."""
    side = slower(e)
    fine, coarse = (e.baseline, e.contender)[side], (e.baseline, e.contender)[1 - side]
    classes = [_rounding(fine), _rounding(coarse)]
    if not worst(e, side, lambda row: row.flops > 0) or classes[0] is None or classes[1] is None:
        return
    if classes[0] >= classes[1]:
        return
    setting = Setting.parse(fine.setting)
    may = fine.device.startswith("cuda") and "tf32" not in setting.switches and classes[0] == _FLOAT32
    yield Cause(
        "precision mode",
        SIDES[side],
        f"products of the {SIDES[side]} round as {_CLASSES[classes[0]][1]} does, those of the {SIDES[1 - side]} as "
        f"{_CLASSES[classes[1]][1]}: relative errors {_error(fine):.1g} and {_error(coarse):.1g}",
        f"the {SIDES[side]} with tf32=on" if may else "the same precision on both sides",
        setting.changed(tf32="on") if may else None,
    )


def _error(capture: Capture) -> float:
    """Typical error of products; 0 where none was checked."""
    errors = [row.error for row in capture.rows if row.flops and row.error and not row.is_wrong]
    return median(errors) if errors else 0.0


def _rounding(capture: Capture) -> int | None:
    """Number of the class that the errors of products are of; where none was checked, what the modes say."""
    error = _error(capture)
    if error:
        return next(n for n, (most, _) in enumerate(_CLASSES) if error < most)
    narrow = any(bool(capture.modes.get(name)) for name in ("matmul_tf32", "cudnn_tf32"))
    dtype = Setting.parse(capture.setting).switches.get("dtype", "float32")
    if dtype != "float32":
        return None
    return _FLOAT32 + narrow if capture.modes else None
