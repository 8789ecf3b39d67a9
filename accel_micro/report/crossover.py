"""A crossover to a stream: a table for a terminal here, else as `crossover_export` writes it."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import IO, TYPE_CHECKING, Final, Literal

from accel_micro.comparison.crossed import Crossed
from accel_micro.report import crossover_words as words
from accel_micro.report.printing import chosen, paragraph, print_lines
from accel_micro.report.words import clean

if TYPE_CHECKING:
    from rich.console import Console

Format = Literal["table", "json", "markdown", "csv"]

TITLES: Final = ("op", "size", "faster", "they cross at", "speed", "bound by")
_GAP: Final = "  "
_WIDEST_FASTER: Final = 28
_FASTER, _CROSSING = TITLES.index("faster"), TITLES.index("they cross at")


def render(
    crossed: Crossed,
    format: Format = "table",
    stream: IO[str] | None = None,
    *,
    next_command: str = "",
    width: int | None = None,
    console: "Console | None" = None,
) -> None:
    """Write it.

    Args:
        stream: where to; None is standard output. Not closed.
        next_command: the command that gives it more time, if that helps.
        width: characters of a line of `table`; None asks the terminal, and takes 80 where there is none.
        console: for `table` instead of the stream.
    """
    stream = chosen(stream)
    if format != "table":
        from accel_micro.report import crossover_export as export

        write = {"json": export.to_json, "csv": export.to_csv, "markdown": export.to_markdown}[format]
        stream.write(write(crossed, next_command))
        return
    from rich.console import Console

    console = console or Console(file=stream, width=width, highlight=False)
    print_lines(lines(crossed, console.width, next_command), console)


def lines(crossed: Crossed, width: int, next_command: str = "") -> Iterator[tuple[str, str]]:
    """What a reader of a terminal sees, line by line, each with its style."""
    yield from paragraph(words.title(crossed), width, style="bold")
    yield from paragraph(words.summary(crossed), width, style="bold")
    if crossed.rows:
        yield "", ""
        yield from _table(crossed, width)
    for subject, why in crossed.absent:
        yield from paragraph(f"{clean(subject.op)} {subject.direction}: {clean(why)}", width, "-  ", "dim")
    yield "", ""
    for text in words.explanations(crossed):
        yield from paragraph(text, width, "·  ", "dim")
    if more := words.more_text(crossed):
        yield from paragraph(more, width, "→  ")
        if next_command:
            yield f"   {clean(next_command)}", "bold"  # on one line, however long: it is copied


def cells(crossed: Crossed) -> list[tuple[str, ...]]:
    """The cells of each row, in the order of `TITLES`."""
    return [
        (
            words.op_text(row),
            words.size_text(row),
            words.faster_text(crossed, row),
            words.crossings_text(row),
            words.ends_text(row),
            words.bound_text(crossed, row),
        )
        for row in crossed.rows
    ]


def _table(crossed: Crossed, width: int) -> Iterator[tuple[str, str]]:
    rows = cells(crossed)
    kept = [i for i in range(len(TITLES)) if TITLES[i] != "bound by" or any(row[i] != "–" for row in rows)]
    stacked = [
        [_stacked(words.faster_texts(crossed, swept)) if i == _FASTER else words.crossing_texts(swept) if i == _CROSSING
         else [row[i]] for i in kept]
        for row, swept in zip(rows, crossed.rows, strict=True)
    ]  # fmt: skip
    widths = [
        max(len(TITLES[i]), *(len(text) for row in stacked for text in row[place]))
        for place, i in enumerate(kept)
    ]
    wide = sum(widths) + len(_GAP) * (len(kept) - 1) <= width
    if wide:
        yield _line([TITLES[i] for i in kept], widths), "dim"
    for row, stack, swept in zip(rows, stacked, crossed.rows, strict=True):
        if wide:
            for texts in zip_longest(*stack, fillvalue=""):
                yield _line(texts, widths), ""
        else:  # a block a row, where a line does not hold it
            yield f"{row[0]}  {row[1]}", ""
            for i in kept[2:]:
                yield from paragraph(f"{TITLES[i] + ':':<15}{row[i]}", width, "  ", hang=15)
        for note in words.notes(crossed, swept):
            yield from paragraph(note, width, "    ", "dim")


def _stacked(parts: Sequence[str]) -> list[str]:
    """Parts on as many lines as they need."""
    lines = [parts[0]]
    for part in parts[1:]:
        if len(f"{lines[-1]} · {part}") <= _WIDEST_FASTER:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return lines


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    return _GAP.join(f"{text:<{width}}" for text, width in zip(texts, widths, strict=True)).rstrip()
