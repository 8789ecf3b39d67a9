"""Records to trials: all processes of a case on a build, by clock, machine and environment.

Years of builds are hundreds of megabytes of records, of which a comparison needs samples and flags. So only
those fields are decoded, in place of whole records: a tenth of the time.
"""

import re
import statistics
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from accel_micro.measure.records import SCHEMA, SUFFIX, Case, Failure

WITHHELD: Final = ("wrong result", "implausible")
"""Kinds of failure after which no time of the case counts, even if other processes of it gave one."""

_FILE: Final = re.compile(r"([0-9a-f]{8})-.+")


class Key(NamedTuple):
    """Whose trial it is."""

    machine: str
    build: str
    environment: str
    case: Case
    clock: str


@dataclass(frozen=True)
class Measured:
    """One process of a trial.

    Attributes:
        samples: seconds per call.
        session: id of the run it was part of. started: when it began, ISO 8601 in UTC.
        flags: names of what was noted about it.
        precision: TF32 and such modes, and the number of threads.
    """

    samples: tuple[float, ...]
    session: str = ""
    started: str = ""
    flags: tuple[str, ...] = ()
    precision: tuple[tuple[str, Any], ...] = ()

    @property
    def median_seconds(self) -> float:
        """Median of the samples, seconds per call."""
        return statistics.median(self.samples)


@dataclass(frozen=True)
class Trial:
    """The processes of a case on a build by one clock, in the order in which they ran."""

    key: Key
    processes: tuple[Measured, ...]

    @property
    def samples(self) -> list[tuple[float, ...]]:
        """For each process its samples: what `stats.estimate` and `stats.judge` take."""
        return [process.samples for process in self.processes]

    @property
    def sessions(self) -> tuple[str, ...]:
        """Ids of the runs that its processes were part of, each once."""
        return tuple(dict.fromkeys(process.session for process in self.processes))


@dataclass
class Stored:
    """What a folder of results holds.

    Attributes:
        trials: with at least one time.
        failures: (machine, build, environment, case) → why its last process left no time; one of `WITHHELD`
            stays, whatever came after it.
        skipped: the same → why the case does not exist there.
        problems: lines that were not records, named; they are left out.
    """

    trials: dict[Key, Trial] = field(default_factory=dict)
    failures: dict[tuple[str, str, str, Case], Failure] = field(default_factory=dict)
    skipped: dict[tuple[str, str, str, Case], str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def read_results(
    results: Path,
    *,
    machines: Collection[str] | None = None,
    builds: Collection[str] | None = None,
    clocks: Collection[str] | None = None,
) -> Stored:
    """The trials below a folder of results.

    A case that was ever found wrong or implausible on a build keeps its `failure`; whoever shows its times
    decides what that means (see `WITHHELD`).

    Args:
        machines, builds, clocks: only these; builds by id, and only their files are opened.
    """
    prefixes = None if builds is None else {build[:8] for build in builds}
    paths = [
        path
        for prefix, of_build in _files(results, machines)
        if prefixes is None or prefix is None or prefix in prefixes
        for path in of_build
    ]
    return _read(paths, builds, clocks)


def read_each(
    results: Path, *, machines: Collection[str] | None = None, clocks: Collection[str] | None = None
) -> Iterator[Stored]:
    """The same, a few builds at a time (those whose ids start alike), so that years of them need no memory."""
    for _, paths in _files(results, machines):
        yield _read(paths, None, clocks)


def _files(results: Path, machines: Collection[str] | None) -> list[tuple[str | None, list[Path]]]:
    """Files of records by the start of the build's id that their name gives, None where it gives none."""
    found: dict[str | None, list[Path]] = {}
    for path in sorted(results.glob(f"*/*{SUFFIX}")):
        if machines is None or path.parent.name in machines:
            start = _FILE.match(path.name)
            found.setdefault(start[1] if start else None, []).append(path)
    return list(found.items())


def _read(paths: Iterable[Path], builds: Collection[str] | None, clocks: Collection[str] | None) -> Stored:
    stored = Stored()
    found: dict[Key, list[Measured]] = {}
    for path in paths:
        for line in _lines(path, stored.problems):
            if builds is not None and line.build not in builds:
                continue
            where = (line.machine, line.build, line.environment, line.case)
            before = stored.failures.get(where)
            if before is not None and before.kind in WITHHELD:
                pass
            elif line.failure is not None:
                stored.failures[where] = line.failure
            elif line.skipped is not None:
                stored.skipped[where] = line.skipped
            else:
                stored.failures.pop(where, None)
            for clock, read in line.clocks.items():
                if clocks is None or clock in clocks:
                    found.setdefault(Key(*where, clock), []).append(
                        Measured(
                            samples=read.samples,
                            session=line.session,
                            started=line.started,
                            flags=tuple(flag.name for flag in read.flags),
                            precision=tuple(line.precision.items()),
                        )
                    )
    for key, processes in found.items():
        processes.sort(key=lambda process: process.started)
        stored.trials[key] = Trial(key, tuple(processes))
    return stored


class _Flag(msgspec.Struct):
    name: str


class _Clock(msgspec.Struct):
    samples: tuple[float, ...]
    flags: tuple[_Flag, ...]


class _Line(msgspec.Struct):
    """The fields of a record that are needed here; all others are skipped unread."""

    schema: int
    case: Case
    clocks: dict[str, _Clock]
    failure: Failure | None
    skipped: str | None
    machine: str
    build: str
    environment: str
    session: str
    started: str
    precision: dict[str, Any]


_DECODER: Final = msgspec.json.Decoder(_Line)


def _lines(path: Path, problems: list[str]) -> Iterator[_Line]:
    cases: dict[Case, Case] = {}
    with path.open("rb") as file:
        for number, text in enumerate(file, start=1):
            if text.isspace():
                continue
            try:
                line = _DECODER.decode(text)
                if line.schema != SCHEMA:
                    raise ValueError(f"record of schema {line.schema}, this version reads {SCHEMA}")
            except ValueError as error:  # of which msgspec's errors are
                problems.append(f"{path}:{number}: not a record, skipped ({error})")
                continue
            line.case = cases.setdefault(line.case, line.case)  # one object a case, however many processes
            yield line
