"""The page of one case: its history by every clock, build by build, with what failed and where it stepped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from accel_micro.builds import Build
from accel_micro.comparison.history import Proposal
from accel_micro.report import layout, units
from accel_micro.report.site import changes
from accel_micro.report.site.gather import History, Point
from accel_micro.report.site.plots import HistoryPlot, Mark, Step, history_plot, places
from accel_micro.report.site.significance import VerdictRow
from accel_micro.report.site.text import change, day, moment
from accel_micro.report.words import first_line

_DIFFERENT: Final = ("regression", "improvement")


@dataclass(frozen=True)
class ClockPlot:
    """One clock: its newest estimate in words, its plot, and on it the steps and a verdict that calls it different."""

    clock: str
    now: str
    plot: HistoryPlot
    steps: tuple[Step, ...]
    verdict: Mark | None


@dataclass(frozen=True)
class BuildRow:
    """One build: a time for each clock, empty where there is none. `at` is its place in the plots, in percent."""

    id: str
    version: str
    channel: str
    day: str
    times: tuple[tuple[str, str], ...]
    processes: int
    note: str
    bad: str
    at: float


@dataclass(frozen=True)
class CasePage:
    """What the template shows."""

    op: str
    direction: str
    dtype: str
    shape: str
    device: str
    machine: str
    environment: str
    measured: str
    clocks: tuple[ClockPlot, ...]
    verdicts: tuple[VerdictRow, ...]
    proposals: tuple[tuple[str, str], ...]
    rows: tuple[BuildRow, ...]
    channels: tuple[str, ...]
    within_only: bool


def case_page(
    history: History, builds: Sequence[Build], verdicts: Sequence[VerdictRow], proposals: Sequence[Proposal]
) -> CasePage:
    """The page of a case.

    Args:
        builds: those measured in its place, from old to new.
    """
    case = history.case
    without = {build.id: _without(history, build) for build in builds}
    x = places(builds)
    clocks = history.clocks
    times = {
        clock: {b: units.time_text(p.estimate) for b, p in history.points[clock].items()} for clock in clocks
    }
    rows = []
    for build in reversed(builds):
        points = {
            clock: history.points[clock][build.id] for clock in clocks if build.id in history.points[clock]
        }
        first = next(iter(points.values()), None)
        bad = "" if first is not None and build.id not in history.failures else without[build.id][1]
        rows.append(
            BuildRow(
                build.id,
                build.version,
                build.channel,
                day(build),
                tuple(
                    (
                        f"{times[clock][build.id].value} {times[clock][build.id].unit}",
                        _ends(times[clock][build.id]),
                    )
                    if clock in points
                    else ("", "")
                    for clock in clocks
                ),
                first.estimate.processes if first is not None else 0,
                _note(points),
                bad,
                round(x[build.id] / 10, 2),
            )
        )
    starts = [point.started for clock in clocks[:1] for point in history.points[clock].values()]
    newest = next((b for b in reversed(builds) if clocks and b.id in history.points[clocks[0]]), None)
    return CasePage(
        op=case.op,
        direction=case.direction,
        dtype=layout.short_dtype(case.dtype),
        shape=case.shape,
        device=case.device,
        machine=history.place.machine,
        environment=history.place.environment,
        measured=moment(max(starts, default="")),
        clocks=tuple(_clock(history, clock, builds, without, proposals, verdicts, x) for clock in clocks),
        verdicts=tuple(verdicts),
        proposals=tuple((changes.sign(one), changes.text(one)) for one in proposals),
        rows=tuple(rows),
        channels=tuple(dict.fromkeys(build.channel for build in builds)),
        within_only=newest is not None and history.points[clocks[0]][newest.id].estimate.within_only,
    )


def _clock(
    history: History,
    clock: str,
    builds: Sequence[Build],
    without: Mapping[str, tuple[str, str]],
    proposals: Sequence[Proposal],
    verdicts: Sequence[VerdictRow],
    x: Mapping[str, float],
) -> ClockPlot:
    points = history.points[clock]
    newest = next(build for build in reversed(builds) if build.id in points)
    missing = {build.id: without[build.id] for build in builds if build.id not in points}
    steps = tuple(
        Step(
            round((x[one.after.id] + x[one.before.id]) / 2, 1),
            x[one.earliest.id],
            x[one.latest.id],
            changes.sign(one),
            change(one.change.ratio),
        )
        for one in proposals
        if one.history.whose.clock == clock
    )
    verdict = next((row for row in verdicts if row.clock == clock and row.kind in _DIFFERENT), None)
    mark = None
    if verdict is not None and verdict.contender in x:
        mark = Mark(round(x[verdict.contender] / 10, 2), verdict.sign, verdict.change)
    now = units.time_text(points[newest.id].estimate).full
    return ClockPlot(clock, f"{now} on {newest.version}", history_plot(builds, points, missing), steps, mark)


def _without(history: History, build: Build) -> tuple[str, str]:
    """Sign and words of why a build has no time."""
    failure = history.failures.get(build.id)
    if failure is not None:
        return "✕", f"{failure.kind}: {first_line(failure.detail)}".removesuffix(": ")
    if build.id in history.skipped:
        return "–", f"skipped: {first_line(history.skipped[build.id])}"
    return "–", "not measured"


def _note(points: Mapping[str, Point]) -> str:
    return ", ".join(dict.fromkeys(flag for point in points.values() for flag in point.flags))


def _ends(time: units.TimeText) -> str:
    return f"{time.low} – {time.high}" if time.half else ""
