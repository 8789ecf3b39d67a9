"""What a self-check found: sections of tables, and whether ours is best in each column that has a best. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Unit = Literal["share", "signed share", "seconds", "count", "factor", "number", "text"]
Better = Literal["low", "high", ""]
Value = float | int | str | None


@dataclass(frozen=True)
class Column:
    """A figure that rows have.

    Attributes:
        unit: in which it is shown. Shares and seconds are plain numbers, 0.02 for 2 %.
        better: which of two is the better one; empty where neither is.
        tie: a difference that does not count: of shares, counts and numbers as it is, of seconds and factors relative.
    """

    key: str
    title: str
    unit: Unit = "text"
    better: Better = ""
    tie: float = 0.0


@dataclass(frozen=True)
class Row:
    """A harness, a rule or a size in one line.

    Attributes:
        ours: it is accel_micro's. absent: why it has no figures, a sentence.
        void: columns in which it does not count as a rival, since it fails in another one; it is shown all the same.
    """

    name: str
    values: Mapping[str, Value] = field(default_factory=dict)
    ours: bool = False
    absent: str = ""
    void: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Table:
    """Rows that are held against each other. `first` heads their names; `note` says how to read it."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    first: str = "harness"


@dataclass(frozen=True)
class Section:
    """An answer to one question.

    Attributes:
        key: by which the command line names it. question: that it answers, in words.
        done: what was done, in words. fuller: the command that does more of it. seconds: that it took.
        failed: why there is no answer, a sentence; empty where there is one.
    """

    key: str
    title: str
    question: str
    done: str = ""
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    fuller: str = ""
    seconds: float = 0.0
    failed: str = ""


@dataclass(frozen=True)
class SelfCheck:
    """A run. `facts`: label and text of machine, torch, load and the like; `command`: what makes it again."""

    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...]
    command: str
    started: str
    seconds: float
    interrupted: bool = False


Kind = Literal["best", "tied", "worse"]


@dataclass(frozen=True)
class Standing:
    """Ours in a column, against the best of the others."""

    section: str
    table: Table
    column: Column
    ours: float
    rival: str
    best: float
    kind: Kind

    @property
    def behind(self) -> float:
        """By how much ours is worse, in the sense of the column's tie; not positive where it is not."""
        sign = 1.0 if self.column.better == "low" else -1.0
        return sign * _distance(self.column, self.ours, self.best)


_ABSOLUTE: Final = ("share", "signed share", "count", "number")


def _distance(column: Column, ours: float, best: float) -> float:
    if column.unit in _ABSOLUTE:
        return abs(ours) - abs(best) if column.unit == "signed share" else ours - best
    if math.isinf(ours) or best == 0:
        return 0.0 if ours == best else math.copysign(math.inf, ours - best)
    return ours / best - 1


def standings(section: Section) -> Iterator[Standing]:
    """For each column with a better end in which ours and a rival have figures, where ours stands.

    Of several rows of ours the first one counts: it is what users get who ask for nothing.
    """
    for table in section.tables:
        for column in table.columns:
            if not column.better:
                continue
            first = next((row for row in table.rows if row.ours), Row(""))
            mine = number(first, column)
            rivals = [
                (value, row.name)
                for row in table.rows
                if not row.ours and column.key not in row.void and (value := number(row, column)) is not None
            ]
            if mine is None or not rivals:
                continue
            low = column.better == "low"

            def size(value: float, column: Column = column) -> float:
                return abs(value) if column.unit == "signed share" else value

            best, rival = (min if low else max)(rivals, key=lambda pair: size(pair[0]))
            found = Standing(section.key, table, column, mine, rival, best, "best")
            kind: Kind = "worse" if found.behind > column.tie else "best"
            if kind == "best" and abs(found.behind) <= column.tie:
                kind = "tied"
            yield Standing(section.key, table, column, mine, rival, best, kind)


def number(row: Row, column: Column) -> float | None:
    """The figure of a row that can be held against others, or None. Infinite is a figure: never reached."""
    value = row.values.get(column.key)
    if isinstance(value, str) or value is None or math.isnan(value):
        return None
    return float(value)


def all_standings(sections: Sequence[Section]) -> list[Standing]:
    """Of all sections, in order."""
    return [one for section in sections for one in standings(section)]


def to_data(check: SelfCheck) -> dict[str, Any]:
    """As JSON can hold it; what is not a number is null."""

    def plain(value: Value) -> Value:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return {
        "schema": 1,
        "command": check.command,
        "started": check.started,
        "seconds": check.seconds,
        "interrupted": check.interrupted,
        "facts": dict(check.facts),
        "sections": [
            {
                "key": section.key,
                "title": section.title,
                "done": section.done,
                "failed": section.failed,
                "seconds": section.seconds,
                "fuller": section.fuller,
                "notes": list(section.notes),
                "tables": [
                    {
                        "title": table.title,
                        "columns": [vars(column) for column in table.columns],
                        "note": table.note,
                        "rows": [
                            {
                                "name": row.name,
                                "ours": row.ours,
                                "absent": row.absent,
                                "values": {key: plain(value) for key, value in row.values.items()},
                            }
                            for row in table.rows
                        ],
                    }
                    for table in section.tables
                ],
                "standings": [
                    {
                        "table": one.table.title,
                        "column": one.column.title,
                        "ours": plain(one.ours),
                        "best_of_others": plain(one.best),
                        "rival": one.rival,
                        "kind": one.kind,
                    }
                    for one in standings(section)
                ],
            }
            for section in check.sections
        ],
    }
