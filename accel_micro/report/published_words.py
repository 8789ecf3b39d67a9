"""The words of published times: what their numbers allow, and what they do not."""

import math
from collections.abc import Iterator
from typing import Final

from accel_micro.explain.published.data import Report
from accel_micro.explain.published.findings import Alike, Broken, Findings, Kind, Overhead
from accel_micro.report import units
from accel_micro.report.explain_words import factor, seconds
from accel_micro.report.words import clean

NNPACK_FROM: Final = 16
"""Images in a batch from which on torch hands convolutions on the CPU to NNPACK (ATen, ConvParams::use_nnpack)."""

KINDS: Final[dict[Kind, str]] = {
    "impossible": "a step cannot take less than nothing: the batch sizes did not run the same way, and no line goes "
    "through them; or an epoch is off by that much",
    "too short": "the optimizer alone would have to move its bytes faster than the memory can: b is off",
    "small": "steps cost little beside their images; nothing more can be read from b",
    "launches": "a candidate for launch-bound: b is a third of an epoch or more, and far more than the optimizer's "
    "bytes take; what loader and progress bar cost a batch is in it too",
    "launches or optimizer": "b is a third of an epoch or more; launches, or an optimizer that moves many bytes "
    "for each step, and these numbers do not tell which",
    "optimizer or Python": "b is a third of an epoch or more; a CPU queues nothing, so it is the optimizer, Python or "
    "what loading costs a batch",
}


def title(report: Report) -> str:
    """Which report."""
    return f"{clean(report.name)} (published in {report.year})"


def claim(report: Report) -> str:
    """What was claimed, and on what."""
    parts = [clean(report.machine), f"torch {clean(report.torch)}" if report.torch else ""]
    where = ", ".join(filter(None, parts))
    return f"Claim: {clean(report.claim)}. {f'On: {where}; not' if where else 'Not'} measured by accel_micro."


def made(report: Report) -> str:
    """How the numbers were made."""
    ways = [
        "no repeats" if not _repeated(report) and report.repeats == 1 else f"{_repeats(report)} epochs each",
        "warmed up" if report.warmed_up else "no warm-up",
        "the device was waited for" if report.synchronised else "nothing waited for at the end",
        "the loader inside the timer" if report.loader_inside else "the loader outside of the timer",
    ]
    return f"Made with {', '.join(ways)}."


def _repeats(report: Report) -> int:
    keys = [(row.model, row.device, row.batch) for row in report.rows]
    return max([report.repeats, *(keys.count(key) for key in keys)])


def _repeated(report: Report) -> bool:
    return _repeats(report) > report.repeats


def percent(share: float) -> str:
    """A share that may be negative."""
    return units.percent(share) if share >= 0 else f"−{units.percent(-share)}"


def bounded(steps: tuple[float, float]) -> str:
    """`1.68 to 5.32×`, or `≥ 2.35×` where nothing bounds it from above."""
    low, high = (factor(value) for value in steps)
    return f"≥ {low}" if math.isinf(steps[1]) else f"{low.removesuffix('×')} to {high}"


def speedup_notes(found: Findings) -> Iterator[str]:
    """What stands below the table of speedups."""
    report = found.report
    reasons = []
    if report.loader_inside:
        reasons.append("loading may be any part of either epoch up to that")
    if not report.synchronised:
        reasons.append("the clock may have lost a step of the accelerator")
    if reasons:
        yield (
            f"Steps alone: bounds of their speed, since {' and '.join(reasons)}. They are no interval: how far another "
            "epoch would lie from this one is not known."
        )
    if floors := [f for f in found.floors if any(s.batch == f.batch for s in found.speedups)]:
        said = "; ".join(
            f"batch {f.batch}: {seconds(f.seconds)}, {clean(f.model)} on {clean(f.device)}" for f in floors
        )
        yield (
            "Loader: the most that it may take of the accelerator's epoch. It takes no longer than the fastest epoch "
            f"of the same images ({said}), if it is as fast for all; workers that share cores with a model may not be."
        )
    for each in found.alike:
        yield alike(each)
    if found.per_image is not None:
        low, high = found.per_image
        yield (
            f"The fastest epoch is {seconds(low)} an image if it saw {report.most_examples:,} of them, "
            f"{seconds(high)} if {report.examples:,}: which of them is not known."
        )


def alike(each: Alike) -> str:
    """Two accelerators that are no different."""
    one, other = map(clean, each.devices)
    return (
        f"{one} and {other} take the same time within {percent(each.ratio - 1)}, {seconds(each.seconds[0])} and "
        f"{seconds(each.seconds[1])}: so would any two devices behind the same loader or the same Python, and nothing "
        "here tells how fast either of them is."
    )


def line_notes(found: Findings, command: str) -> Iterator[str]:
    """What the readings mean, each that occurs, and what to try where no line fits."""
    occurring = dict.fromkeys(each.kind for each in found.overheads)
    for kind in occurring:
        yield f"{kind}: {KINDS[kind]}{_figures([each for each in found.overheads if each.kind == kind])}."
    if any(suits_nnpack(found, each) for each in found.overheads):
        yield (
            "Hypothesis: without oneDNN, torch on a CPU hands convolutions to NNPACK from batch "
            f"{NNPACK_FROM} on, and to its own code up to {NNPACK_FROM - 1}. These numbers cannot show it; this can: "
            f"{command}"
        )


