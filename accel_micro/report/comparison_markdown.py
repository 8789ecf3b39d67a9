"""A comparison to Markdown as GitHub shows it, for issues and pull requests."""

from collections.abc import Iterable, Iterator

from accel_micro.comparison.compared import Compared, Comparison
from accel_micro.report import comparison_words as words
from accel_micro.report.comparison import MOST_DIFFERENCES, shown_rows
from accel_micro.report.markdown import escape
from accel_micro.report.words import clean


def to_markdown(comparison: Comparison, *, all_rows: bool = False, next_command: str = "") -> str:
    """The summary, what differs, a table a verdict, and what was not compared."""
    lines = [f"**{escape(words.title(comparison))}**", "", escape(words.summary(comparison))]
    lines += _differences(comparison, all_rows)
    lines += _list(f"Caution: {text}" for text in words.cautions(comparison))
    for kind, heading, rows in words.sections(comparison):
        shown, more = shown_rows(kind, rows, all_rows)
        lines += ["", f"### {escape(heading)}"]
        if shown:
            lines += ["", *_table(shown, comparison)]
        if more:
            lines += ["", f"{len(rows) - len(shown)} more" if shown else "Not listed."]
    if comparison.uncompared:
        lines += ["", f"### {words.uncompared_title(comparison)}"]
        lines += _list(
            f"{len(g.cases)}: {words.uncompared_text(g, comparison)}" for g in comparison.uncompared
        )
    lines += _list(comparison.problems[:1])
    if comparison.undecided:
        lines += ["", "What would decide the inconclusive rows:"]
        lines += _list([*words.reasons(comparison.rows), words.needs_note(comparison.rows)])
    if next_command:
        lines += ["", "```sh", clean(next_command), "```"]
    return "\n".join(lines) + "\n"


def _differences(comparison: Comparison, all_rows: bool) -> Iterator[str]:
    if title := words.differences_title(comparison):
        yield from ("", escape(title))
    found = comparison.differences.found
    shown = found if all_rows else found[:MOST_DIFFERENCES]
    total = len(comparison.rows)
    texts = [f"{words.difference_label(d)}: {words.difference_text(d, total)}" for d in shown]
    texts += [f"and {len(found) - len(shown)} more"] if len(shown) < len(found) else []
    yield from _list([*texts, *comparison.differences.unknown])


def _table(rows: list[Compared], comparison: Comparison) -> Iterator[str]:
    change = "change" if comparison.kind == "build" else "speed"
    titles = ("case", "time of a call", f"{change} [95 % interval]", "q", "noise", "proc.", "")
    yield _line(titles if comparison.undecided else titles[:-1])
    yield _line(("---", *["--:"] * 5, "---")[: len(titles) if comparison.undecided else -1])
    for row in rows:
        verdict = row.verdict
        cells = (
            words.case_text(row, comparison),
            words.times_text(row),
            words.change_text(verdict, comparison.kind),
            words.q_text(verdict),
            words.noise_text(verdict),
            words.processes_text(verdict),
            words.needs_text(verdict),
        )
        yield _line(map(escape, cells if comparison.undecided else cells[:-1]))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _list(texts: Iterable[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        if number == 0:
            yield ""
        yield f"- {escape(text)}"
