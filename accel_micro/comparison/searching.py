"""`accel-micro compare --history`: changes over builds that are worth a measurement, from stored results."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from accel_micro.builds import Ledger
    from accel_micro.comparison.history import Changes


Format = Literal["table", "json", "markdown", "csv"]


class NothingMeasured(LookupError):
    """There are no results of what was asked for; the message says where was looked."""


@dataclass(frozen=True)
class HistoryRequest:
    """What the user asked for.

    Attributes:
        range: of builds, such as `20261101..20261127` or `nightly`; empty for all.
        machine, device, bench, clocks: only these; clocks: none stands for those that are compared.
        tolerance: smallest change to propose, else the machine's own.
        format: of the report. all: list every case in a table.
    """

    range: str = ""
    machine: str | None = None
    device: str | None = None
    bench: tuple[str, ...] = ()
    clocks: tuple[str, ...] = ()
    tolerance: float | None = None
    format: Format = "table"
    all: bool = False


def find(request: HistoryRequest, results: Path, ledger: "Ledger") -> "Changes":
    """The changes that stored results propose.

    Raises:
        NothingMeasured: no result fits the request.
        UnknownBuild: the range names none.
        re.error: an expression of `bench` is not one.
        ValueError: `tolerance` is not positive.
    """
    from accel_micro.builds.ranges import select
    from accel_micro.comparison.history import propose, read_histories
    from accel_micro.comparison.pairing import DEFAULT_CLOCKS
    from accel_micro.measure.process import CLOCKS

    problems: list[str] = []
    clocks = CLOCKS if "all" in request.clocks else request.clocks or DEFAULT_CLOCKS
    builds = [build.id for build in select(ledger, request.range)] if request.range else None
    histories = read_histories(
        results,
        ledger,
        machines=[request.machine] if request.machine else None,
        builds=builds,
        device=request.device,
        bench=request.bench,
        clocks=clocks,
        problems=problems,
    )
    if not histories:
        asked = ", ".join(filter(None, (request.range, request.machine, request.device, *request.bench)))
        found = f"no results of {asked}" if asked else "no results yet; run `accel-micro quick` or `asv run`"
        raise NothingMeasured(f"{results} holds {found}")
    floors: dict[tuple[str, str], float] = {}

    def floor(machine: str, device: str) -> float:
        if request.tolerance is not None:
            return request.tolerance
        if (machine, device) not in floors:
            floors[machine, device] = _tolerance(results, machine, device)
        return floors[machine, device]

    return propose(histories, ledger, floor, problems)


def _tolerance(results: Path, machine: str, device: str) -> float:
    from accel_micro.comparison.history import DEFAULT_FLOOR
    from accel_micro.results.calibrations import latest

    calibration = latest(results, machine, device)
    return max(DEFAULT_FLOOR, calibration.tolerance) if calibration else DEFAULT_FLOOR
