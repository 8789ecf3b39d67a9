"""Calibrations: what a machine was found to be able to show. One file a machine, one JSON line a calibration.

Lines are only ever added; the last of a device holds.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from accel_micro.measure.records import append_line

FILE_NAME: Final = "calibrations.jsonl"
"""Beside the results of its machine."""

SCHEMA: Final = 1


@dataclass(frozen=True)
class CalibratedCase:
    """What one case showed.

    Attributes:
        case: in words.
        processes: how many. seconds: seconds per call. seconds_a_process: what one process takes in all.
        spread: standard deviation of the log process medians in the main speed mode; None from one process.
        others: processes in another speed mode. slowdown: how many times slower these were.
        difference: |ratio − 1| which 95 % of comparisons with itself stay below; None when there was none.
        p_value: of all its A processes against all B.
    """

    case: str
    processes: int
    seconds: float
    seconds_a_process: float
    spread: float | None
    others: int
    slowdown: float
    difference: float | None
    p_value: float


@dataclass(frozen=True)
class Calibration:
    """What a device of a machine was found to be able to show. Changes are relative: 0.02 is 2 %.

    Attributes:
        machine, device, torch_version: of what. build: id of the torch build. session: its run's.
        started: ISO 8601 in UTC. seconds: how long it took.
        processes: that were measured. cases: what each case showed.
        tolerance: smallest difference that comparisons here shall call one: the larger of 2 % and `difference`.
        blessed: p-values can be trusted here. why_not: a sentence when they cannot, else empty.
        alpha: the level that was promised.
        comparisons: of the build with itself, with `side` processes a side. alarms: those with a p-value below alpha.
        false_positive_rate: at alpha, from the spread of all p-values, with its interval; None without comparisons.
        findable_rate: the smallest rate that would have been found to exceed alpha, four times in five.
        difference: |ratio − 1| which 95 % of comparisons with ten processes a side stay below. worst_difference:
            that of the worst case.
        spread, worst_spread: standard deviation of the log process medians: median and largest of the cases.
        drift, drift_low, drift_high: change an hour, with its 95 % interval; None from too few processes.
        halves: cases whose first half differed significantly from the second, though nothing changed.
        modes: share of processes in another speed mode than most. slowdown: how many times slower these were.
        below_full_speed: share of the samples during which the machine ran below full speed.
        flags: name → processes that have it.
        detectable: minutes → smallest change of a typical case that is found in that time, four times in five.
    """

    machine: str
    device: str
    torch_version: str
    started: str
    processes: int
    cases: tuple[CalibratedCase, ...]
    tolerance: float
    blessed: bool
    why_not: str
    alpha: float
    comparisons: int
    side: int
    alarms: int
    false_positive_rate: float | None
    false_positive_low: float
    false_positive_high: float
    findable_rate: float
    difference: float | None
    worst_difference: float | None
    spread: float | None
    worst_spread: float | None
    drift: float | None
    drift_low: float | None
    drift_high: float | None
    halves: int
    modes: float
    slowdown: float
    below_full_speed: float | None
    flags: dict[str, int] = field(default_factory=dict)
    detectable: dict[int, float | None] = field(default_factory=dict)
    seconds: float = 0.0
    build: str = ""
    session: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < math.inf:
            raise ValueError(f"a tolerance of {self.tolerance!r}")

    def to_json(self) -> dict[str, Any]:
        """Plain data with the schema's number."""
        return {"schema": SCHEMA, **msgspec.to_builtins(self, str_keys=True)}


def append(results: Path, calibration: Calibration) -> None:
    """Add it to the file of its machine.

    Raises:
        OSError: the file cannot be written.
        ValueError: the machine's name is no name of a folder.
    """
    append_line(_path(results, calibration.machine), calibration.to_json())


def read(results: Path, machine: str, problems: list[str] | None = None) -> Iterator[Calibration]:
    """The calibrations of a machine, from old to new; a missing file has none.

    Args:
        problems: where lines that are none are named, when given; they are skipped.

    Raises:
        OSError: the file is there and cannot be read.
        ValueError: the machine's name is no name of a folder.
    """
    path = _path(results, machine)
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            calibration = _DECODER.decode(line)
            if calibration.schema != SCHEMA:
                raise ValueError(f"calibration of schema {calibration.schema}, this version reads {SCHEMA}")
            yield msgspec.json.decode(line, type=Calibration)
        except ValueError as error:  # of which msgspec's errors are
            if problems is not None:
                problems.append(f"{path}:{number}: not a calibration, skipped ({error})")


def latest(results: Path, machine: str, device: str, problems: list[str] | None = None) -> Calibration | None:
    """The last calibration of a device, or None: what holds there.

    Raises:
        As `read`.
    """
    found = None
    for calibration in read(results, machine, problems):
        if calibration.device == device:
            found = calibration
    return found


def machines(results: Path) -> list[str]:
    """Machines that have calibrations, by name."""
    return sorted(path.parent.name for path in results.glob(f"*/{FILE_NAME}"))


class _Schema(msgspec.Struct):
    schema: int


_DECODER: Final = msgspec.json.Decoder(_Schema)


def _path(results: Path, machine: str) -> Path:
    if not machine or machine in {".", ".."} or Path(machine).name != machine:
        raise ValueError(f"no name of a machine: {machine!r}")
    return results / machine / FILE_NAME
