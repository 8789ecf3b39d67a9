"""Kernels: another one, one far from what the machine reaches, one as fast as memory."""

from collections.abc import Iterator
from statistics import fmean
from typing import Final

from accel_micro.device_names import kind_of
from accel_micro.explain.aligning import rows_of
from accel_micro.explain.capture import Capture
from accel_micro.explain.causes.cause import (
    Cause,
    milliseconds,
    names,
    slower,
    slowing,
    worst,
)
from accel_micro.explain.explanation import SIDES, Contribution, Explanation
from accel_micro.explain.setting import Setting

_MEMORY_SHARE: Final = 0.6
_SLOW_SHARE: Final = 0.25
_SLOW_TIMES: Final = 2.0
_WITHOUT_LIBRARY: Final = "Slow"
"""How torch's own implementations of convolution begin (`Slow2d`, `SlowDilated3d`)."""
_NAMED: Final = 3
"""Ops of a cause that its sentence names."""


def regime_switch(e: Explanation) -> Iterator[Cause]:
    """Convolutions run by another implementation on one side.

    Devices of two kinds have different ones anyway: there it is named only where the slower side has no library for it.
    """
    side = slower(e)
    capture = (e.baseline, e.contender)[side]
    alike = kind_of(e.baseline.device) == kind_of(e.contender.device)
    known = {(row.phase, row.module): row.backend for row in e.baseline.rows if row.backend}
    changed: dict[tuple[str, str], int] = {}
    for row in e.contender.rows:
        pair = known.get((row.phase, row.module), ""), row.backend
        if all(pair) and pair[0] != pair[1] and (alike or pair[side].startswith(_WITHOUT_LIBRARY)):
            changed[pair] = changed.get(pair, 0) + row.count
    pieces = worst(e, side, lambda row: bool(row.backend)) if changed else []
    if not pieces:
        return
    (first, second), count = max(changed.items(), key=lambda item: item[1])
    seconds = sum(abs(each.seconds.value) for each in pieces)
    name = (first, second)[side]
    setting = None
    flag, value = library(name)
    if flag and capture.device == "cpu" and Setting.parse(capture.setting).switches.get(flag) != value:
        setting = Setting.parse(capture.setting).changed(**{flag: value})
    yield Cause(
        "regime switch",
        SIDES[side],
        f"{count} calls of convolution run as {first} in the baseline and as {second} in the contender; "
        f"{names(pieces)} cost {SIDES[side]} {milliseconds(seconds)} an example more",
        f"the {SIDES[side]} with {flag}={value}" if setting else "the same implementation on both sides",
        setting,
    )


def library(backend: str) -> tuple[str, str]:
    """The switch that takes convolutions away from an implementation, and its value; empty where there is none."""
    for name, switch in (("Nnpack", "nnpack"), ("Mkldnn", "onednn")):
        if backend.startswith(name):
            return switch, "off"
    return ("onednn", "on") if backend.startswith(_WITHOUT_LIBRARY) else ("", "")


def memory_bound(e: Explanation) -> Iterator[Cause]:
    """Ops that move data as fast as the machine can."""
    side = slower(e)
    capture = (e.baseline, e.contender)[side]
    found = [
        each
        for each in slowing(e, side)
        if each.group.kind == "op" and _share(each, side, capture, "bytes") > _MEMORY_SHARE
    ]
    if found:
        share = _share(found[0], side, capture, "bytes")
        yield Cause(
            "memory-bound",
            SIDES[side],
            f"{names(found)} move data at {100 * share:.0f} % of what this machine reaches",
            "a dtype of half the size, which should take about half the time",
        )


def slow_kernel(e: Explanation) -> Iterator[Cause]:
    """Ops that use less of their machine than they do on the other side."""
    side = slower(e)
    capture, other = (e.baseline, e.contender)[side], (e.baseline, e.contender)[1 - side]
    found = []
    for each in slowing(e, side):
        if each.group.kind != "op":
            continue
        here = max(_share(each, side, capture, kind) for kind in ("flops", "bytes"))
        there = max(_share(each, 1 - side, other, kind) for kind in ("flops", "bytes"))
        if 0 < here < _SLOW_SHARE and there > _SLOW_TIMES * here:
            found.append((each, here, there))
    if found:
        each, here, there = found[0]
        # Each with its own: an op that is hardly slower, beside the one that was looked for, would borrow its figures.
        rest = [f"{names([piece])} ({_percent(a)} against {_percent(b)})" for piece, a, b in found[1:_NAMED]]
        yield Cause(
            "slow kernel",
            SIDES[side],
            f"{names([each])}: {_percent(here)} of what the machine reaches, where the other side has "
            f"{_percent(there)} of its own{'; also ' if rest else ''}{', '.join(rest)}",
            "another backend or layout",
            _with_channels_last(capture, each),
        )


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _with_channels_last(capture: Capture, contribution: Contribution) -> Setting | None:
    setting = Setting.parse(capture.setting)
    images = "conv" in contribution.group.label or "pool" in contribution.group.label
    return setting.changed(channels_last="on") if images and "channels_last" not in setting.switches else None


def _share(contribution: Contribution, side: int, capture: Capture, kind: str) -> float:
    """FLOP/s or bytes/s of a group ÷ what the machine reaches; 0 where unknown."""
    rows = list(rows_of(contribution.group, side, capture))
    if not rows:
        return 0.0
    device = sum((row.device_seconds or 0.0) * row.count for row in rows)
    seconds = device or fmean(sum(r.ops[n] for n in contribution.group.rows[side]) for r in capture.readings)
    amount = sum((row.flops if kind == "flops" else row.bytes) * row.count for row in rows)
    if seconds <= 0:
        return 0.0
    if kind == "flops":
        return amount / seconds / capture.flops_per_second if capture.flops_per_second else 0.0
    largest = max((row.bytes for row in rows), default=0.0)
    rates = {int(size): rate for size, rate in capture.bytes_per_second.items()}
    most = max((rate for size, rate in rates.items() if 4 * size >= largest), default=None)
    return amount / seconds / most if most else 0.0
