"""The numbers themselves: wrong ones, and ones that are slow."""

from collections.abc import Iterator
from typing import Final

from accel_micro.explain.aligning import rows_of
from accel_micro.explain.causes.cause import (
    SIDES,
    Cause,
    milliseconds,
    names,
    of_sides,
    slower,
    worst,
)
from accel_micro.explain.explanation import Explanation
from accel_micro.explain.setting import Setting

_DENORMAL_SHARE: Final = 1e-3


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
    pieces = worst(e, side, lambda row: row.subnormal > _DENORMAL_SHARE)
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
