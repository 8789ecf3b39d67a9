"""Published times to a terminal, a screen a question, or to JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import IO, Any, Final

import msgspec

import accel_micro
from accel_micro.explain.published.findings import Findings, Overhead
from accel_micro.models.registry import NAMES
from accel_micro.report import published_words as words
from accel_micro.report.explain_words import factor, seconds
from accel_micro.report.export import finite
from accel_micro.report.printing import chosen, paragraph, print_lines
from accel_micro.report.words import clean

SCHEMA: Final = 1
_DASH: Final = "–"
Lines = Iterator[tuple[str, str]]


def render(found: Sequence[Findings], *, stream: IO[str] | None = None, width: int | None = None) -> None:
    """Write it for a terminal.

    Args:
        stream: where to; None is standard output. Not closed.
        width: characters of a line; None asks the terminal, and takes 80 where there is none.
    """
    from rich.console import Console

    console = Console(file=chosen(stream), width=width, highlight=False)
    for number, each in enumerate(found):
        for question, section in enumerate(sections(each, console.width)):
            if number or question:
                console.file.write("\n")
            print_lines(section, console)


def sections(found: Findings, width: int) -> Iterator[list[tuple[str, str]]]:
    """What a reader sees of a report, question by question; each fits a screen. Lines with their styles."""
    yield list(_head(found, width))
    if found.speedups:
        yield list(_speedups(found, width))
    if found.overheads:
        yield list(_lines(found, width))
    if found.report.rows:
        yield list(_concluded(found, width))
    yield list(_left(found, width))


def _head(found: Findings, width: int) -> Lines:
    report = found.report
    yield from paragraph(words.title(report), width, style="bold")
    yield from paragraph(words.claim(report), width)
    if report.rows:
        yield from paragraph(words.made(report), width, style="yellow")
    elif not report.losses:
        yield from paragraph(words.nothing(), width, style="yellow")
    for each in found.broken:
        yield from paragraph(words.broken(each), width, "→  ")


def _speedups(found: Findings, width: int) -> Lines:
    yield "How many times as fast is the accelerator?", "bold"
    rows = [
        (
            clean(each.model),
            str(each.batch),
            f"{clean(each.baseline)} {seconds(each.seconds[0])}",
            f"{clean(each.contender)} {seconds(each.seconds[1])}",
            factor(each.value),
            _DASH if each.loader is None else f"≤ {words.percent(each.loader)}",
            words.bounded(each.steps),
        )
        for each in found.speedups
    ]
    titles = ("model", "batch", "baseline", "contender", "speed", "loader", "steps alone")
    yield from _table(titles, rows, 1, width)
    for note in words.speedup_notes(found):
        yield from paragraph(note, width, style="dim")


def _lines(found: Findings, width: int) -> Lines:
    yield from paragraph(
        "What does a step cost besides its images? T = a·images + b·steps", width, style="bold"
    )
    rows = [_line(each) for each in found.overheads]
    titles = ("model", "on", "a, image", "b, step", "share", "reading", "off by")
    yield from _table(titles, rows, 2, width, left=(5,))
    for note in (words.interval_note(found), words.kept(found.report)):
        yield from paragraph(note, width, style="dim")
    for note in words.line_notes(found, confirming(found)):
        yield from paragraph(note, width, "·  ")


def _line(each: Overhead) -> tuple[str, ...]:
    line = each.line
    halves = ("", "") if line.halves is None else [f" ± {seconds(half)}" for half in line.halves]
    return (
        clean(each.model),
        clean(each.device),
        seconds(line.per_image) + halves[0],
        seconds(line.per_step) + halves[1],
        words.percent(line.shares[0]),
        each.kind,
        words.percent(line.margin),
    )


def confirming(found: Findings) -> str:
    """The command that tries NNPACK's threshold: on the network whose epochs are shortest, of those that we have."""
    epochs = {row.model: row.seconds for row in sorted(found.report.rows, key=lambda row: -row.seconds)}
    suspects = [each.model for each in found.overheads if words.suits_nnpack(found, each)]
    ours = [model for model in suspects if model in NAMES]
    model = min(ours, key=lambda name: epochs[name]) if ours else "mnist"
    return f"accel-micro explain --model {model} --baseline onednn=off --batches 4,8,12,16,32,64"


def _concluded(found: Findings, width: int) -> Lines:
    report = found.report
    yield from paragraph(
        "What can be concluded if each epoch is believed, and what cannot?", width, style="bold"
    )
    for model in dict.fromkeys(row.model for row in report.rows):
        shown = words.can(found, model)
        said = f" Shown: {'; '.join(shown)}." if shown else ""
        yield from paragraph(
            f"{clean(model)}.{said} Not shown: {'; '.join(words.cannot(found, model))}.", width, "·  "
        )
    for text in words.ranking(found):
        yield from paragraph(f"{text[0].upper()}{text[1:]}.", width, "·  ")


def _left(found: Findings, width: int) -> Lines:
    report = found.report
    if report.confounders:
        yield "What else may have made it", "bold"
    for text in report.confounders:
        yield from paragraph(f"{clean(text)}.", width, "!  ", "yellow")
    if report.checks:
        yield "What would tell", "bold"
    for command in report.checks:
        yield f"→  {clean(command)}", ""


def _table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], names: int, width: int, left: Sequence[int] = ()
) -> Lines:
    """Columns, the first `names` to the left. Where the line is too narrow the last ones go."""
    widths = [max(len(title), *(len(row[n]) for row in rows)) for n, title in enumerate(titles)]
    kept = len(titles)
    while kept > names + 1 and sum(widths[:kept]) + 2 * (kept - 1) > width:
        kept -= 1
    for number, row in enumerate([titles, *rows]):
        cells = [
            f"{text:<{widths[n]}}" if n < names or n in left else f"{text:>{widths[n]}}"
            for n, text in enumerate(row[:kept])
        ]
        yield "  ".join(cells).rstrip(), "dim" if number == 0 else ""


def to_json(found: Sequence[Findings]) -> str:
    """All of it, for programs. Seconds, bytes a second and shares of one; what is unknown is null."""
    data = {
        "schema": SCHEMA,
        "made_by": f"accel_micro {accel_micro.__version__}",
        "reports": [_json(each) for each in found],
    }
    return json.dumps(finite(data), indent=2) + "\n"


def _json(found: Findings) -> dict[str, Any]:
    models = dict.fromkeys(row.model for row in found.report.rows)
    return {
        "report": msgspec.to_builtins(found.report),
        "speedups": [asdict(each) for each in found.speedups],
        "overheads": [asdict(each) for each in found.overheads],
        "loader_floors": [asdict(each) for each in found.floors],
        "alike": [asdict(each) for each in found.alike],
        "losses": [
            {"model": each.losses.model, "device": each.losses.device, "grew": each.grew, "ended": each.ended}
            for each in found.broken
        ],
        "seconds_per_image": found.per_image,
        "can_be_concluded": {model: words.can(found, model) for model in models},
        "cannot_be_concluded": {model: words.cannot(found, model) for model in models},
    }
