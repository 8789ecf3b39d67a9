"""A self-check in words: figures with their units, and where ours stands."""

import math
from collections.abc import Sequence
from typing import Final

from accel_micro.report import units
from accel_micro.report.words import clean
from accel_micro.selfcheck.findings import Column, Row, Section, SelfCheck, Standing, Table, Value, standings

NOTHING: Final = "–"


def text(value: Value, column: Column) -> str:
    """A figure as people read it."""
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return clean(value)
    if math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "never"
    if column.unit in ("share", "signed share"):
        sign = "+" if column.unit == "signed share" and value > 0 else ""
        return f"{sign}{_share(value)}"
    if column.unit == "seconds":
        return units.quantity(value, "s")
    if column.unit == "factor":
        return units.factor(value)
    if column.unit == "count":
        return f"{value:.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def _share(value: float) -> str:
    percent = 100 * value
    return f"{percent:.0f} %" if abs(percent) >= 9.95 or percent == 0 else f"{percent:.2f} %"


def cells(row: Row, columns: Sequence[Column]) -> list[str]:
    """Of a row; of one without figures nothing, its sentence stands beside the name."""
    if row.absent:
        return [NOTHING] * len(columns)
    return [text(row.values.get(column.key), column) for column in columns]


def absent(table: Table) -> list[str]:
    """Why rows have no figures, a sentence each."""
    return [clean(f"{row.name}: {row.absent}") for row in table.rows if row.absent]


def verdict(standing: Standing) -> str:
    """Where ours stands in a column, a sentence."""
    column = standing.column
    ours, best = text(standing.ours, column), text(standing.best, column)
    where = f"{standing.table.title}, {column.title}"
    if standing.kind == "worse":
        return f"{where}: ours reads {ours}, {standing.rival} {best}"
    word = "tied with" if standing.kind == "tied" else "better than"
    return f"{where}: {ours}, {word} {standing.rival} ({best})"


def counts(section: Section) -> str:
    """How many columns of a section ours is best, tied and worse in."""
    found = list(standings(section))
    if not found:
        return ""
    kinds = {kind: sum(one.kind == kind for one in found) for kind in ("best", "tied", "worse")}
    return f"best in {kinds['best']}, tied in {kinds['tied']}, behind in {kinds['worse']} of {len(found)} figures"


def behind(section: Section) -> list[str]:
    """Sentences about the figures in which another one is better, the widest gap first."""
    worse = [one for one in standings(section) if one.kind == "worse"]
    return [verdict(one) for one in sorted(worse, key=lambda one: -one.behind)]


def mark(table: Table, column: Column, section: Section) -> str:
    """What a column's head says of ours: `best`, `tied`, `behind`, or nothing."""
    for one in standings(section):
        if one.table is table and one.column is column:
            return {"best": "best", "tied": "tied", "worse": "behind"}[one.kind]
    return ""


def summary(check: SelfCheck) -> str:
    """The whole in a sentence."""
    found = [one for section in check.sections for one in standings(section)]
    good = sum(one.kind != "worse" for one in found)
    failed = sum(bool(section.failed) for section in check.sections)
    parts = [f"ours is best or tied in {good} of {len(found)} figures that have a best"]
    if failed:
        parts.append(f"{failed} of {len(check.sections)} sections have no answer")
    if check.interrupted:
        parts.append("it was interrupted")
    return "; ".join(parts)


def facts(check: SelfCheck) -> list[tuple[str, str]]:
    """Labels and texts of the headline."""
    moment = check.started[:16].replace("T", " ") + (" UTC" if check.started.endswith("+00:00") else "")
    own = [("measured", moment), ("took", f"{check.seconds / 60:.1f} minutes"), ("made by", check.command)]
    return [(label, clean(value)) for label, value in (*check.facts, *own) if value]
