"""A self-check for terminals, for Markdown and for programs."""

import json
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Final, Literal

from accel_micro.report import selfcheck_words as words
from accel_micro.report.markdown import escape
from accel_micro.report.words import clean
from accel_micro.selfcheck.findings import SelfCheck, Table, to_data

if TYPE_CHECKING:
    from rich.console import Console

Format = Literal["table", "json", "markdown"]
_LEFT: Final = ("text",)


def render(check: SelfCheck, format: Format, stream: "IO[str]", *, width: int | None = None) -> None:
    """Write it in a form."""
    if format == "json":
        stream.write(to_json(check))
    elif format == "markdown":
        stream.write(to_markdown(check))
    else:
        from rich.console import Console

        _print(check, Console(file=stream, highlight=False, width=width))


def to_json(check: SelfCheck) -> str:
    """All figures as they are, SI units, shares as plain numbers; what is unknown or infinite is null."""
    return json.dumps(to_data(check), indent=1, ensure_ascii=False) + "\n"


def to_markdown(check: SelfCheck) -> str:
    """A heading and tables for each section, as GitHub shows it."""
    lines = ["# Self-check", "", f"{escape(words.summary(check)).capitalize()}.", ""]
    lines += [f"- {label}: {_value(label, value)}" for label, value in words.facts(check)]
    for section in check.sections:
        lines += ["", f"## {section.title}", "", section.question]
        if section.failed:
            lines += ["", f"No answer: {escape(section.failed)}"]
        for table in section.tables:
            lines += ["", f"**{escape(table.title)}**", "", *_markdown(table)]
            lines += ["", *(f"- {escape(one)}" for one in words.absent(table))] if words.absent(table) else []
            if table.note:
                lines += ["", escape_but_code(table.note)]
        if count := words.counts(section):
            lines += ["", f"Ours is {count}."]
        lines += ["", *(f"- {escape(one)}" for one in words.behind(section))] if words.behind(section) else []
        lines += ["", *(f"- {escape_but_code(note)}" for note in section.notes)] if section.notes else []
        lines += ["", f"{section.seconds:.0f} s. More of it: `{section.fuller}`"]
    return "\n".join(lines) + "\n"


def _value(label: str, value: str) -> str:
    return f"`{value}`" if label == "made by" else escape(value)


def escape_but_code(text: str) -> str:
    """Text of ours, in which what stands between backticks stays code."""
    parts = text.split("`")
    return "".join(f"`{part}`" if number % 2 else escape(part) for number, part in enumerate(parts))


def _markdown(table: Table) -> Iterator[str]:
    yield f"| {' | '.join([table.first, *(column.title for column in table.columns)])} |"
    yield f"|---|{'--:|' * len(table.columns)}"
    for row in table.rows:
        name = escape(clean(row.name))
        yield f"| {' | '.join([f'**{name}**' if row.ours else name, *words.cells(row, table.columns)])} |"


def _print(check: SelfCheck, console: "Console") -> None:
    from rich import box
    from rich.table import Table as Grid
    from rich.text import Text

    for section in check.sections:
        console.print(Text(f"{section.title}. {section.question}", style="bold"))
        if section.failed:
            console.print(Text(f"no answer: {section.failed}"))
        for table in section.tables:
            grid = Grid(box=box.SIMPLE_HEAD, title=Text(table.title), title_justify="left", pad_edge=False)
            grid.add_column(table.first, overflow="fold")
            for column in table.columns:
                mark = words.mark(table, column, section)
                grid.add_column(f"{column.title}\n({mark})" if mark else column.title, justify="right")
            for row in table.rows:
                style = "bold" if row.ours else ""
                grid.add_row(Text(clean(row.name), style=style), *words.cells(row, table.columns))
            console.print(grid)
            for one in words.absent(table):
                console.print(Text(one))
        for one in words.behind(section):
            console.print(Text(f"behind: {one}"))
        console.print()
    console.print(Text(f"{words.summary(check).capitalize()}."))
