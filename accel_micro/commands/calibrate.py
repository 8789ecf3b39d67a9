"""`accel-micro calibrate`: a build against itself, many times over, to learn what this machine can show."""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from accel_micro.commands.calibrate_run import CLOCK, Run, Turn, run
from accel_micro.device_names import kind_of
from accel_micro.measure.records import Case, Record
from accel_micro.results.calibrations import CalibratedCase, Calibration, append

if TYPE_CHECKING:
    from accel_micro.commands.calibrate_cases import Definition

INTERRUPTED: Final = 130
NOTHING_TIMED: Final = 3
NOT_TRUSTED: Final = 4

ALPHA: Final = 0.01


class Bench(Protocol):
    """Where a calibration measures: the installed torch, through asv.

    Attributes:
        results: folder of results. devices: to calibrate, in order. torch_version: of the installed build.
    """

    @property
    def results(self) -> Path:
        """Folder of results."""

    @property
    def devices(self) -> Sequence[str]:
        """Those to calibrate, in order."""

    @property
    def torch_version(self) -> str:
        """Of the installed build."""

    def definitions(self, device: str) -> "Sequence[Definition]":
        """The ops of the suite, with what of them is run on that device."""

    def renew(self, lanes: Sequence[int]) -> None:
        """Let the next processes come from fresh servers, one a lane."""

    def measure(self, case: Case, lane: int) -> Record:
        """One fresh process; its record is saved."""


