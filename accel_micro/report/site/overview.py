"""The first page: what got slower, then every case with its newest time and its history in small."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accel_micro.comparison.history import Proposal
from accel_micro.measure.records import Case
from accel_micro.report import layout, units
from accel_micro.report.site import changes
from accel_micro.report.site.gather import Gathered, History, Place
from accel_micro.report.site.plots import sparkline
from accel_micro.report.site.significance import VerdictRow
from accel_micro.report.site.text import change, file_name

_ORDER = ("regression", "improvement", "inconclusive", "invariant", "")


@dataclass(frozen=True)
class CaseRow:
    """One case in one place: its newest time, its history in small, and its worst verdict, if it has one."""

    op: str
    direction: str
    dtype: str
    shape: str
    family: str
    device: str
    machine: str
    href: str
    time: str
    interval: str
    clock: str
    version: str
    spark: str
    spark_end: str
    verdict: VerdictRow | None
    step: str
    failure: str
    search: str
    sort: dict[str, float]


def case_rows(
    gathered: Gathered,
    verdicts: Mapping[tuple[Place, Case], Sequence[VerdictRow]],
    proposals: Mapping[tuple[Place, Case], Sequence[Proposal]],
) -> list[CaseRow]:
    """All cases, what got slower first, then what failed on the newest build, then as the suite defines them."""
    rows = [
        _row(
            history,
            gathered,
            verdicts.get((history.place, history.case), ()),
            proposals.get((history.place, history.case), ()),
        )
        for history in gathered.histories
        if history.points or history.failures
    ]
    return sorted(rows, key=_rank)


@dataclass(frozen=True)
class StepRow:
    """A proposed step of the list, with the case it is in."""

    sign: str
    text: str
    row: CaseRow


def step_rows(
    gathered: Gathered,
    rows: Sequence[CaseRow],
    proposals: Mapping[tuple[Place, Case], Sequence[Proposal]],
) -> list[StepRow]:
    """All proposed steps, those of the newest builds first, the larger first."""
    by_page = {row.href: row for row in rows}
    order = {build.id: number for number, build in enumerate(gathered.ledger)}
    every = [
        (one, f"cases/{file_name(place, case)}")
        for (place, case), found in proposals.items()
        for one in found
    ]
    every.sort(
        key=lambda pair: (-order[pair[0].after.id], not pair[0].slower, -abs(pair[0].change.ratio - 1))
    )
    return [StepRow(changes.sign(one), changes.text(one), by_page[page]) for one, page in every]


def options(rows: Sequence[CaseRow]) -> dict[str, list[str]]:
    """What the rows can be filtered by: name → the values that occur."""
    values = {
        "family": sorted({row.family for row in rows}),
        "device": sorted({row.device for row in rows}),
        "dtype": sorted({row.dtype for row in rows}),
        "machine": sorted({row.machine for row in rows}),
    }
    return {name: found for name, found in values.items() if len(found) > 1}


def _rank(row: CaseRow) -> tuple[int, float]:
    kind = row.verdict.kind if row.verdict else ""
    size = row.verdict.sort.get("ratio", 1.0) if row.verdict else 1.0
    if kind == "regression":
        return 0, -size
    if row.failure:
        return 1, 0.0
    return (2, size) if kind == "improvement" else (3, 0.0)


def _row(
    history: History, gathered: Gathered, verdicts: Sequence[VerdictRow], proposals: Sequence[Proposal]
) -> CaseRow:
    case, builds = history.case, gathered.measured[history.place]
    clock = next(iter(history.clocks), "")
    points = history.points.get(clock, {})
    newest = next((build for build in reversed(builds) if build.id in points), None)
    time = units.time_text(points[newest.id].estimate) if newest else units.TimeText("", "")
    verdict = min(verdicts, key=lambda row: _ORDER.index(row.kind), default=None)
    spark, end = sparkline(builds, points)
    failed = next((build for build in reversed(builds) if _is_tried(history, build.id)), None)
    failure = history.failures.get(failed.id) if failed else None
    step = ""
    if proposals:
        newest_step = proposals[0]
        word = "slower" if newest_step.slower else "faster"
        size = change(newest_step.change.ratio)
        step = f"{changes.sign(newest_step)} stepped {size}, {word}, at {newest_step.after.version}"
    sort: dict[str, float | None] = {"ratio": verdict.sort.get("ratio") if verdict else None}
    sort["seconds"] = points[newest.id].estimate.seconds if newest else None
    sort["spread"] = points[newest.id].estimate.spread if newest else None
    dtype = layout.short_dtype(case.dtype)
    found = [str(case), dtype, history.place.machine]
    found += [verdict.kind] if verdict else []
    found += [failure.kind] if failure else []
    return CaseRow(
        op=case.op,
        direction=case.direction,
        dtype=dtype,
        shape=case.shape,
        family=case.family,
        device=case.device,
        machine=history.place.machine,
        href=f"cases/{file_name(history.place, case)}",
        time=f"{time.value} {time.unit}".strip(),
        interval=f"{time.low} – {time.high}" if time.half else "",
        clock=clock,
        version=newest.version if newest else "",
        spark=spark,
        spark_end=end,
        verdict=verdict,
        step=step,
        failure=f"{failure.kind} on {failed.version}" if failure and failed else "",
        search=" ".join(found).lower(),
        sort={key: value for key, value in sort.items() if value is not None},
    )


def _is_tried(history: History, build_id: str) -> bool:
    return build_id in history.failures or any(build_id in points for points in history.points.values())
