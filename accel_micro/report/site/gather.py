"""Stored results to the history of each case: an estimate a build and clock, and what failed. One build at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from accel_micro.builds import Build, Ledger
from accel_micro.builds.identity import from_id
from accel_micro.measure.process import CLOCKS
from accel_micro.measure.records import Case, Failure
from accel_micro.report.rows import HEADLINE_CLOCKS
from accel_micro.results import Stored, Trial, read_each
from accel_micro.results.trials import WITHHELD
from accel_micro.stats.estimate import Estimate, estimate

CLOCK_ORDER: Final = (*HEADLINE_CLOCKS, *(clock for clock in CLOCKS if clock not in HEADLINE_CLOCKS))


@dataclass(frozen=True)
class Place:
    """Where numbers belong to one history: a machine, and an environment (a Python) on it."""

    machine: str
    environment: str


@dataclass(frozen=True)
class Point:
    """One build of a history by one clock.

    Attributes:
        medians: of each process, seconds per call.
        flags: names, each once.
        sessions: ids of the runs that measured it. started: of the last process, ISO 8601 in UTC.
    """

    estimate: Estimate
    medians: tuple[float, ...]
    flags: tuple[str, ...]
    sessions: tuple[str, ...]
    started: str


@dataclass
class History:
    """One case in one place over all builds.

    Attributes:
        points: clock → id of a build → what was read.
        failures: id of a build → why there is no time, or why some process gave none.
        skipped: id of a build → why the case does not exist there.
    """

    place: Place
    case: Case
    points: dict[str, dict[str, Point]] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def clocks(self) -> tuple[str, ...]:
        """Clocks that were read, the one that stands for the case first."""
        return tuple(clock for clock in CLOCK_ORDER if clock in self.points)


@dataclass
class Gathered:
    """All that the pages show of a folder of results.

    Attributes:
        ledger: knows every build of `measured`, for as long as this object lives.
        measured: place → builds that have records there, from old to new.
        histories: in order of place, then of op and the rest of the case.
        problems: lines that could not be read, named.
    """

    results: Path
    ledger: Ledger
    measured: Mapping[Place, Sequence[Build]]
    histories: Sequence[History]
    problems: Sequence[str]

    def at(self, place: Place) -> list[History]:
        """The histories of one place."""
        return [history for history in self.histories if history.place == place]


def gather(results: Path) -> Gathered:
    """Read a folder of results.

    Raises:
        OSError: a file cannot be read.
    """
    problems: list[str] = []
    ledger = Ledger.beside(results, problems)
    histories: dict[tuple[Place, Case], History] = {}
    builds: dict[Place, set[str]] = {}
    for stored in read_each(results):
        _fold(stored, histories, builds, problems)
    for build_id in {one for ids in builds.values() for one in ids}:
        if build_id not in ledger:
            ledger.add(from_id(build_id))
    order = {build.id: number for number, build in enumerate(ledger.ordered())}
    return Gathered(
        results,
        ledger,
        {
            place: [ledger[one] for one in sorted(builds[place], key=order.__getitem__)]
            for place in sorted(builds, key=lambda place: (place.machine, place.environment))
        },
        [histories[key] for key in sorted(histories, key=_rank)],
        problems,
    )


def _rank(key: tuple[Place, Case]) -> tuple[str, ...]:
    place, case = key
    names = (case.family, case.device, case.op, case.shape, case.dtype)
    return (place.machine, place.environment, *names, "" if case.direction == "forward" else case.direction)


def _fold(
    stored: Stored,
    histories: dict[tuple[Place, Case], History],
    builds: dict[Place, set[str]],
    problems: list[str],
) -> None:
    def of(machine: str, build: str, environment: str, case: Case) -> History:
        place = Place(machine, environment)
        builds.setdefault(place, set()).add(build)
        found = histories.get((place, case))
        if found is None:
            found = histories[place, case] = History(place, case)
        return found

    problems.extend(stored.problems)
    for (machine, build, environment, case), failure in stored.failures.items():
        of(machine, build, environment, case).failures[build] = failure
    for (machine, build, environment, case), reason in stored.skipped.items():
        of(machine, build, environment, case).skipped[build] = reason
    for key, trial in stored.trials.items():
        history = of(key.machine, key.build, key.environment, key.case)
        failed = history.failures.get(key.build)
        if failed is not None and failed.kind in WITHHELD:
            continue
        try:
            point = _point(trial)
        except ValueError as error:
            problems.append(f"{key.case} on {key.machine}, build {key.build[:8]}: {error}")
            continue
        history.points.setdefault(key.clock, {})[key.build] = point


def _point(trial: Trial) -> Point:
    return Point(
        estimate(trial.samples),
        tuple(process.median_seconds for process in trial.processes),
        tuple(dict.fromkeys(flag for process in trial.processes for flag in process.flags)),
        trial.sessions,
        trial.processes[-1].started,
    )
