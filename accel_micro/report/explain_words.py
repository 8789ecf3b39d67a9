"""The words of an explanation: which side is faster, what a contribution is, what is left over."""

import math
from typing import Final

from accel_micro.explain.batches import Fit, Tried
from accel_micro.explain.capture import Capture
from accel_micro.explain.explanation import ALPHA, MOST_LEFT, SIDES, Closure, Contribution, Explanation
from accel_micro.explain.setting import shown
from accel_micro.report import units
from accel_micro.report.words import clean, count

_UNSEEN_SECONDS: Final = 5e-10
SHORT_PHASE: Final = {"forward": "fwd", "backward": "bwd", "optimizer": "opt"}
_SIGNS: Final = {True: "+", False: "−"}


def title(e: Explanation) -> str:
    """Which model, and which two sides."""
    kind = "training" if e.baseline.training else "inference"
    name = clean(e.baseline.model)
    if e.contender.model != e.baseline.model:
        name = f"{name} and {clean(e.contender.model)}"
    return (
        f"{name}, {kind}: {clean(shown(e.baseline.setting))} (baseline) and "
        f"{clean(shown(e.contender.setting))} (contender)"
    )


def summary(e: Explanation) -> str:
    """The measured speedup in a sentence."""
    one, other = (seconds(total(side)) for side in (e.baseline, e.contender))
    took = f"{one} an example in the baseline, {other} in the contender"
    interval = f"[{factor(e.speedup.low)}, {factor(e.speedup.high)}]"
    if e.verdict.kind == "invariant":
        return f"Both take the same time within 2 %: speedup {factor(e.speedup.value)} {interval}; {took}."
    if not e.differs:
        needed = e.verdict.processes_needed
        more = (
            f" About {count(needed, 'more process', 'more processes')} a side would decide it."
            if needed
            else ""
        )
        if not math.isfinite(e.speedup.high):
            few = "read by too few processes for an interval, so no difference is shown yet"
            return f"Speedup {factor(e.speedup.value)}, {few}; {took}.{more}"
        if e.speedup.low > 1 or e.speedup.high < 1:
            return (
                f"Not decided: speedup {factor(e.speedup.value)} {interval}; {took}. {_undecided(e)}.{more}"
            )
        return f"No difference shown: speedup {factor(e.speedup.value)} {interval}; {took}.{more}"
    word = "faster" if e.difference > 0 else "slower"
    return f"The contender is {word}: speedup {factor(e.speedup.value)} {interval}; {took}."


def _undecided(e: Explanation) -> str:
    """Why sides are not called different although the 95 % interval leaves out 1."""
    if e.verdict.p_value <= ALPHA:
        return f"{e.verdict.reason[:1].upper()}{e.verdict.reason[1:]}"
    often = f"1 of {1 / e.verdict.p_value:.0f} comparisons"
    return f"Equal sides would look so different in {often}, and 1 of {1 / ALPHA:.0f} is asked for"


def total(side: Capture) -> float:
    """Seconds of an example, the mean over processes."""
    return sum(reading.total_seconds for reading in side.readings) / len(side.readings) / side.batch


def how(e: Explanation) -> str:
    """How it was measured."""
    first, second = len(e.baseline.readings), len(e.contender.readings)
    number = count(first, "process", "processes") if first == second else f"{first} and {second} processes"
    ways = "by turns" if e.interleaved else "apart from each other"
    builds = f"torch {e.baseline.torch}"
    if e.contender.torch != e.baseline.torch:
        builds += f" and {e.contender.torch}"
    return f"{number} a side, {ways}; {clean(builds)}."


def step(side: Capture, wider: float) -> str:
    """How long a step of it takes, and how many times as wide it is drawn as the other side's."""
    text = f"{seconds(side.step_seconds)} a step"
    return text if wider == 1.0 else f"{text}, drawn {wider:.0f} times as wide"


def factor(value: float) -> str:
    """`1.83×`, with three digits."""
    if not math.isfinite(value):
        return "∞"
    return f"{value:.2f}×" if value < 9.995 else f"{value:.1f}×" if value < 99.95 else f"{value:.0f}×"


def seconds(value: float) -> str:
    """A time, with a minus where it is less than nothing; what no clock shows is nothing."""
    if abs(value) < _UNSEEN_SECONDS:
        return "0 s"
    return units.quantity(value, "s") if value > 0 else f"−{units.quantity(-value, 's')}"


def saved(each: Contribution) -> str:
    """What the contender saves, with the half of its interval: `+12.3 ± 0.4 ms`."""
    value, half = each.seconds.value, (each.seconds.high - each.seconds.low) / 2
    if abs(value) < _UNSEEN_SECONDS:
        value = 0.0
    if not math.isfinite(half) or half < _UNSEEN_SECONDS:
        return f"+{seconds(value)}" if value > 0 else seconds(value)
    # Both in the unit of the larger one.
    largest, unit = units.quantity(max(abs(value), half), "s").split()
    scale = max(abs(value), half) / float(largest)
    decimals = len(largest.partition(".")[2])
    return f"{_SIGNS[value >= 0]}{abs(value) / scale:.{decimals}f} ± {half / scale:.{decimals}f} {unit}"


