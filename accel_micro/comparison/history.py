"""Histories of cases over builds, and the changes in them that are worth a measurement.

A history belongs to one machine, environment, case, clock and channel: releases and nightlies take turns by date, and
would draw steps where nothing changed. What is found is proposed: the builds before and after a step were mostly
measured in separate sessions.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from accel_micro.builds import Build, Ledger
from accel_micro.builds.commits import same_commit
from accel_micro.builds.identity import from_id
from accel_micro.comparison.pairing import DEFAULT_CLOCKS, is_time, name_of
from accel_micro.measure.records import Case
from accel_micro.results.trials import WITHHELD, read_each
from accel_micro.stats.changes import FEWEST, Change, Point, find_changes
from accel_micro.stats.verdict import Verdict

DEFAULT_FLOOR: Final = 0.02

Fate = Literal["present", "undone"]
"""What became of a step: the last builds are still nearer to its level than to that before, or not."""


class Whose(NamedTuple):
    """What a history is of."""

    machine: str
    environment: str
    case: Case
    clock: str
    channel: str


@dataclass(frozen=True)
class History:
    """A case over builds.

    Attributes:
        builds: measured ones, from old to new; withheld times are left out. points: one a build.
        sessions: of each build, the ids of the runs that measured it.
    """

    whose: Whose
    builds: tuple[Build, ...]
    points: tuple[Point, ...]
    sessions: tuple[frozenset[str], ...]


Outcome = Literal["confirmed", "refuted", "open", "not measured"]
"""What a fresh measurement says of a proposal: it is so; the builds are equal within the floor, or differ the other
way; that is not decided; or there was none."""
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)


@dataclass(frozen=True)
class Settlement:
    """A proposal measured anew, the builds on both sides by turns.

    Attributes:
        baseline, contender: the builds that were measured: the last that is surely before the step, and the first
            that is surely after it.
        verdict: of fresh processes alone; None where nothing was measured. reason: why that is, or what is missing.
    """

    outcome: Outcome
    baseline: Build
    contender: Build
    verdict: Verdict | None = None
    reason: str = ""


@dataclass(frozen=True)
class Proposal:
    """A step in a history.

    Attributes:
        history, change: where it is.
        fate: see `Fate`. undone_by: the first build nearer to the level before, when it is undone.
        apart: no session measured both the build before and the one after.
        floor: smallest change that was asked for.
        settlement: what measuring anew said, where that was done.
    """

    history: History
    change: Change
    fate: Fate
    undone_by: Build | None
    apart: bool
    floor: float
    settlement: Settlement | None = None

    @property
    def before(self) -> Build:
        """The last measured build before the step."""
        return self.history.builds[self.change.index - 1]

    @property
    def after(self) -> Build:
        """The first build after it."""
        return self.history.builds[self.change.index]

    @property
    def earliest(self) -> Build:
        """The first build that the step may have come with."""
        return self.history.builds[self.change.earliest]

    @property
    def latest(self) -> Build:
        """The last one."""
        return self.history.builds[self.change.latest]

    @property
    def surely_before(self) -> Build:
        """The last build that is before the step wherever it is within its range."""
        return self.history.builds[self.change.earliest - 1]

    @property
    def slower(self) -> bool:
        """Whether the builds after are slower."""
        return self.change.ratio > 1


@dataclass(frozen=True)
class Step:
    """All that changed between the same two builds on a machine.

    Attributes:
        before, after: measured builds with nothing measured in between, as far as these cases go.
        unmeasured: builds of the channel in between that the ledger knows; the change may have come with any.
        same_commit: both builds were made of one commit, so that torch cannot be why.
        proposals: slower ones first, then the larger first.
    """

    machine: str
    environment: str
    before: Build
    after: Build
    unmeasured: tuple[Build, ...]
    same_commit: bool
    proposals: tuple[Proposal, ...]

    @property
    def cases(self) -> int:
        """How many cases it hits, by whatever clock."""
        return len({proposal.history.whose.case for proposal in self.proposals})


@dataclass(frozen=True)
class Changes:
    """What the histories of a folder of results show.

    Attributes:
        steps: newest first. histories: how many were searched. short: how many have too few builds for that.
        builds: measured builds, from old to new. problems: lines of the results that could not be read.
        alpha: of those that were confirmed, the share that is false on average, at most.
    """

    steps: tuple[Step, ...]
    histories: int
    short: int
    builds: tuple[Build, ...]
    problems: tuple[str, ...] = ()
    alpha: float = 0.01

    @property
    def settled(self) -> bool:
        """Whether proposals were measured anew."""
        return any(proposal.settlement for proposal in self.proposals)

    @cached_property
    def proposals(self) -> tuple[Proposal, ...]:
        """Of all steps, in their order."""
        return tuple(proposal for step in self.steps for proposal in step.proposals)


def read_histories(
    results: Path,
    ledger: Ledger,
    *,
    machines: Iterable[str] | None = None,
    builds: Iterable[str] | None = None,
    device: str | None = None,
    bench: Sequence[str] = (),
    clocks: Sequence[str] = DEFAULT_CLOCKS,
    problems: list[str] | None = None,
) -> list[History]:
    """The histories that a folder of results holds.

    Builds that the ledger lacks are known by what their ids tell, while it lives.

    Args:
        machines, builds, device, bench, clocks: only these; builds by id, `bench` as regular expressions.
        problems: where lines that could not be read are named.

    Raises:
        re.error: an expression of `bench` is not one.
    """
    wanted = None if builds is None else set(builds)
    chosen = _chosen(device, bench)
    found: dict[Whose, dict[str, tuple[Point, frozenset[str]]]] = {}
    places = None if machines is None else list(machines)
    for stored in read_each(results, machines=places, clocks=clocks):
        if problems is not None:
            problems += stored.problems
        for key, trial in stored.trials.items():
            failure = stored.failures.get((key.machine, key.build, key.environment, key.case))
            if (failure and failure.kind in WITHHELD) or not chosen(key.case):
                continue
            if wanted is not None and key.build not in wanted:
                continue
            build = ledger[key.build] if key.build in ledger else ledger.add(from_id(key.build))
            if not all(map(is_time, trial.processes)):
                if problems is not None:
                    what = f"{key.case} by the {key.clock} clock on {key.machine} with torch {build.version}"
                    problems.append(f"{what}: a sample is not a positive number of seconds, left out")
                continue
            whose = Whose(key.machine, key.environment, key.case, key.clock, build.channel)
            point = Point(tuple(process.median_seconds for process in trial.processes))
            found.setdefault(whose, {})[key.build] = (point, frozenset(trial.sessions))
    place = {build.id: at for at, build in enumerate(ledger.ordered())}
    histories = []
    for whose in sorted(found, key=lambda w: (w.machine, w.environment, w.channel, str(w.case), w.clock)):
        ordered = sorted(found[whose], key=place.__getitem__)
        points = [found[whose][build] for build in ordered]
        histories.append(
            History(
                whose,
                tuple(ledger[build] for build in ordered),
                tuple(point for point, _ in points),
                tuple(sessions for _, sessions in points),
            )
        )
    return histories


def propose(
    histories: Sequence[History],
    ledger: Ledger,
    floor: Callable[[str, str], float] = lambda machine, device: DEFAULT_FLOOR,
    problems: Sequence[str] = (),
) -> Changes:
    """Look for changes in all histories, and put those between the same builds together.

    Args:
        floor: (machine, device) → smallest relative change worth proposing: the tolerance there.
    """
    ordered = ledger.ordered()
    groups: dict[tuple[str, str, str, str], list[Proposal]] = {}
    for history in histories:
        whose = history.whose
        least = floor(whose.machine, whose.case.device)
        changes = find_changes(history.points, floor=least)
        for at in range(len(changes)):
            proposal = _proposal(history, changes, at, least)
            where = (whose.machine, whose.environment, proposal.before.id, proposal.after.id)
            groups.setdefault(where, []).append(proposal)
    place = {build.id: at for at, build in enumerate(ordered)}
    steps = [_step(group, ordered, place) for group in groups.values()]
    steps.sort(key=lambda s: (-place[s.after.id], -place[s.before.id], s.machine, s.environment))
    measured = {build.id for history in histories for build in history.builds}
    return Changes(
        steps=tuple(steps),
        histories=len(histories),
        short=sum(len(history.points) < FEWEST for history in histories),
        builds=tuple(build for build in ordered if build.id in measured),
        problems=tuple(problems),
    )


def _proposal(history: History, changes: Sequence[Change], at: int, floor: float) -> Proposal:
    change = changes[at]
    undone_by = None
    middle = (change.before.seconds * change.after.seconds) ** 0.5
    for later in changes[at + 1 :]:
        if (later.after.seconds > middle) != (change.ratio > 1):
            undone_by = undone_by or history.builds[later.index]
        else:
            undone_by = None  # it came back
    before, after = history.sessions[change.index - 1], history.sessions[change.index]
    return Proposal(
        history=history,
        change=change,
        fate="undone" if undone_by else "present",
        undone_by=undone_by,
        apart=not before & after,
        floor=floor,
    )


def _step(proposals: list[Proposal], ordered: Sequence[Build], place: Mapping[str, int]) -> Step:
    first = proposals[0]
    before, after = first.before, first.after
    between = ordered[place[before.id] + 1 : place[after.id]]
    proposals = sorted(proposals, key=lambda p: (not p.slower, -max(p.change.ratio, 1 / p.change.ratio)))
    return Step(
        machine=first.history.whose.machine,
        environment=first.history.whose.environment,
        before=before,
        after=after,
        unmeasured=tuple(build for build in between if build.channel == after.channel),
        same_commit=same_commit(before, after),
        proposals=tuple(proposals),
    )


def _chosen(device: str | None, bench: Sequence[str]) -> Callable[[Case], bool]:
    patterns = [re.compile(text) for text in bench]
    known: dict[Case, bool] = {}

    def chosen(case: Case) -> bool:
        if case not in known:
            names = (name_of(case), str(case))
            fits = not patterns or any(pattern.search(name) for pattern in patterns for name in names)
            known[case] = fits and device in (None, case.device)
        return known[case]

    return chosen
