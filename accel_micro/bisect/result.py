"""What comes out of a search, and how far it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, get_args

from accel_micro.bisect.ratio import Ratio

Build = TypeVar("Build")
Event: TypeAlias = Mapping[str, Any]

Kind = Literal["culprit", "not_reproduced", "undecided", "no_usable_build"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
Stage = Literal["gate", "search", "certificate", "done"]


@dataclass(frozen=True)
class Step(Generic[Build]):
    """A change that fresh processes of two builds confirmed.

    Attributes:
        good, bad: the last build before it and the first one with it, of those that work.
        suspects: the builds that may have brought it: those after `good` up to `bad`, broken ones included.
        ratio: bad ÷ good.
    """

    good: Build
    bad: Build
    suspects: tuple[Build, ...]
    ratio: Ratio


@dataclass(frozen=True)
class Result(Generic[Build]):
    """The answer of a search, or where it stands.

    Attributes:
        kind: `culprit` (at least one change was found and confirmed), `not_reproduced` (the ends were not shown to
            differ), `undecided` (they differ, but no pair was confirmed within `max_runs`), or `no_usable_build`
            (fewer than two builds work).
        steps: the confirmed changes in the order in which they were found; empty unless `culprit`.
        suspects: builds that may have brought the change: of the first step; while it is undecided all those between
            the last that is taken for good and the first that is taken for bad, broken ones included.
        ratio: of the first step; without one, of the ends.
        ends: of the last to the first build that works.
        unexplained: the ends differ by more than the steps that were found.
        error_rate: how often a search may name a pair that does not differ.
        runs: processes so far, failed ones included.
        broken: builds that do not work.
        finished: there is nothing left to measure, or `max_runs` do not suffice for another block.
        log: what `replay` needs to go on.
    """

    kind: Kind
    steps: tuple[Step[Build], ...]
    suspects: tuple[Build, ...]
    ratio: Ratio
    ends: Ratio
    unexplained: bool
    error_rate: float
    runs: int
    broken: tuple[Build, ...]
    finished: bool
    log: tuple[Event, ...]

    @property
    def culprit(self) -> tuple[Build, Build] | None:
        """The last good and the first bad build of the first step."""
        return (self.steps[0].good, self.steps[0].bad) if self.steps else None


@dataclass(frozen=True)
class Progress(Generic[Build]):
    """How far a search is.

    Attributes:
        stage: what the next block is for.
        runs: processes so far. runs_to_go: about how many more; 0 when done, and never beyond what is allowed.
        first_bad: for each build how likely it is the one that brought the change that is being searched.
        suspects: the shortest range of builds that holds it with a probability of 95 %.
    """

    stage: Stage
    runs: int
    runs_to_go: int
    first_bad: tuple[float, ...]
    suspects: tuple[Build, ...]


@dataclass(frozen=True)
class Block(Generic[Build]):
    """Builds to run one after the other on one machine, each in a fresh process, in this order.

    Attributes:
        number: by which its values are recorded.
        builds: most of them more than once or only once; the order was drawn at random and matters.
    """

    number: int
    builds: tuple[Build, ...]
