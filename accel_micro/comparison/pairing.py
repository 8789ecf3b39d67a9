"""Trials of two sides to pairs that can be compared, and what could not be, with the reason.

A pair is a case and a clock that both sides read. Processes are pooled within one environment only. Those of
sessions that both sides were part of are preferred: they ran under the same conditions, or nearly so.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal, NamedTuple

from accel_micro.comparison.sides import Kind, Scope
from accel_micro.measure.records import Case
from accel_micro.results import Key, Measured, Stored, Trial
from accel_micro.results.trials import WITHHELD

DEFAULT_CLOCKS: Final = ("throughput", "dispatch", "device")
"""Clocks that are compared unless others are asked for. Latency holds what throughput holds, and a wait."""

FEWEST_SHARED: Final = 3
"""Processes a side in sessions of both from which on those alone are compared."""

Conditions = Literal["interleaved", "in turn", "apart"]
"""How two sides were measured: processes of one session whose times overlap, of one session one side after the
other, or of separate sessions."""

Which = Literal["baseline", "contender", "both"]
_WHICH: Final[tuple[Which, Which]] = ("baseline", "contender")


@dataclass(frozen=True)
class Pair:
    """A case by one clock on both sides, each with the processes that are compared."""

    baseline: Trial
    contender: Trial
    conditions: Conditions

    @property
    def case(self) -> Case:
        """That of the contender; the baseline's differs from it in what is compared only."""
        return self.contender.key.case

    @property
    def clock(self) -> str:
        """The same on both sides."""
        return self.contender.key.clock

    @property
    def turns(self) -> bool:
        """Whether the processes of both sides ran by turns in one session: they are then compared turn by turn too."""
        sides = self.baseline, self.contender
        return (
            self.conditions == "interleaved"
            and len(self.baseline.processes) == len(self.contender.processes)
            and len({session for trial in sides for session in trial.sessions}) == 1
        )

    @property
    def can_tell(self) -> bool:
        """Whether both sides have the processes that a verdict needs."""
        return min(len(self.baseline.processes), len(self.contender.processes)) >= FEWEST_SHARED


@dataclass(frozen=True)
class Uncompared:
    """Cases that were not compared for one reason, or not by one of the clocks.

    Attributes:
        reason: such as `wrong result`, `not measured` or `skipped`.
        side: whose reason it is.
        cases: as they are named there.
        detail: that of the first of them: an error, or why it is skipped.
        clock: set when other clocks of these cases were compared.
    """

    reason: str
    side: Which
    cases: tuple[Case, ...]
    detail: str = ""
    clock: str = ""


@dataclass(frozen=True)
class Paired:
    """What there is to compare.

    Attributes:
        environments: whose processes are compared, baseline first; empty when a side has none.
        others: for each side the environments that are left out, with their processes.
        failed_once: cases that are compared although the last process of a side left no time.
    """

    pairs: tuple[Pair, ...]
    uncompared: tuple[Uncompared, ...]
    environments: tuple[str, str]
    others: tuple[Mapping[str, int], Mapping[str, int]]
    failed_once: int = 0


class _Subject(NamedTuple):
    """A case without what is compared: what is the same on both sides."""

    op: str
    direction: str
    device: str
    dtype: str
    shape: str


class _Status(NamedTuple):
    """Why a side has no time of a case; the larger rank is told when both sides have none."""

    rank: int
    reason: str
    detail: str = ""


_NOT_MEASURED: Final = _Status(1, "not measured")


@dataclass
class _Half:
    """One side's part of the results."""

    trials: dict[tuple[_Subject, str], Trial]
    reasons: dict[_Subject, _Status]
    cases: dict[_Subject, Case]


def name_of(case: Case) -> str:
    """A case as asv names it: `matmul.mm.time_forward('cpu', 'float32', 'm=64 k=64 n=64')`."""
    return case.named()


