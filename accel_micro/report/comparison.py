"""A comparison to a stream: for a terminal here, else as `comparison_export` writes it."""

from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Final, Literal

from accel_micro.comparison.compared import Compared, Comparison
from accel_micro.report import comparison_words as words
from accel_micro.report.comparison_layout import plan
from accel_micro.report.printing import Line, chosen, paragraph, print_lines
from accel_micro.report.words import clean, count

if TYPE_CHECKING:
    from rich.console import Console

Format = Literal["table", "json", "markdown", "csv"]

FOLDED: Final[dict[str, int]] = {"invariant": 10, "inconclusive": 20}
"""As many rows of a verdict are listed; invariant ones all or none. Regressions and improvements all are."""

MOST_DIFFERENCES: Final = 12
STYLES: Final = {"regression": "bold red", "improvement": "bold green", "inconclusive": "bold yellow"}
"""Colour is a help and carries nothing that the text does not say."""


def render(
    comparison: Comparison,
    format: Format = "table",
    stream: IO[str] | None = None,
    *,
    all_rows: bool = False,
    next_command: str = "",
    width: int | None = None,
    console: "Console | None" = None,
) -> None:
    """Write it.

    Args:
        stream: where to; None is standard output. Not closed.
        all_rows: fold nothing in `table` and `markdown`; the other forms never do.
        next_command: the command that measures what is undecided, if there is one.
        width: characters of a line of `table`; None asks the terminal, and takes 80 where there is none.
        console: for `table` instead of the stream.
    """
    stream = chosen(stream)
    if format != "table":
        from accel_micro.report import comparison_export, comparison_markdown

        if format == "markdown":
            text = comparison_markdown.to_markdown(comparison, all_rows=all_rows, next_command=next_command)
        elif format == "csv":
            text = comparison_export.to_csv(comparison)
        else:
            text = comparison_export.to_json(comparison, next_command=next_command)
        stream.write(text)
        return
    from rich.console import Console

    console = console or Console(file=stream, width=width, highlight=False)
    shown = lines(comparison, console.width, all_rows=all_rows, next_command=next_command)
    print_lines(shown, console)


def lines(
    comparison: Comparison, width: int, *, all_rows: bool = False, next_command: str = ""
) -> Iterator[Line]:
    """What a reader of a terminal sees, line by line."""
    yield from paragraph(words.title(comparison), width, style="bold")
    yield from paragraph(words.summary(comparison), width, style="bold")
    yield from _differences(comparison, width, all_rows)
    yield from _list("!  ", words.cautions(comparison), width, "yellow")
    yield from _table(comparison, width, all_rows)
    yield from _uncompared(comparison, width)
    yield from _problems(comparison, width)
    yield from _notes(comparison, width)
    if comparison.undecided:
        yield Line("")
        yield from _next(comparison, next_command, width)


def shown_rows(kind: str, rows: list[Compared], all_rows: bool) -> tuple[list[Compared], str]:
    """The rows of a verdict that are listed, and what is said of the others."""
    most = FOLDED.get(kind, len(rows))
    if all_rows or len(rows) <= most:
        return rows, ""
    if kind == "invariant":
        return [], "not listed; --all lists them"
    return rows[:most], f"and {len(rows) - most} more; --all lists them"


def _differences(comparison: Comparison, width: int, all_rows: bool) -> Iterator[Line]:
    title, found = words.differences_title(comparison), comparison.differences.found
    if not title and not comparison.differences.unknown:
        return
    yield Line("")
    if title:
        yield from paragraph(title, width)
    shown = found if all_rows else found[:MOST_DIFFERENCES]
    labels = [words.difference_label(difference) for difference in shown]
    widest = max(map(len, labels), default=0)
    for label, difference in zip(labels, shown, strict=True):
        text = words.difference_text(difference, len(comparison.rows))
        yield from paragraph(f"{label:<{widest}}  {text}", width, "  ", hang=widest + 2)
    if len(shown) < len(found):
        yield Line(f"  and {len(found) - len(shown)} more; --all lists them")
    yield from _list("!  ", map(clean, comparison.differences.unknown), width, "yellow", apart=False)


def _table(comparison: Comparison, width: int, all_rows: bool) -> Iterator[Line]:
    sections = [
        (kind, heading, *shown_rows(kind, rows, all_rows))
        for kind, heading, rows in words.sections(comparison)
    ]
    listed = [row for _, _, rows, _ in sections for row in rows]
    if listed:
        drawn = plan(listed, comparison, width)
        yield Line("")
        for text in drawn.header:
            yield Line(text, "dim")
    index = 0
    for kind, heading, rows, more in sections:
        yield Line("")
        said = f"{heading}, {more}" if more and not rows else heading
        yield from paragraph(said, width, style=STYLES.get(kind, "bold"), hang=2)
        sign = words.names(comparison.kind)[kind].sign
        for _ in rows:
            for number, text in enumerate(drawn.lines(index, sign)):
                yield Line(text, "dim" if kind == "invariant" and number else "")
            index += 1
        if more and rows:
            yield Line(f"  {more}")


def _uncompared(comparison: Comparison, width: int) -> Iterator[Line]:
    if not comparison.uncompared:
        return
    yield Line("")
    yield Line(words.uncompared_title(comparison), "bold")
    widest = max(len(str(len(group.cases))) for group in comparison.uncompared)
    for group in comparison.uncompared:
        text = words.uncompared_text(group, comparison)
        yield from paragraph(text, width, f"  {len(group.cases):>{widest}}  ")


def _problems(comparison: Comparison, width: int) -> Iterator[Line]:
    if comparison.problems:
        yield Line("")
        first = clean(comparison.problems[0])
        more = len(comparison.problems) - 1
        rest = f"; and {count(more, 'more line')}" if more else ""
        yield from paragraph(f"left out: {first}{rest}", width, "!  ", "yellow")


def _notes(comparison: Comparison, width: int) -> Iterator[Line]:
    if comparison.rows:
        yield Line("")
        for note in words.notes(comparison):
            yield from paragraph(note, width, "·  ", "dim")


def _next(comparison: Comparison, command: str, width: int) -> Iterator[Line]:
    for reason in words.reasons(comparison.rows):
        yield from paragraph(reason, width, "?  ", "yellow")
    yield from paragraph(words.needs_note(comparison.rows), width, "→  ")
    if command:
        yield Line(f"   {clean(command)}", "bold")  # on one line, however long: it is copied


def _list(mark: str, texts: Iterable[str], width: int, style: str, apart: bool = True) -> Iterator[Line]:
    for number, text in enumerate(texts):
        if apart and number == 0:
            yield Line("")
        yield from paragraph(clean(text), width, mark, style)
