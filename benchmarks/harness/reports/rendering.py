"""Rows for people, in Markdown, and for programs, as plain data."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.reports.catalogue import REPORTS
from benchmarks.harness.reports.row import Row

HEAD = "| report | reported there | tried here | a naive harness | ours | what ours does |\n|---|---|---|---|---|---|"


def table(rows: Iterable[Row]) -> str:
    """A Markdown table, a line each."""
    return "\n".join([HEAD, *(_line(row) for row in rows)])


def _line(row: Row) -> str:
    report = REPORTS[row.number]
    links = ", ".join(f"[{name}]({address})" for name, address in report.issues.items())
    if row.finding is None:
        cells = [f"{row.where}", "", "", row.problem]
    else:
        found = row.finding
        cells = [f"{row.where}: {found.tried}", found.naive, found.ours, found.does]
    return (
        "| " + " | ".join(_escaped(cell) for cell in (f"{row.number}. {links}", report.said, *cells)) + " |"
    )


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")


def shown(row: Row) -> str:
    """A few lines for a terminal."""
    report = REPORTS[row.number]
    title = f"{row.number}. {', '.join(report.issues)} on {row.where}, {row.seconds:.1f} s{_tries(row)}: {report.said}"
    if row.finding is None:
        return f"{title}\n   {row.problem}"
    found = row.finding
    lines = {"tried": found.tried, "naive": found.naive, "ours": found.ours, "does": found.does}
    mark = "" if found.good else "   NOT AS IT SHOULD BE\n"
    return "\n".join([title, *(f"   {name:6s}{text}" for name, text in lines.items()), mark]).rstrip()


def _tries(row: Row) -> str:
    return f", {row.tries} tries" if row.tries > 1 else ""


def to_json(rows: Sequence[Row], device: str, torch_version: str) -> dict[str, Any]:
    """All rows with what is known about the reports."""
    return {
        "device": device,
        "torch": torch_version,
        "rows": [
            {
                **row.to_json(),
                "issues": dict(REPORTS[row.number].issues),
                "reported": REPORTS[row.number].said,
            }
            for row in rows
        ],
    }


def read(path: Path) -> list[Row]:
    """The rows of a file that `to_json` filled.

    Raises:
        KeyError, TypeError, ValueError: it is no such file.
    """
    beside = ("issues", "reported")
    data = json.loads(path.read_text(encoding="utf-8"))
    return [
        Row.from_json({name: value for name, value in row.items() if name not in beside})
        for row in data["rows"]
    ]
