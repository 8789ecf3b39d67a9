"""Rows to Markdown as GitHub shows it, for issues and pull requests."""

from collections.abc import Iterator
from typing import Final

from accel_micro.report import layout, table, words
from accel_micro.report.rows import Report, Row

_UNLIMITED: Final = 1_000_000


def to_markdown(report: Report) -> str:
    """A table a family; below them what flags and intervals mean, the failures and the skips."""
    timed = [row for family in report.families for row in family.rows]
    name = table.title(report.rows)
    lines = [f"**{escape(name.strip())}** {words.headline(report)}" if name else words.headline(report)]
    plan = layout.layout(timed, _UNLIMITED)
    start = 0
    for family in report.families:
        lines += ["", f"### {escape(table.family_title(family, report))}", ""]
        lines += _table(plan, start, start + len(family.rows))
        start += len(family.rows)
    for part in (_notes(timed), _failures(report.failed), _skips(report)):
        lines += part
    return "\n".join(lines) + "\n"


def _table(plan: layout.Layout, start: int, end: int) -> Iterator[str]:
    yield _line(column.title for column in plan.columns)
    yield _line("--:" if column.justify == "right" else "---" for column in plan.columns)
    for index in range(start, end):
        yield _line(escape(plan.cells[column.key][index]).strip() for column in plan.columns)


def _line(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _notes(rows: list[Row]) -> Iterator[str]:
    if rows:
        yield ""
    for flag in words.legend(rows, all_clocks=False):
        yield f"- `{flag.mark}` **{flag.name}** ({words.count(flag.cases, 'case')}): {flag.remedy}"
    for note in words.interval_notes(rows):
        yield f"- {note}"


def _failures(rows: tuple[Row, ...]) -> Iterator[str]:
    if rows:
        yield from ("", "### Failed", "")
    for row in rows:
        yield f"- **{words.failure_title(row)}**: {escape(str(row.case))}"
        for failure in row.failures:
            detail = escape(words.first_line(failure.detail))
            yield f"  <br>{detail}{' ' if detail else ''}→ {words.failure_remedy(failure.kind)}"


def _skips(report: Report) -> Iterator[str]:
    if report.skips:
        yield from ("", "### Skipped", "")
    for skip in report.skips:
        yield f"- {words.count(len(skip.cases), 'case')}: {escape(skip.reason)}"


def escape(text: str) -> str:
    """Text from a record that must neither end a table's cell nor become markup."""
    text = words.clean(text).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{c}" if c in "\\`*_[]|" else c for c in text)