def pair_up(stored: Stored, kind: Kind, scope: Scope, clocks: Sequence[str] = DEFAULT_CLOCKS) -> Paired:
    """Pair the trials of two sides.

    Args:
        kind: what the sides differ in.

    Raises:
        re.error: an expression of the scope's `bench` is not one.
    """
    chosen = _chosen(scope.bench)
    counts = [_environments(stored, scope, side, chosen) for side in (0, 1)]
    environments = _common(counts)
    halves = [_half(stored, kind, scope, side, environments[side], clocks, chosen) for side in (0, 1)]
    pairs: list[Pair] = []
    groups: dict[tuple[str, Which, str], list[tuple[Case, str]]] = {}
    failed_once = 0
    for subject in dict.fromkeys((*halves[0].cases, *halves[1].cases)):
        statuses = [half.reasons.get(subject) for half in halves]
        both = [clock for clock in clocks if all((subject, clock) in half.trials for half in halves)]
        if not both or any(status and status.rank >= _WITHHELD_RANK for status in statuses):
            which, status = _why(halves, subject, clocks)
            case = halves[1 if which == "contender" else 0].cases.get(subject) or _any_case(halves, subject)
            groups.setdefault((status.reason, which, ""), []).append((case, status.detail))
            continue
        failed_once += any(statuses)
        for clock in clocks:
            read = [half.trials.get((subject, clock)) for half in halves]
            if read[0] is not None and read[1] is not None:
                pairs.append(_pair(read[0], read[1]))
            elif kind != "device" and (read[0] or read[1]):  # devices have clocks of their own
                lacks: Which = _WHICH[0 if read[0] is None else 1]
                case = halves[1].cases.get(subject) or _any_case(halves, subject)
                groups.setdefault(("clock not read", lacks, clock), []).append((case, ""))
    uncompared = [
        Uncompared(reason, side, tuple(case for case, _ in found), found[0][1], clock)
        for (reason, side, clock), found in groups.items()
    ]
    uncompared.sort(key=lambda group: (bool(group.clock), -len(group.cases)))
    left = [{env: n for env, n in counts[i].items() if env != environments[i]} for i in (0, 1)]
    return Paired(tuple(pairs), tuple(uncompared), environments, (left[0], left[1]), failed_once)


_WITHHELD_RANK: Final = 4


def _chosen(bench: Iterable[str]) -> Callable[[Case], bool]:
    patterns = [re.compile(text) for text in bench]
    if not patterns:
        return lambda case: True

    @cache
    def chosen(case: Case) -> bool:
        names = (name_of(case), str(case))
        return any(pattern.search(name) for pattern in patterns for name in names)

    return chosen


def _belongs(key: Key | tuple[str, str, str, Case], scope: Scope, side: int) -> bool:
    case = key[3]
    return (
        key[0] == scope.machines[side]
        and key[1] == scope.builds[side]
        and scope.devices[side] in (None, case.device)
        and scope.dtypes[side] in (None, case.dtype)
    )


def _environments(stored: Stored, scope: Scope, side: int, chosen: Callable[[Case], bool]) -> dict[str, int]:
    """Environments that a side was measured in → processes with a time, over its cases and clocks."""
    counts: Counter[str] = Counter()
    for key, trial in stored.trials.items():
        if _belongs(key, scope, side) and chosen(key.case):
            counts[key.environment] += len(trial.processes)
    for where in (*stored.failures, *stored.skipped):
        if _belongs(where, scope, side) and chosen(where[3]):
            counts[where[2]] += 0
    return dict(counts)


def _common(counts: Sequence[Mapping[str, int]]) -> tuple[str, str]:
    """One environment of each side: the same for both where there is one, else that with most processes."""
    shared = [env for env in counts[0] if counts[0][env] and counts[1].get(env)]
    if shared:
        best = max(shared, key=lambda env: (min(counts[0][env], counts[1][env]), env))
        return best, best
    first, second = (max(side, key=lambda env: (side[env], env), default="") for side in counts)
    return first, second


