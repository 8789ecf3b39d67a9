"""Two captures in, an explanation out: what each group contributes to the difference, and what is left over.

On a device that works at once a step is a sum, so a group contributes its own difference:

    T_A − T_B = Σ (t_A,g − t_B,g) + (R_A − R_B),    R = T − Σ t_g,

exactly. The speedup is the product of factors exp(c_g ÷ L), L = (T_A − T_B) ÷ ln(T_A ÷ T_B), the logarithmic mean: the
additive and the multiplicative form of the LMDI decomposition, which leaves nothing over (Ang, Energy Policy 33, 2005).
Where host and device overlap, contributions are Shapley values of the two-clock model, see `clocks`, and R is the rest
that the model does not reach. All seconds are those of an example, so that batches of two sizes can be compared.

Intervals are Student's t on the differences of process means (Welch), p-values are adjusted for their number after
Benjamini and Hochberg; a contribution is significant when its q-value is at most `ALPHA` and it is larger than
`TOLERANCE` of the baseline's step.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from accel_micro.explain.aligning import Group, framework_groups, op_groups, values
from accel_micro.explain.capture import Capture
from accel_micro.explain.clocks import slowness
from accel_micro.explain.closing import closure, predicted
from accel_micro.explain.contributing import contribution, judged, least_of, serial
from accel_micro.explain.explanation import ALPHA, SIDES, Explanation, Interval
from accel_micro.explain.overlap import by_two_clocks
from accel_micro.stats.judging import FEWEST, judge
from accel_micro.stats.modes import find_modes
from accel_micro.stats.verdict import Verdict


class CannotExplain(ValueError):
    """The captures cannot be held against each other; the message says why."""


def explain(baseline: Capture, contender: Capture, *, interleaved: bool = False) -> Explanation:
    """Hold two captures against each other.

    Args:
        interleaved: their processes took turns on one machine.

    Raises:
        CannotExplain: one trains and the other does not.
    """
    if baseline.training != contender.training:
        raise CannotExplain("one capture is of training steps and the other of inference; capture both alike")
    verdict = _verdict((baseline, contender), interleaved)
    notes = _notes((baseline, contender), interleaved)
    sides = _of_one_speed((baseline, contender), verdict)
    for name, side, whole in zip(SIDES, sides, (baseline, contender), strict=True):
        if len(side.readings) < len(whole.readings):
            notes += (
                f"{name}: {len(side.readings)} of {len(whole.readings)} processes are explained, the others ran at "
                "another speed of the machine",
            )
    baseline, contender = sides
    totals = [_totals(side) for side in sides]
    difference = fmean(totals[0]) - fmean(totals[1])
    speedup = _speedup(totals, verdict)
    if not (baseline.has_ops and contender.has_ops):
        rest = contribution(Group("unexplained", "unexplained"), totals, [0.0, 0.0])
        return Explanation(
            *sides, interleaved, speedup, verdict, difference, None, (None, None),
            tuple(judged([rest], [], totals)), 1.0 if verdict.kind in ("regression", "improvement") else None, notes,
        )  # fmt: skip
    groups = op_groups(*sides)
    framework, candidates = framework_groups(*sides)
    groups += framework
    if any(reading.fed for side in sides for reading in side.readings):
        groups += [Group("transfer", "batches to the device"), Group("loader", "waiting for the loader")]
    if any(side.is_queued for side in sides):
        found = by_two_clocks(sides, groups, totals)
    else:
        found = serial(sides, groups, totals)
    least = least_of(totals)
    others = [
        contribution(g, [values(g, i, s) for i, s in enumerate(sides)], [0.0, 0.0], least=least)
        for g in candidates
    ]
    pieces = judged(found, others, totals)
    differs = verdict.kind in ("regression", "improvement")
    left = next(each for each in pieces if each.group.kind == "unexplained")
    return Explanation(
        *sides,
        interleaved,
        speedup,
        verdict,
        difference,
        predicted(sides),
        (closure(baseline), closure(contender)),
        tuple(sorted(pieces, key=lambda each: (each.group.kind == "unexplained", -abs(each.seconds.value)))),
        abs(left.seconds.value / difference) if differs and difference else None,
        notes,
    )


def _totals(side: Capture) -> list[float]:
    """Of each process the seconds that are explained, an example."""
    return [reading.total_seconds / side.batch for reading in side.readings]


def _verdict(sides: tuple[Capture, Capture], interleaved: bool) -> Verdict:
    if any(reading.fed for side in sides for reading in side.readings):
        samples = [[[seconds] for seconds in _totals(side)] for side in sides]
    else:
        samples = [[[s / side.batch for s in r.steps] for r in side.readings] for side in sides]
    turns = interleaved and len(samples[0]) == len(samples[1])
    return judge(samples[0], samples[1], alpha=ALPHA, tolerance=0.02, turns=turns)


def _of_one_speed(sides: tuple[Capture, Capture], verdict: Verdict) -> tuple[Capture, Capture]:
    """The sides with the processes of their main speed mode alone, where the verdict's ratio is not that of all.

    It sets processes aside that ran on a slower machine. Means with them could have the other sign.
    """
    totals = [_totals(side) for side in sides]
    ratio = fmean(totals[1]) / fmean(totals[0])
    if verdict.ratio_low <= ratio <= verdict.ratio_high:
        return sides
    modes = find_modes(*([math.log(total) for total in side] for side in totals))
    kept = [
        [n for n, mode in enumerate(labels) if mode == modes.main]
        for labels in (modes.baseline, modes.contender)
    ]
    if min(map(len, kept)) < FEWEST:
        return sides
    of_kept = [fmean(side[n] for n in numbers) for side, numbers in zip(totals, kept, strict=True)]
    if abs(math.log(of_kept[1] / of_kept[0] / verdict.ratio)) >= abs(math.log(ratio / verdict.ratio)):
        return sides
    one, other = (_with(side, numbers) for side, numbers in zip(sides, kept, strict=True))
    return one, other


def _with(side: Capture, numbers: Sequence[int]) -> Capture:
    """A side with some of its processes. Device seconds of calls become those of the first of them."""
    slower = slowness(side, side.readings[numbers[0]])
    rows = tuple(
        row if row.device_seconds is None else replace(row, device_seconds=slower * row.device_seconds)
        for row in side.rows
    )
    return replace(side, rows=rows, readings=tuple(side.readings[n] for n in numbers))


def _speedup(totals: Sequence[Sequence[float]], verdict: Verdict) -> Interval:
    low, high = verdict.ratio_low, verdict.ratio_high
    return Interval(
        fmean(totals[0]) / fmean(totals[1]), 1 / high if high else math.inf, 1 / low if low else math.inf
    )


def _notes(sides: tuple[Capture, Capture], interleaved: bool) -> tuple[str, ...]:
    found: list[str] = []
    if sides[0].model != sides[1].model:
        found.append(f"two models are compared: {sides[0].model} and {sides[1].model}")
    if not interleaved:
        found.append(
            "the captures were not measured by turns, so what the machine did meanwhile is part of the difference"
        )
    for name, side in zip(SIDES, sides, strict=True):
        found += [f"{name}: {problem}" for problem in side.problems]
        if len(side.readings) < 3:
            found.append(f"{name}: fewer than three processes do not show how processes differ")
    return tuple(found)
