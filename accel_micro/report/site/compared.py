"""Which builds the pages compare: the newest of each machine and channel with the one before it.

The comparing itself is that of `accel-micro compare`, so that a page and a terminal cannot disagree.
"""

from collections.abc import Iterator

from accel_micro.builds import CHANNELS, Build
from accel_micro.comparison.compared import Comparison
from accel_micro.report.site.gather import Gathered


def compare_builds(
    gathered: Gathered, baseline: str | None = None, contender: str | None = None
) -> list[Comparison]:
    """Compare two builds on every machine that measured both.

    Args:
        baseline, contender: names of builds, see `Ledger.resolve`. Without both, the newest of each channel is
            held against the one before it; without one, the other's neighbour or the newest is taken.

    Raises:
        UnknownBuild: no build, or several, go by a name.
    """
    from accel_micro.comparison.comparing import Request, compare

    return [
        compare(
            Request(f"build:{first.id}", f"build:{second.id}", machine=machine),
            gathered.results,
            gathered.ledger,
        )
        for machine, first, second in choose(gathered, baseline, contender)
    ]


def choose(
    gathered: Gathered, baseline: str | None = None, contender: str | None = None
) -> Iterator[tuple[str, Build, Build]]:
    """(machine, baseline, contender) of what `compare_builds` compares."""
    first = gathered.ledger.resolve(baseline) if baseline else None
    second = gathered.ledger.resolve(contender) if contender else None
    for machine, builds in _timed(gathered).items():
        if first is not None and second is not None:
            if first.id in builds and second.id in builds and first.id != second.id:
                yield machine, first, second
            continue
        for channel in CHANNELS:
            line = [one for one in builds if gathered.ledger[one].channel == channel]
            if second is not None:
                line = line[: line.index(second.id) + 1] if second.id in line else []
            elif first is not None:
                line = [first.id, line[-1]] if first.id in line and first.id != line[-1] else []
            if len(line) > 1:
                yield machine, gathered.ledger[line[-2]], gathered.ledger[line[-1]]


def _timed(gathered: Gathered) -> dict[str, list[str]]:
    """Machine → ids of the builds with a time there, from old to new."""
    found: dict[str, set[str]] = {}
    for history in gathered.histories:
        for points in history.points.values():
            found.setdefault(history.place.machine, set()).update(points)
    order = [build.id for build in gathered.ledger]
    return {machine: [one for one in order if one in ids] for machine, ids in sorted(found.items())}
