"""Rows to the terminal: a table a family, what its marks and intervals mean, and the failures by name."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from accel_micro.report import layout, words
from accel_micro.report.rows import Family, Report, Row

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

STYLES: Final = {"op": "bold", "flags": "yellow", "direction": "dim", "dtype": "dim"}
"""Colour is a help and carries nothing that the text does not say."""

NOTES: Final = {
    "short": "± is the larger half of the interval.",
    "cold": "Cold ÷ hot: how many times as long a call takes, or on a GPU the device, when no cache holds its inputs.",
    "share": "Of peak: FLOP/s or B/s, whichever is nearer to what this machine was measured to reach.",
    "bound": "Launch 3×: enqueueing a call takes 3 times as long as the device then works on it.",
    "bound short": "Launch: enqueueing a call takes longer than the device then works on it.",
}
"""What is said below the tables when they have the column."""


def print_report(report: Report, console: "Console") -> None:
    """Print everything that a reader of a terminal needs, fitted to the width of the console."""
    from rich.text import Text

    timed = [row for family in report.families for row in family.rows]
    plan = layout.layout(timed, console.width)
    console.print(Text.assemble((title(report.rows), "bold"), words.headline(report)))
    for part in _tables(report, plan):
        # Rich would cut numbers to fit a very narrow console; the terminal's own wrapping does not.
        with _at_least(console, plan.width):
            console.print(part)
    for part in (*_notes(timed, plan), *_failures(report.failed), *_skips(report)):
        console.print(part)


def title(rows: Sequence[Row]) -> str:
    """`gpu-node-3, torch 2.13.0: `, as far as all rows agree on it."""
    machines, builds = ({getattr(row, name) for row in rows} - {""} for name in ("machine", "build"))
    parts = [*machines] if len(machines) == 1 else []
    parts += [f"torch {build}" for build in builds] if len(builds) == 1 else []
    return f"{words.clean(', '.join(parts))}: " if parts else ""


def family_title(family: Family, report: Report) -> str:
    """`matmul on cuda`, with machine, build and environment where the report has several."""
    parts = [f"{family.name} on {family.device}"]
    for name in ("machine", "build", "environment"):
        if len({getattr(other, name) for other in report.families}) > 1:
            parts.append(getattr(family, name))
    return words.clean(", ".join(parts))


@contextmanager
def _at_least(console: "Console", width: int) -> Iterator[None]:
    before = console.width
    console.width = max(before, width)
    try:
        yield
    finally:
        console.width = before


def _tables(report: Report, plan: layout.Layout) -> Iterator["RenderableType"]:
    from rich.text import Text

    start = 0
    for family in report.families:
        yield Text()
        yield Text(family_title(family, report), "bold")
        yield _table(plan, start, start + len(family.rows))
        start += len(family.rows)


def _table(plan: layout.Layout, start: int, end: int) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, layout.GAP - 1, 0, 0))
    for column in plan.columns:
        table.add_column(
            column.title,
            justify=column.justify,
            style=STYLES.get(column.key),
            header_style="dim",
            width=plan.widths[column.key],
            no_wrap=column.key != "shape",
            overflow="fold",
        )
    for index in range(start, end):
        # Text, not markup: a shape may hold square brackets.
        table.add_row(*(Text(plan.cells[column.key][index]) for column in plan.columns))
    return table


def _notes(rows: Sequence[Row], plan: layout.Layout) -> Iterator["RenderableType"]:
    from rich.text import Text

    if not rows:
        return
    yield Text()
    for flag in words.legend(rows, all_clocks=False):
        note = f"{flag.name} ({words.count(flag.cases, 'case')}): {flag.remedy}"
        yield _hanging(f"{flag.mark}  ", note, "yellow")
    if any(row.failures for row in rows):
        yield _hanging("!  ", "some processes of this case failed, see below", "red")
    notes = ["Median: seconds per call when calls are queued back to back, unless another clock is named."]
    notes += words.interval_notes(rows)
    notes += [NOTES[column.key] for column in plan.columns if column.key in NOTES]
    for note in notes:
        yield _hanging("·  ", note, "dim", "dim")


def _failures(rows: Sequence[Row]) -> Iterator["RenderableType"]:
    from rich.text import Text

    if not rows:
        return
    yield Text()
    yield Text("Failed", "bold red")
    for row in rows:
        yield _hanging("✗  ", f"{words.failure_title(row)}: {words.clean(str(row.case))}", "red")
        for failure in row.failures:
            if detail := words.first_line(failure.detail):
                yield _hanging("   ", detail, style="dim")
            yield _hanging("   → ", words.failure_remedy(failure.kind))


def _skips(report: Report) -> Iterator["RenderableType"]:
    from rich.text import Text

    if not report.skips:
        return
    yield Text()
    yield Text("Skipped", "bold")
    widest = max(len(str(len(skip.cases))) for skip in report.skips)
    for skip in report.skips:
        yield _hanging(f"{len(skip.cases):>{widest}}  ", words.clean(skip.reason))


def _hanging(mark: str, text: str, mark_style: str = "", style: str = "") -> "RenderableType":
    """Text whose further lines start below its first, to the right of a mark."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=0)
    grid.add_column(width=len(mark), no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(mark, mark_style), Text(text, style))
    return grid
