"""A self-check to one HTML file that opens by a double click, without a network: it refers to nothing else."""

from pathlib import Path
from typing import Any

import accel_micro
from accel_micro.report import selfcheck_words as words
from accel_micro.report.html import template, write_whole
from accel_micro.report.words import clean
from accel_micro.selfcheck.findings import Section, SelfCheck, Table


def write_page(path: Path, check: SelfCheck) -> None:
    """Write the page; an older one of that name is replaced once the new one is complete. Raises OSError."""
    write_whole(path, render_page(check))


def render_page(check: SelfCheck) -> str:
    """The page as text; see `write_page`."""
    return template("selfcheck.html").render(
        title="accel_micro against its peers",
        about=words.facts(check),
        summary=words.summary(check),
        sections=[_section(section) for section in check.sections],
        version=accel_micro.__version__,
    )


def _section(section: Section) -> dict[str, Any]:
    return {
        "key": section.key,
        "title": section.title,
        "question": section.question,
        "done": clean(section.done),
        "failed": clean(section.failed),
        "tables": [_table(table, section) for table in section.tables],
        "counts": words.counts(section),
        "behind": words.behind(section),
        "notes": [clean(note) for note in section.notes],
        "fuller": section.fuller,
        "seconds": f"{section.seconds:.0f}",
    }


def _table(table: Table, section: Section) -> dict[str, Any]:
    return {
        "title": clean(table.title),
        "first": table.first,
        "columns": [(column.title, words.mark(table, column, section)) for column in table.columns],
        "rows": [
            {
                "name": clean(row.name),
                "ours": row.ours,
                "absent": clean(row.absent),
                "cells": words.cells(row, table.columns),
            }
            for row in table.rows
        ],
        "note": clean(table.note),
    }
