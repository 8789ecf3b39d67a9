"""Steps over builds that are proposed, for the marks in histories and the list of the overview.

They are those of `accel-micro compare --history`, found in histories that are read already.
"""

from functools import cache

from accel_micro.comparison.history import DEFAULT_FLOOR, History, Proposal, Whose, propose
from accel_micro.comparison.pairing import DEFAULT_CLOCKS
from accel_micro.measure.records import Case
from accel_micro.report.site.gather import Gathered, Place
from accel_micro.report.site.text import change
from accel_micro.results import calibrations
from accel_micro.stats.changes import Point


def proposals(gathered: Gathered) -> dict[tuple[Place, Case], list[Proposal]]:
    """By history, that of the newest build first."""

    @cache
    def floor(machine: str, device: str) -> float:
        calibration = calibrations.latest(gathered.results, machine, device)
        return DEFAULT_FLOOR if calibration is None else max(DEFAULT_FLOOR, calibration.tolerance)

    found: dict[tuple[Place, Case], list[Proposal]] = {}
    for one in propose(_histories(gathered), gathered.ledger, floor).proposals:
        whose = one.history.whose
        found.setdefault((Place(whose.machine, whose.environment), whose.case), []).append(one)
    return found


def sign(one: Proposal) -> str:
    """Its shape."""
    return "▲" if one.slower else "▼"


def text(one: Proposal) -> str:
    """`slower by +5.0 % [+4.0 %, +6.0 %] in throughput at 2.15.0.dev20261106, after 2.15.0.dev20261105`."""
    ends = f"[{change(one.change.ratio_low)}, {change(one.change.ratio_high)}]"
    said = f"{'slower' if one.slower else 'faster'} by {change(one.change.ratio)} {ends} in {one.history.whose.clock}"
    said += f" at {one.after.version}, after {one.before.version}"
    if one.earliest.id != one.latest.id:
        said += f"; most likely from {one.earliest.version} to {one.latest.version}"
    if one.undone_by is not None:
        said += f"; undone by {one.undone_by.version}"
    return said + ("; measured in separate sessions" if one.apart else "")


def _histories(gathered: Gathered) -> list[History]:
    histories = []
    for history in gathered.histories:
        place, builds = history.place, gathered.measured[history.place]
        for clock in DEFAULT_CLOCKS:
            points = history.points.get(clock, {})
            for channel in dict.fromkeys(build.channel for build in builds):
                line = tuple(build for build in builds if build.channel == channel and build.id in points)
                if line:
                    histories.append(
                        History(
                            Whose(place.machine, place.environment, history.case, clock, channel),
                            line,
                            tuple(Point(points[build.id].medians) for build in line),
                            tuple(frozenset(points[build.id].sessions) for build in line),
                        )
                    )
    return histories