@dataclass(frozen=True)
class Request:
    """What the user asked for.

    Attributes:
        devices: none stands for the CPU and every accelerator that is here.
        minutes: for each device; None where `processes` alone ends a run.
        most_minutes: for each device, where `minutes` are too short to tell.
        processes: of a case at most. config, out: as `quick.Request`.
    """

    devices: tuple[str, ...] = ()
    minutes: float | None = 5.0
    most_minutes: float | None = 15.0
    processes: int | None = None
    config: Path | None = None
    out: Path | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of a device.

    Attributes:
        calibration: None when no case has a time. run: what was measured. stored: it holds from now on.
    """

    device: str
    calibration: Calibration | None
    run: Run
    stored: bool


def calibrate(
    request: Request,
    bench: Bench,
    *,
    tell: Callable[[Turn], None] | None = None,
    ended: Callable[[Record], None] | None = None,
    now: Callable[[], float] = time.monotonic,
) -> list[Outcome]:
    """Calibrate device after device, and store what holds: a run too short to tell replaces nothing.

    Ctrl-C ends it; what was measured until then is calibrated from.
    """
    from accel_micro.commands.calibrate_cases import MOST, how_many, spread
    from accel_micro.stats.calibration import FEWEST_COMPARISONS

    outcomes = []
    seconds = None if request.minutes is None else 60 * request.minutes
    for device in bench.devices:
        measured = run(
            spread(bench.definitions(device), device),
            bench.measure,
            cases=MOST if seconds is None else how_many(seconds),
            seconds=seconds,
            processes=request.processes,
            most_seconds=None if request.most_minutes is None else 60 * request.most_minutes,
            comparisons=FEWEST_COMPARISONS,
            tell=tell,
            ended=ended,
            renew=bench.renew,
            now=now,
        )
        calibration = calibration_of(measured, bench.torch_version) if measured.cases else None
        enough = calibration is not None and calibration.comparisons >= FEWEST_COMPARISONS
        if calibration is not None and enough:
            append(bench.results, calibration)
        outcomes.append(Outcome(device, calibration, measured, enough))
        if measured.stopped == "interrupted":
            break
    return outcomes


@contextmanager
def bench(request: Request) -> Iterator[Bench]:
    """The installed torch, through asv.

    Raises:
        SessionError: nothing can be run; the message is one sentence.
    """
    from accel_micro.asv_plugin.interleaving import SessionError, interleaved
    from accel_micro.asv_plugin.opening import Where

    installed = Where()
    with interleaved(
        request.config,
        places=[installed],
        devices=request.devices,
        clocks=(CLOCK,),
        results=None if request.out is None else request.out / "results",
    ) as measure:
        devices = measure.devices(installed)
        for name in request.devices:
            if kind_of(name) not in devices:
                raise SessionError(
                    f"{name} is not to be had here; there is {', '.join(devices)}", NOTHING_TIMED
                )
        yield _Installed(
            results=measure.results,
            devices=devices,
            torch_version=measure.version(installed),
            facts=measure.facts,
            measure=partial(measure, installed),
            renew=partial(measure.renew, [installed]),
        )


@dataclass(frozen=True)
class _Installed:
    results: Path
    devices: Sequence[str]
    torch_version: str
    facts: Sequence[Mapping[str, Any]]
    measure: Callable[[Case, int], Record]
    renew: Callable[[Sequence[int]], None]

    def definitions(self, device: str) -> "Sequence[Definition]":
        from accel_micro.commands.calibrate_cases import definitions

        return definitions(self.facts, device)


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """130: interrupted. 3: a device has no time at all. 4: one cannot be trusted, or that cannot be told. Else 0."""
    if any(outcome.run.stopped == "interrupted" for outcome in outcomes):
        return INTERRUPTED
    if not outcomes or any(outcome.calibration is None for outcome in outcomes):
        return NOTHING_TIMED
    trusted = all(outcome.calibration is not None and outcome.calibration.blessed for outcome in outcomes)
    return 0 if trusted else NOT_TRUSTED


def calibration_of(measured: Run, torch_version: str, alpha: float = ALPHA) -> Calibration:
    """The calibration of a device from its run.

    Raises:
        ValueError: nothing was measured.
    """
    from accel_micro.measure.gate import FULL_SPEED
    from accel_micro.stats import judge
    from accel_micro.stats.calibration import CaseRun, find

    runs = [
        CaseRun(
            processes=tuple(tuple(record.clocks[CLOCK].samples) for record in each.records),
            times=tuple(each.times),
            seconds_a_process=statistics.median(each.seconds),
        )
        for each in measured.cases
    ]
    found = find(runs, partial(judge, alpha=alpha, turns=True), alpha)
    records = [record for each in measured.cases for record in each.records]
    speeds = [speed for record in records for speed in record.clocks[CLOCK].speeds]
    flags = Counter(name for record in records for name in {flag.name for flag in record.clocks[CLOCK].flags})
    alarms, drift, first = found.alarms, found.drift, records[0]
    return Calibration(
        machine=first.machine,
        device=first.case.device,
        torch_version=torch_version,
        started=min(record.started for record in records),
        seconds=measured.seconds,
        processes=len(records),
        cases=tuple(
            CalibratedCase(
                case=str(each.case),
                processes=case.processes,
                seconds=case.seconds,
                seconds_a_process=case.seconds_a_process,
                spread=_known(case.spread),
                others=case.others,
                slowdown=case.slowdown,
                difference=_known(case.difference),
                p_value=case.verdict.p_value,
            )
            for each, case in zip(measured.cases, found.cases, strict=True)
        ),
        tolerance=found.tolerance,
        blessed=found.blessed,
        why_not=found.why_not,
        alpha=alpha,
        comparisons=alarms.comparisons,
        side=found.side,
        alarms=alarms.alarms,
        false_positive_rate=_known(alarms.rate),
        false_positive_low=alarms.low,
        false_positive_high=alarms.high,
        findable_rate=alarms.findable,
        difference=_known(found.difference),
        worst_difference=_known(found.worst_difference),
        spread=_known(found.spread),
        worst_spread=_known(found.worst_spread),
        drift=drift.an_hour if drift else None,
        drift_low=drift.low if drift else None,
        drift_high=drift.high if drift else None,
        halves=found.halves,
        modes=found.others,
        slowdown=found.slowdown,
        below_full_speed=sum(speed < FULL_SPEED for speed in speeds) / len(speeds) if speeds else None,
        flags=dict(sorted(flags.items(), key=lambda each: (-each[1], each[0]))),
        detectable=found.detectable,
        build=first.build,
        session=first.session,
    )


def _known(value: float) -> float | None:
    """JSON has no NaN."""
    return value if value == value else None
