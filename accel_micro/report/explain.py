"""An explanation to a terminal, fitted to one screen, or to JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import IO, Any, Final

import accel_micro
from accel_micro.explain.batches import Fit
from accel_micro.explain.capture import Capture
from accel_micro.explain.causes import Ablation, Cause
from accel_micro.explain.explanation import SIDES, Contribution, Explanation
from accel_micro.report import explain_words as words
from accel_micro.report.export import finite
from accel_micro.report.printing import chosen, paragraph, print_lines
from accel_micro.report.words import clean, count

SCHEMA: Final = 1
TITLES: Final = ("", "what", "baseline", "contender", "saved", "share", "factor")
_MOST_ROWS: Final = 10
_WIDEST_LABEL: Final = 40


def render(
    explanation: Explanation,
    causes: Sequence[Cause] = (),
    ablations: Sequence[Ablation] = (),
    fit: Fit | None = None,
    *,
    stream: IO[str] | None = None,
    width: int | None = None,
) -> None:
    """Write it for a terminal.

    Args:
        stream: where to; None is standard output. Not closed.
        width: characters of a line; None asks the terminal, and takes 80 where there is none.
    """
    from rich.console import Console

    console = Console(file=chosen(stream), width=width, highlight=False)
    print_lines(lines(explanation, causes, ablations, fit, console.width), console)


def lines(
    e: Explanation, causes: Sequence[Cause], ablations: Sequence[Ablation], fit: Fit | None, width: int
) -> Iterator[tuple[str, str]]:
    """What a reader sees, line by line, each with its style."""
    yield from paragraph(words.title(e), width, style="bold")
    yield from paragraph(words.summary(e), width, style="bold")
    yield from paragraph(words.how(e), width, style="dim")
    if any(each.group.kind != "unexplained" for each in e.contributions):
        yield "", ""
        yield from _table(e, width)
    yield "", ""
    yield from paragraph(words.left(e), width, style="bold")
    for name, closure in zip(SIDES, e.closures, strict=True):
        yield from paragraph(words.closure(name, closure), width, "·  ", "dim")
    if predicted := words.prediction(e):
        yield from paragraph(predicted, width, "·  ", "dim")
    if causes:
        yield "", ""
        yield "Causes", "bold"
    for cause in causes:
        yield from paragraph(f"{clean(cause.name)} ({cause.side}): {clean(cause.text)}.", width, "→  ")
        done = [clean(each.text) for each in ablations if each.cause == cause]
        yield from paragraph(
            done[0] if done else f"would confirm it: {clean(cause.ablation)}", width, "   ", "dim"
        )
    if fit is not None:
        yield "", ""
        for text in words.fit_lines(fit):
            yield from paragraph(text, width)
    if which := words.which_build(e):
        yield "", ""
        yield from paragraph(which, width)
    for note in e.notes:
        yield from paragraph(clean(note), width, "!  ", "yellow")


def shown(e: Explanation) -> tuple[list[Contribution], list[Contribution]]:
    """The contributions that have a line of their own, the largest first, and the others."""
    parts = [each for each in e.contributions if each.group.kind != "unexplained"]
    chosen = [each for n, each in enumerate(parts) if n < _MOST_ROWS]
    return chosen, [each for each in parts if each not in chosen]


def _table(e: Explanation, width: int) -> Iterator[tuple[str, str]]:
    chosen, others = shown(e)
    rows = [_cells(e, each) for each in chosen]
    if others:
        numbers = [
            sum(values)
            for values in zip(*((o.baseline, o.contender, o.seconds.value) for o in others), strict=True)
        ]
        rows.append(
            ("", f"{count(len(others), 'other')}", words.seconds(numbers[0]), words.seconds(numbers[1]),
             f"{'+' if numbers[2] > 0 else ''}{words.seconds(numbers[2])}", "", "")
        )  # fmt: skip
    rest = next(each for each in e.contributions if each.group.kind == "unexplained")
    rows.append(_cells(e, rest))
    widths = [max(len(title), *(len(row[n]) for row in rows)) for n, title in enumerate(TITLES)]
    widths[1] = min(widths[1], _WIDEST_LABEL)
    # Where the line is too narrow the factor goes, then the share, then ends of labels.
    kept = list(range(len(TITLES)))
    while (over := sum(widths[n] + 2 for n in kept) - 2 - width) > 0 and len(kept) > 5:
        kept.pop()
    widths[1] = max(12, widths[1] - max(over, 0))
    for number, row in enumerate([TITLES, *rows]):
        cells = []
        for n in kept:
            text = row[n] if len(row[n]) <= widths[n] or n != 1 else f"{row[n][: widths[n] - 1]}…"
            cells.append(f"{text:<{widths[n]}}" if n < 2 else f"{text:>{widths[n]}}")
        yield "  ".join(cells).rstrip(), "dim" if number == 0 else ""
    yield from paragraph(
        "* more than noise. Saved: seconds of an example that the contender needs less, with a 95 % interval."
        + (" Factors multiply to the speedup." if len(kept) == len(TITLES) else ""),
        width,
        style="dim",
    )


def _cells(e: Explanation, each: Contribution) -> tuple[str, ...]:
    return (
        "*" if each.significant else "",
        words.label(each),
        words.seconds(each.baseline),
        words.seconds(each.contender),
        words.saved(each),
        words.share(e, each),
        words.factor(each.factor),
    )


def to_json(
    e: Explanation, causes: Sequence[Cause] = (), ablations: Sequence[Ablation] = (), fit: Fit | None = None
) -> str:
    """All of it, for programs: the sides, speedup, closures, contributions with their ops, causes and ablations.

    Seconds are those of an example, the baseline's less the contender's; what is unknown is null. `ops` are names of
    torch's operators, so that a bisection can take one.
    """
    data = {
        "schema": SCHEMA,
        "made_by": f"accel_micro {accel_micro.__version__}",
        "baseline": _side(e.baseline),
        "contender": _side(e.contender),
        "interleaved": e.interleaved,
        "speedup": asdict(e.speedup),
        "verdict": e.verdict.kind,
        "p_value": e.verdict.p_value,
        "difference_seconds": e.difference,
        "predicted": None if e.predicted is None else {"hot": e.predicted[0], "cold": e.predicted[1]},
        "closures": [None if each is None else asdict(each) for each in e.closures],
        "unexplained": e.unexplained,
        "closed": e.is_closed,
        "contributions": [_contribution(e, each) for each in e.contributions],
        "causes": [_cause(each, ablations) for each in causes],
        "batches": None if fit is None else asdict(fit),
        "notes": list(e.notes),
    }
    return json.dumps(finite(data), indent=2) + "\n"


def _side(capture: Capture) -> dict[str, Any]:
    return {
        "model": capture.model,
        "setting": capture.setting,
        "device": capture.device,
        "batch": capture.batch,
        "training": capture.training,
        "torch": capture.torch,
        "machine": capture.machine,
        "processes": len(capture.readings),
        "seconds": words.total(capture),
        "problems": list(capture.problems),
    }


def _contribution(e: Explanation, each: Contribution) -> dict[str, Any]:
    sides = zip((e.baseline, e.contender), each.group.rows, strict=True)
    ops = dict.fromkeys(
        side.rows[n].op for side, numbers in sides for n in numbers if each.group.kind == "op"
    )
    return {
        "kind": each.group.kind,
        "phase": each.group.phase,
        "label": each.group.label,
        "ops": list(ops),
        "baseline_seconds": each.baseline,
        "contender_seconds": each.contender,
        "seconds": each.seconds.value,
        "low": each.seconds.low,
        "high": each.seconds.high,
        "factor": each.factor,
        "q_value": each.q_value,
        "significant": each.significant,
    }


def _cause(cause: Cause, ablations: Sequence[Ablation]) -> dict[str, Any]:
    done = next((each for each in ablations if each.cause == cause), None)
    return {
        "name": cause.name,
        "side": cause.side,
        "text": cause.text,
        "ablation": cause.ablation,
        "setting": None if cause.setting is None else str(cause.setting),
        "confirmed": None if done is None else done.confirmed,
        "ablation_speedup": None
        if done is None
        else {"value": done.speedup, "low": done.low, "high": done.high},
    }