def _figures(overheads: list[Overhead]) -> str:
    """Of lines of a kind: what a call would take, or how fast the optimizer's bytes would have to move."""
    kind = overheads[0].kind
    if kind == "launches":
        calls = [
            f"{clean(o.model)} {seconds(o.call_seconds)}" for o in overheads if o.call_seconds is not None
        ]
        return f". b ÷ calls of a step: {', '.join(calls)}" if calls else ""
    if kind in ("too short", "launches or optimizer", "optimizer or Python"):
        rates = [
            f"{clean(o.model)} on {clean(o.device)} {units.quantity(o.bytes_per_second, 'B/s')}"
            for o in overheads
            if o.bytes_per_second is not None
        ]
        return f". The optimizer's bytes ÷ b: {', '.join(rates)}" if rates else ""
    return ""


def suits_nnpack(found: Findings, each: Overhead) -> bool:
    """A CPU's line that is impossible, and whose sizes lie on both sides of NNPACK's threshold."""
    on_cpu = found.report.devices[each.device].kind == "cpu"
    sizes = each.line.batches
    return each.kind == "impossible" and on_cpu and sizes[0] < NNPACK_FROM <= sizes[-1]


def interval_note(found: Findings) -> str:
    """What the columns are, and what stands for an interval."""
    text = "Share: b·steps of the epoch at the smallest batch. Off by: if the longer epoch was off by this, b is zero. "
    if any(each.line.halves is not None for each in found.overheads):
        return f"{text}±: 95 %, from epochs of the same batch."
    return f"{text}No interval: nothing was repeated, and a line through two points has nothing left over."


def kept(report: Report) -> str:
    """Which of the two numbers survives a missing warm-up."""
    if report.warmed_up:
        return ""
    return (
        "A first step that takes the same extra time at both sizes is in a and not in b; one that takes longer "
        "at one size, as where kernels are compiled for a shape, is in both."
    )


def can(found: Findings, model: str) -> list[str]:
    """What can be concluded of a model, a phrase each, as far as one epoch each can be believed."""
    said = []
    for each in found.overheads:
        if (each.model, each.kind) == (model, "impossible"):
            said.append(
                f"{clean(each.device)} does not run batches of {_listed(each.line.batches)} the same way, unless an "
                f"epoch is off by {percent(each.line.margin)}"
            )
    speedups = [each for each in found.speedups if each.model == model]
    for device in dict.fromkeys(each.contender for each in speedups):
        here = [each for each in speedups if each.contender == device]
        low, high = (choose(here, key=lambda each: each.value) for choose in (min, max))
        if low.steps[1] < high.steps[0]:
            said.append(
                f"steps gain more from {clean(device)} at batch {high.batch} ({bounded(high.steps)}) than at "
                f"{low.batch} ({bounded(low.steps)}), whatever the loader took up to its bound"
            )
        elif all(each.steps[0] > 1 for each in here):
            said.append(
                f"{clean(device)} is faster, by {factor(min(each.steps[0] for each in here))} at least"
            )
    return said


def cannot(found: Findings, model: str) -> list[str]:
    """What cannot be concluded of a model, a phrase each."""
    said = []
    for each in found.overheads:
        device, small, large = clean(each.device), each.line.batches[0], each.line.batches[-1]
        if each.model != model:
            continue
        if each.kind == "impossible":
            said.append(f"what {device} takes for any other batch, or for a step")
        elif each.kind == "too short":
            said.append(
                f"what a step costs on {device}: epochs at {small} and {large} differ by "
                f"{percent(each.line.margin)}, and one unrepeated epoch may be off by that"
            )
        elif each.kind == "launches or optimizer":
            said.append(f"whether launches or the optimizer hold {device} back at batch {small}")
        elif each.kind == "launches":
            said.append(
                f"that {device} is launch-bound at batch {small}: b fits that, and was not taken apart"
            )
    for speedup in found.speedups:
        if speedup.model == model and speedup.steps[0] <= 1:
            said.append(
                f"that steps are faster on {clean(speedup.contender)} at batch {speedup.batch}: all of the time may "
                "be the loader"
            )
    return said or ["how far another epoch would lie from this one"]


def ranking(found: Findings) -> Iterator[str]:
    """Whether the model that gains most is shown to gain more than the one that gains least, at each batch."""
    for device, batch in dict.fromkeys((each.contender, each.batch) for each in found.speedups):
        here = [each for each in found.speedups if (each.contender, each.batch) == (device, batch)]
        low, high = (choose(here, key=lambda each: each.value) for choose in (min, max))
        if low.model == high.model:
            continue
        both = (
            f"batch {batch}, {clean(device)}: steps of {clean(high.model)} gain {bounded(high.steps)}, those of "
            f"{clean(low.model)} {bounded(low.steps)}"
        )
        yield (
            f"{both}: the first gains more, whatever the loader took up to its bound"
            if low.steps[1] < high.steps[0]
            else f"{both}: which of them gains more is not shown, the loader may be all of the difference"
        )


def _listed(batches: tuple[int, ...]) -> str:
    return " and ".join(map(str, batches)) if len(batches) < 3 else ", ".join(map(str, batches))


def broken(each: Broken) -> str:
    """What a series of losses says."""
    values = ", ".join(
        "NaN" if math.isnan(value) else f"{value:g}".replace("inf", "∞") for value in each.losses.values
    )
    text = f"{clean(each.losses.model)} on {clean(each.losses.device)}, loss by epoch: {values}."
    if each.grew is not None:
        text += f" It grows from epoch {each.grew} on" + (
            f" and is no number at epoch {each.ended}." if each.ended is not None else "."
        )
    elif each.ended is not None:
        text += f" It is no number at epoch {each.ended}."
    if each.grew is None and each.ended is None:
        return text
    return (
        f"{text} A time of such a step is worth nothing. Whether one op is wrong, or the training itself, a "
        "loss does not tell: each op held against float64 does."
    )


def nothing() -> str:
    """Of a report without numbers."""
    return "No time was published, so nothing can be concluded."
