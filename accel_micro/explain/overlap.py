"""Contributions where a device works while the host enqueues: Shapley values of the two-clock model, see `clocks`."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, Final

from accel_micro.explain import clocks
from accel_micro.explain.aligning import Group, noise, rows_of, values
from accel_micro.explain.capture import Capture
from accel_micro.explain.contributing import contribution, least_of, of_ratio, serial, with_error
from accel_micro.explain.explanation import Contribution, Interval
from accel_micro.stats.judging import FEWEST

_ORDERS_OF_ERRORS: Final = 8
_DEVICE_ERROR: Final = 0.01
"""Of a call's device seconds, which one process reads; together they were within 0.5 % of a profiler's on an H200."""


def by_two_clocks(
    sides: tuple[Capture, Capture], groups: list[Group], totals: Sequence[Sequence[float]]
) -> list[Contribution]:
    # A loader and transfers come before the step and do not overlap in the model.
    inside = [group for group in groups if group.kind in ("op", "framework")]
    inside.sort(key=lambda group: group.tail)  # whoever has the tail comes last
    around = [group for group in groups if group not in inside]
    outside = serial(sides, around, totals)[:-1]
    merged = _merged(sides, inside, [list(range(len(side.readings))) for side in sides])
    middle = clocks.shapley(merged, len(inside))
    counts = [len(side.readings) for side in sides]
    errors = _errors(sides, inside) if min(counts) >= FEWEST else None
    found = []
    for number, group in enumerate(inside):
        own = [_both_clocks(group, i, side) for i, side in enumerate(sides)]
        value = float(middle[number])
        piece = Contribution(group, fmean(own[0]), fmean(own[1]), Interval(value, -math.inf, math.inf), 1.0)
        if errors is not None:
            piece = with_error(piece, [float(side[number]) for side in errors], counts)
            scatter = [noise(group, i, side) for i, side in enumerate(sides)]
            piece = replace(piece, q_value=of_ratio(piece, own, scatter, least_of(totals), _DEVICE_ERROR))
        found.append(piece)
    difference = fmean(totals[0]) - fmean(totals[1])
    reached = math.fsum(each.seconds.value for each in [*found, *outside])
    left = [
        [
            total - math.fsum(parts)
            for total, *parts in zip(
                totals[i], _played(side), *(values(group, i, side) for group in around), strict=True
            )
        ]
        for i, side in enumerate(sides)
    ]
    rest = contribution(Group("unexplained", "unexplained"), left, [0.0, 0.0], difference - reached)
    return [*found, *outside, rest]


def _errors(sides: tuple[Capture, Capture], groups: Sequence[Group]) -> list[Any]:
    """Of each side the variances of the contributions that its processes bring about, by leaving out one by one.

    The jackknife: of a mean it is the variance of the mean itself, and otherwise rather too large than too small (Efron
    and Stein, Ann. Statist. 9, 1981).
    """
    import numpy as np

    everyone = [list(range(len(side.readings))) for side in sides]
    found = []
    for i, processes in enumerate(everyone):
        without = []
        for one in processes:
            chosen = list(everyone)
            chosen[i] = [each for each in processes if each != one]
            without.append(clocks.shapley(_merged(sides, groups, chosen), len(groups), _ORDERS_OF_ERRORS))
        found.append((len(processes) - 1) * np.var(without, axis=0))
    return found


def _both_clocks(group: Group, side: int, capture: Capture) -> list[float]:
    """The larger of a group's host and device seconds, which is what it takes when it is alone."""
    host = values(group, side, capture)
    if group.kind != "op":
        return host
    device = (
        sum((row.device_seconds or 0.0) * row.count for row in rows_of(group, side, capture)) / capture.batch
    )
    return [
        max(seconds, clocks.slowness(capture, reading) * device)
        for seconds, reading in zip(host, capture.readings, strict=True)
    ]


def _played(capture: Capture) -> list[float]:
    """Of each process the step by the two-clock model, seconds an example."""
    return [clocks.of_reading(capture, reading).seconds() / capture.batch for reading in capture.readings]


def _merged(
    sides: tuple[Capture, Capture], groups: Sequence[Group], readings: Sequence[Sequence[int]]
) -> clocks.Merged:
    """The calls of both sides in one order, with the means over these readings, seconds an example."""
    import numpy as np

    columns: dict[str, list[float]] = {
        name: [] for name in ("place", "op", "gap_of", "side", "call", "gap", "device", "wait")
    }
    tails = []
    for i, (side, chosen) in enumerate(zip(sides, readings, strict=True)):
        of_op = {n: g for g, group in enumerate(groups) if group.kind == "op" for n in group.rows[i]}
        of_gap = {n: g for g, group in enumerate(groups) if group.kind == "framework" for n in group.rows[i]}
        ops = np.mean([side.readings[r].ops for r in chosen], axis=0)
        gaps = np.mean([side.readings[r].gaps for r in chosen], axis=0)
        slower = fmean(clocks.slowness(side, side.readings[r]) for r in chosen)
        tails.append(fmean(side.readings[r].tail_seconds for r in chosen) / side.batch)
        queued = side.is_queued  # else nobody waits for its numbers
        for place, n in enumerate(side.sequence):
            row = side.rows[n]
            called = row.host_seconds(float(ops[n]) / row.count)
            columns["place"].append(place / len(side.sequence))
            columns["op"].append(of_op[n])
            columns["gap_of"].append(of_gap[n])
            columns["side"].append(i)
            columns["call"].append(called / side.batch)
            columns["gap"].append(float(gaps[n]) / row.count / side.batch)
            columns["device"].append(slower * (row.device_seconds or 0.0) / side.batch)
            columns["wait"].append(queued and row.waits)
    order = np.argsort(columns["place"], kind="stable")
    taken = {name: np.array(values)[order] for name, values in columns.items()}
    return clocks.Merged(
        op_group=taken["op"].astype(int),
        gap_group=taken["gap_of"].astype(int),
        side=taken["side"].astype(int),
        called=taken["call"],
        gap=taken["gap"],
        device=taken["device"],
        waits=taken["wait"].astype(bool),
        tails=(tails[0], tails[1]),
    )
