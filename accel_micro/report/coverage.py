"""What others time or run, and where this suite times it, as a page of Markdown."""

import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from accel_micro.catalogue.coverage import Coverage, Place, Row
from accel_micro.catalogue.operator_benchmark import FOLDER
from accel_micro.report.markdown import escape
from accel_micro.report.words import count

MOST_PLACES: Final = 3
"""Places that a row names; the nearest, which run the fewest other operators."""

_SOURCE: Final = f"https://github.com/pytorch/pytorch/tree/main/{FOLDER}"

_INTRODUCTION: Final = (
    "What torch's own operator benchmark times, and which operators of ATen the reference models run: where this suite "
    "times it, or why not. `accel-micro coverage` made this page with torch {version}: it ran every op of the suite "
    "and every model once on the CPU, and noted the operators. What an entry of the operator benchmark runs follows "
    "from its name, or is listed beside the suite. Of several places the nearest is named first: the op of that name, "
    "then those that run the fewest other operators."
)


def to_markdown(coverage: Coverage, torch_version: str) -> str:
    """The page, with a line's end.

    Args:
        torch_version: of the torch that ran the ops and the models.
    """
    lines = [
        "# What is covered",
        "",
        *textwrap.wrap(_INTRODUCTION.format(version=escape(torch_version)), 120, break_on_hyphens=False),
        "",
        *_summary(coverage),
        *_reasons(coverage),
        *_missing(coverage),
        *_benchmark(coverage.benchmark),
        *_models(coverage.models),
    ]
    return "\n".join(lines) + "\n"


def _summary(coverage: Coverage) -> Iterator[str]:
    yield from _table(
        ("", "timed", "not timed, for a reason", "missing"),
        (
            (name, *(str(sum(map(kind, rows))) for kind in (_is_timed, _is_excused, _is_missing)))
            for name, rows in (
                ("entries of the operator benchmark", coverage.benchmark),
                ("operators of the reference models", coverage.models),
            )
        ),
    )


def _is_missing(row: Row) -> bool:
    return row.is_missing


def _is_timed(row: Row) -> bool:
    return bool(row.places) and not row.is_missing


def _is_excused(row: Row) -> bool:
    return not row.places and not row.is_missing


def _reasons(coverage: Coverage) -> Iterator[str]:
    yield from ("", "## Reasons", "")
    yield from _table(
        ("reason", "sentence", "rows"),
        (
            (name, text, str(sum(name in row.reasons for row in (*coverage.benchmark, *coverage.models))))
            for name, text in coverage.sentences.items()
        ),
    )


def _missing(coverage: Coverage) -> Iterator[str]:
    yield from ("", "## Missing", "")
    if not coverage.missing:
        yield "Nothing."
        return
    for row in coverage.missing:
        yield f"- {escape(row.name)} ({_sources(row)}): no op times {', '.join(map(_code, row.missing))}"


def _benchmark(rows: Iterable[Row]) -> Iterator[str]:
    yield from ("", "## The operator benchmark", "")
    yield f"The files of [pytorch/pytorch]({_SOURCE}), at the commits that the suite's list names."
    yield ""
    cells = []
    for file, of_file in groupby(rows, key=lambda row: row.source):
        for row in of_file:
            operators = ", ".join(_code(name) for name in row.operators)
            cells.append((file[0], escape(row.name), operators, _answer(row)))
    yield from _table(("file", "entry", "runs", "timed in, or why not"), cells)


def _models(rows: Iterable[Row]) -> Iterator[str]:
    yield from ("", "## The reference models", "")
    yield "One training step and one inference step of each, optimizer included, in float32."
    yield ""
    yield from _table(
        ("operator", "models", "timed in, or why not"),
        ((_code(row.name), _sources(row), _answer(row)) for row in rows),
    )


def _answer(row: Row) -> str:
    shown = [_place(place) for place in row.places[:MOST_PLACES]]
    more = len(row.places) - len(shown)
    words = [*shown, *([f"{more} more"] if more > 0 else []), *row.reasons]
    if row.is_missing:
        words.append(f"**missing**: {', '.join(map(_code, row.missing))}")
    return ", ".join(words)


def _place(place: Place) -> str:
    words = f" with {escape(place.words)}" if place.words and len(place.words) <= 40 else ""
    backward = "" if "forward" in place.directions else " backward"
    return f"{_code(place.op)}{words}{backward}"


def _sources(row: Row) -> str:
    return escape(", ".join(row.source)) if len(row.source) < 6 else f"{count(len(row.source), 'model')}"


def _code(name: str) -> str:
    return f"`{name}`"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for cells in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(cells)} |"