def _half(
    stored: Stored,
    kind: Kind,
    scope: Scope,
    side: int,
    environment: str,
    clocks: Sequence[str],
    chosen: Callable[[Case], bool],
) -> _Half:
    half = _Half({}, {}, {})

    def subject_of(key: Key | tuple[str, str, str, Case]) -> _Subject | None:
        case = key[3]
        if key[2] != environment or not _belongs(key, scope, side) or not chosen(case):
            return None
        subject = _Subject(
            case.op,
            case.direction,
            "" if kind == "device" else case.device,
            "" if kind == "dtype" else case.dtype,
            case.shape,
        )
        half.cases.setdefault(subject, case)
        return subject

    for key, trial in stored.trials.items():
        if key.clock not in clocks or (subject := subject_of(key)) is None:
            continue
        if all(map(is_time, trial.processes)):
            half.trials[subject, key.clock] = trial
        else:
            detail = f"{key.clock}: a sample is not a positive number of seconds"
            half.reasons[subject] = _Status(_WITHHELD_RANK, "implausible", detail)
    for where, failure in stored.failures.items():
        if (subject := subject_of(where)) is not None:
            rank = _WITHHELD_RANK if failure.kind in WITHHELD else 3
            half.reasons[subject] = max(
                _Status(rank, failure.kind, failure.detail), half.reasons.get(subject, _NOT_MEASURED)
            )
    for where, why in stored.skipped.items():
        if (subject := subject_of(where)) is not None and subject not in half.reasons:
            half.reasons[subject] = _Status(2, "skipped", why)
    return half


def is_time(process: Measured) -> bool:
    """Whether it has samples, and all of them are positive numbers of seconds: a record may be anybody's."""
    return bool(process.samples) and min(process.samples) > 0 and max(process.samples) < math.inf


def _why(halves: Sequence[_Half], subject: _Subject, clocks: Sequence[str]) -> tuple[Which, _Status]:
    """The side to blame for a case that is not compared, and why."""
    timed = [any((subject, clock) in half.trials for clock in clocks) for half in halves]
    statuses = [
        half.reasons.get(subject) or (_Status(0, "no clock in common") if has else _NOT_MEASURED)
        for half, has in zip(halves, timed, strict=True)
    ]
    # A side with times is to blame only when they are withheld.
    ranks = [
        status.rank if not has or status.rank >= _WITHHELD_RANK else 0
        for status, has in zip(statuses, timed, strict=True)
    ]
    if ranks == [0, 0]:
        return "both", _Status(0, "no clock in common")
    if ranks[0] == ranks[1] and statuses[0].reason == statuses[1].reason:
        return "both", statuses[0]
    worse = 0 if ranks[0] > ranks[1] else 1
    return _WHICH[worse], statuses[worse]


def _any_case(halves: Sequence[_Half], subject: _Subject) -> Case:
    return next(half.cases[subject] for half in halves if subject in half.cases)


def _pair(baseline: Trial, contender: Trial) -> Pair:
    common = set(baseline.sessions) & set(contender.sessions)
    if common:
        inside = [_within(trial, common) for trial in (baseline, contender)]
        whole = all(a is b for a, b in zip(inside, (baseline, contender), strict=True))
        if whole or min(len(trial.processes) for trial in inside) >= FEWEST_SHARED:
            return Pair(inside[0], inside[1], "interleaved" if _overlap(*inside) else "in turn")
    return Pair(baseline, contender, "apart")


def _within(trial: Trial, sessions: set[str]) -> Trial:
    kept = tuple(process for process in trial.processes if process.session in sessions)
    return trial if len(kept) == len(trial.processes) else replace(trial, processes=kept)


def _overlap(baseline: Trial, contender: Trial) -> bool:
    """Whether neither side had ended before the other began. Processes are in the order of their start."""
    first, second = baseline.processes, contender.processes
    return first[0].started < second[-1].started and second[0].started < first[-1].started
