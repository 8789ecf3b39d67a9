"""A self-check for terminals, for Markdown and for programs."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final, Literal

from accel_micro.report import selfcheck_words as words
from accel_micro.report.markdown import escape
from accel_micro.report.printing import trimmed
from accel_micro.report.words import clean
from accel_micro.selfcheck.findings import SelfCheck, Table, to_data

if TYPE_CHECKING:
    from rich.console import Console

Format = Literal["table", "json", "markdown"]
_GAP: Final = 3
"""Characters between columns of a terminal's table; at its two edges there is one."""


def render(check: SelfCheck, format: Format, stream: "IO[str]", *, width: int | None = None) -> None:
    """Write it in a form."""
    if format == "json":
        stream.write(to_json(check))
    elif format == "markdown":
        stream.write(to_markdown(check))
    else:
        from rich.console import Console

        console = Console(file=stream, highlight=False, width=width)
        with trimmed(console):
            _print(check, console)


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


@dataclass(frozen=True)
class _Part:
    """Columns of a table that fit beside each other: their places and widths, and the width of the names."""

    name_width: int
    columns: list[tuple[int, int]]


def _parts(
    names: Sequence[str], heads: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> list[_Part]:
    """A table cut into as few as show every name and every figure without a break inside a word.

    A word that is wider than all of the console is broken.

    Args:
        names: the first column with its head. rows: the cells under `heads`. width: of the console, characters.
    """
    room = width - 2
    name_least = min(_longest_word(names), room - _GAP - 1)
    name_most = max(map(len, names))
    least, most = [], []
    for i, head in enumerate(heads):
        widest = max((len(row[i]) for row in rows), default=0)
        least.append(min(max(widest, _longest_word([head])), room - _GAP - name_least))
        most.append(max(widest, least[-1], *map(len, head.split("\n"))))
    groups: list[list[int]] = [[]]
    used = name_least
    for i, needed in enumerate(least):
        if groups[-1] and used + _GAP + needed > room:
            groups.append([])
            used = name_least
        groups[-1].append(i)
        used += _GAP + needed
    return [_spread(group, [name_least, *least], [name_most, *most], room) for group in groups]


def _spread(group: Sequence[int], least: Sequence[int], most: Sequence[int], room: int) -> _Part:
    """Widths of the names and of these columns: what is left goes to the names, then to whoever lacks most."""
    places = [0, *(i + 1 for i in group)]
    widths = {place: least[place] for place in places}
    left = room - sum(widths.values()) - _GAP * len(group)
    widths[0] += min(left, most[0] - least[0])
    left = room - sum(widths.values()) - _GAP * len(group)
    for _ in range(left):
        lacking = max(places, key=lambda place: most[place] - widths[place])
        if widths[lacking] >= most[lacking]:
            break
        widths[lacking] += 1
    return _Part(widths[0], [(i, widths[i + 1]) for i in group])


def _longest_word(texts: Sequence[str]) -> int:
    return max(len(word) for text in texts for word in text.split())


def _print(check: SelfCheck, console: "Console") -> None:
    from rich import box
    from rich.table import Table as Grid
    from rich.text import Text

    for section in check.sections:
        console.print(Text(f"{section.title}. {section.question}", style="bold"))
        if section.failed:
            console.print(Text(f"no answer: {section.failed}"))
        for table in section.tables:
            marks = [words.mark(table, column, section) for column in table.columns]
            heads = [
                f"{column.title}\n({mark})" if mark else column.title
                for column, mark in zip(table.columns, marks, strict=True)
            ]
            names = [clean(row.name) for row in table.rows]
            cells = [words.cells(row, table.columns) for row in table.rows]
            for number, part in enumerate(_parts([table.first, *names], heads, cells, console.width)):
                title = Text(table.title if not number else f"{table.title}, continued")
                grid = Grid(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
                grid.add_column(table.first, width=part.name_width, overflow="fold")
                for i, wide in part.columns:
                    grid.add_column(heads[i], justify="right", width=wide, overflow="fold")
                for row, name, texts in zip(table.rows, names, cells, strict=True):
                    style = "bold" if row.ours else ""
                    grid.add_row(Text(name, style=style), *(texts[i] for i, _ in part.columns))
                console.print(grid)
            for one in words.absent(table):
                console.print(Text(one))
        for one in words.behind(section):
            console.print(Text(f"behind: {one}"))
        console.print()
    console.print(Text(f"{words.summary(check).capitalize()}."))
