"""The verdicts of the pages' comparisons as rows to sort and filter, each with its place on a forest plot."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from accel_micro.comparison.compared import Compared, Comparison
from accel_micro.report import comparison_words as words
from accel_micro.report import layout
from accel_micro.report.site.gather import Place
from accel_micro.report.site.plots import Forest, ForestAxis
from accel_micro.report.site.text import file_name
from accel_micro.shell import joined
from accel_micro.stats.verdict import KINDS

MOST_CASES: Final = 8
"""Cases that are named where a group of them was not compared."""


@dataclass(frozen=True)
class VerdictRow:
    """One case by one clock. `sort` has what it can be sorted by; `search` what it is found by;
    `contender` is the id of the build, `builds` names both.
    """

    kind: str
    sign: str
    word: str
    op: str
    direction: str
    dtype: str
    shape: str
    family: str
    device: str
    clock: str
    href: str
    change: str
    times: str
    q: str
    noise: str
    processes: str
    note: str
    contender: str
    builds: str
    forest: Forest
    search: str
    sort: dict[str, float]


@dataclass(frozen=True)
class Section:
    """One comparison: its table, and what a reader must know before trusting it."""

    id: str
    machine: str
    title: str
    summary: str
    counts: dict[str, int]
    cautions: tuple[str, ...]
    differences: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...]
    uncompared: tuple[tuple[str, tuple[str, ...], int], ...]
    rows: tuple[VerdictRow, ...]
    axis: ForestAxis
    command: str

    def of(self, kind: str) -> list[VerdictRow]:
        """The rows of one verdict."""
        return [row for row in self.rows if row.kind == kind]


def sections(comparisons: Sequence[Comparison]) -> list[Section]:
    """A section for each comparison."""
    return [_section(comparison, number) for number, comparison in enumerate(comparisons, start=1)]


def options(found: Sequence[Section]) -> dict[str, list[str]]:
    """What the rows can be filtered by: name → the values that occur."""
    rows = [row for section in found for row in section.rows]
    values: dict[str, list[str]] = {
        "verdict": [str(kind) for kind in KINDS if any(row.kind == kind for row in rows)],
        "family": sorted({row.family for row in rows}),
        "device": sorted({row.device for row in rows}),
        "dtype": sorted({row.dtype for row in rows}),
        "clock": sorted({row.clock for row in rows}),
        "machine": sorted({section.machine for section in found}),
    }
    return {name: each for name, each in values.items() if len(each) > 1 or name == "verdict"}


def _section(comparison: Comparison, number: int) -> Section:
    rows = comparison.rows
    tolerance = max((each.value for each in comparison.tolerances), default=0.02)
    axis = ForestAxis([row.verdict for row in rows], tolerance)
    machine = comparison.scope.machines[1]
    first, second = _versions(comparison)
    return Section(
        id=f"comparison-{number}",
        machine=machine,
        title=words.title(comparison),
        summary=words.summary(comparison),
        counts=comparison.counts,
        cautions=(*comparison.cautions, *(each.note for each in comparison.tolerances if each.note)),
        differences=tuple(
            (words.difference_label(one), words.difference_text(one, len(rows)))
            for one in comparison.differences.found
        ),
        unknown=comparison.differences.unknown,
        uncompared=tuple(
            (
                words.uncompared_text(group, comparison),
                tuple(str(case) for case in group.cases[:MOST_CASES]),
                len(group.cases),
            )
            for group in comparison.uncompared
        ),
        rows=tuple(_row(row, comparison, axis) for row in rows),
        axis=axis,
        command=joined(["accel-micro", "compare", first, second, "--machine", machine, "--measure"])
        if comparison.undecided
        else "",
    )


def _versions(comparison: Comparison) -> tuple[str, str]:
    first, second = (side.title.removeprefix("torch ") for side in comparison.sides)
    return first, second


def _row(row: Compared, comparison: Comparison, axis: ForestAxis) -> VerdictRow:
    case, verdict = row.pair.case, row.verdict
    name = words.names(comparison.kind)[verdict.kind]
    place = Place(row.pair.contender.key.machine, row.pair.contender.key.environment)
    notes = [words.needs_text(verdict), verdict.reason if not verdict.decided else ""]
    if any(verdict.set_aside):
        notes.append("{} and {} processes ran in another speed mode".format(*verdict.set_aside))
    sort = {
        "ratio": verdict.ratio,
        "q": 1.0 if verdict.q_value is None else verdict.q_value,
        "noise": max(verdict.baseline_spread, verdict.contender_spread),
        "seconds": row.seconds[1],
    }
    return VerdictRow(
        kind=verdict.kind,
        sign=name.sign,
        word=name.one,
        op=case.op,
        direction=case.direction,
        dtype=layout.short_dtype(case.dtype),
        shape=case.shape,
        family=case.family,
        device=case.device,
        clock=row.pair.clock,
        href=f"cases/{file_name(place, case)}",
        change=words.change_text(verdict, comparison.kind),
        times=words.times_text(row),
        q=words.q_text(verdict),
        noise=words.noise_text(verdict),
        processes=words.processes_text(verdict),
        note="; ".join(filter(None, notes)),
        contender=row.pair.contender.key.build,
        builds=" → ".join(_versions(comparison)),
        forest=axis.row(verdict),
        search=f"{case} {layout.short_dtype(case.dtype)} {row.pair.clock} {verdict.kind} {place.machine}".lower(),
        sort={key: value for key, value in sort.items() if math.isfinite(value)},
    )