def label(each: Contribution) -> str:
    """The group, with its phase in short: `bwd convolution_backward`."""
    phase = SHORT_PHASE.get(each.group.phase, each.group.phase)
    return clean(f"{phase} {each.group.label}".strip())


def share(e: Explanation, each: Contribution) -> str:
    """Of the difference; a dash where the sides do not differ."""
    if not e.differs or not e.difference:
        return "–"
    value = round(100 * each.seconds.value / e.difference)
    return f"{value} %".replace("-", "−")


def closure(name: str, found: Closure | None) -> str:
    """How far the parts of a side reach."""
    if found is None:
        return f"{name}: its ops could not be timed."
    low, high = found.in_place.low, found.in_place.high
    interval = "" if math.isinf(high - low) else f" [{100 * low:.0f}, {100 * high:.0f}]"
    text = f"{name}: ops and Python add up to {100 * found.in_place.value:.0f} %{interval} of the step"
    if found.host is not None and found.device is not None:
        text += f"; enqueueing takes {100 * found.host:.0f} % of it, the device is busy for {100 * found.device:.0f} %"
    elif found.hot is not None and found.cold is not None:
        text += f"; replayed hot {100 * found.hot:.0f} %, cold {100 * found.cold:.0f} %"
    return f"{text}."


def prediction(e: Explanation) -> str:
    """The speedup from replays, as a bracket."""
    if e.predicted is None:
        return ""
    hot, cold = e.predicted
    if hot == cold:
        return f"Predicted from the clocks of single ops: {factor(hot)}."
    return f"Predicted from single ops: {factor(hot)} with their inputs in the cache, {factor(cold)} without."


def left(e: Explanation) -> str:
    """What is unexplained, and whether that is much."""
    if e.unexplained is None:
        return "unexplained: no difference is shown that could be explained"
    text = f"unexplained {100 * e.unexplained:.0f} % of the difference"
    if e.unexplained >= MOST_LEFT:
        return f"{text}, which is much: take the rest as hints"
    open_sides = [
        name for name, each in zip(SIDES, e.closures, strict=True) if each is None or not each.is_certain
    ]
    if open_sides:
        whose, its = (f"the {open_sides[0]}", "its") if len(open_sides) == 1 else ("both sides", "their")
        text += f", but take the parts of {whose} as hints: it is not certain that they add up to {its} step"
    return text


def which_build(e: Explanation, file: str = "what --json writes here") -> str:
    """How to find the build that brought the difference, where two builds differ in an op; else nothing.

    Where the steps were not shown to differ an op may have been: a step has more noise than an op that is a part of it.

    Args:
        file: what FILE of that command is.
    """
    both = [each for each in e.contributions if each.baseline != 0.0 and each.contender != 0.0]
    ops = [each for each in both if each.group.kind == "op"]
    if e.differs:
        ops = [each for each in ops if each.seconds.value * e.difference > 0]
    else:
        ops = [each for each in ops if each.significant]
    if e.baseline.torch == e.contender.torch or not ops:
        return ""
    costliest = max(ops, key=lambda each: (each.significant, abs(each.seconds.value)))
    way = "--regress faster " if costliest.seconds.value > 0 else ""
    what = f"{costliest.group.phase} {costliest.group.label}"  # as the bisection calls it
    return (
        f"Which build did it: `accel-micro bisect {way}--from-explain FILE` times {clean(what)} in the builds "
        f"between; FILE is {file}."
    )


def fit_lines(fit: Fit) -> list[str]:
    """What batch sizes show."""
    said = [
        f"Steps over batch sizes {', '.join(map(str, fit.batches))}: {seconds(fit.per_example)} an example and "
        f"{seconds(fit.per_step)} a step."
    ]
    if fit.p_value is not None:
        said[0] = f"{said[0][:-1]} (lack of fit: p = {fit.p_value:.2g})."
    if fit.fits:
        said.append("No lack of fit is shown: a straight line will do.")
    else:
        why = "A step cannot take less than nothing" if fit.per_step < 0 else "A straight line does not fit"
        where = f", and two meet between {fit.breaks[0]} and {fit.breaks[1]}" if fit.breaks else ""
        said.append(f"{why}: another regime begins at some batch{where}.")
    for each in fit.switches:
        said.append(
            f"From batch {each.above} on {count(each.calls, 'call')} of convolution run as {clean(each.after)}, "
            f"up to {each.below} as {clean(each.before)}."
        )
        if each.tried is not None:
            said.append(_tried(each.tried))
    return said


def _tried(tried: Tried) -> str:
    jump = f"{abs(100 * (tried.jump - 1)):.0f} % {'less' if tried.jump < 1 else 'more'}"
    return (
        f"{'Confirmed' if tried.confirmed else 'Not confirmed'}: a step of {tried.batch} takes {jump} than smaller "
        f"sizes make of it, and with {clean(tried.setting)} {tried.ratio:.2f} times as long "
        f"[{tried.low:.2f}, {tried.high:.2f}]."
    )
