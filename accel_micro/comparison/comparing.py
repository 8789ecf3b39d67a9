"""`accel-micro compare`: two builds, devices, dtypes or machines, judged from stored results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from accel_micro.shell import joined

if TYPE_CHECKING:
    from accel_micro.builds import Build, Ledger
    from accel_micro.comparison.compared import Compared, Comparison, Tolerance
    from accel_micro.comparison.sides import Scope

REGRESSION: Final = 1
NOTHING_COMPARED: Final = 3
INCONCLUSIVE: Final = 4

DEFAULT_TOLERANCE: Final = 0.02
"""Of a machine that was never calibrated."""

ALL_CLOCKS: Final = "all"

Measure = Callable[["Comparison", "Sequence[Compared]"], "Sequence[Compared]"]
"""Takes the comparison and its undecided rows; gives these rows with more processes and new verdicts."""


@dataclass(frozen=True)
class Request:
    """What the user asked for.

    Attributes:
        baseline, contender: names, see `comparison.sides`.
        machine, build, device, bench, clocks: what is compared, as far as it is not what the sides differ in;
            clocks: none stands for `pairing.DEFAULT_CLOCKS`, `all` for all.
        alpha: share of false ones among what is called different.
        tolerance: relative difference that does not matter, else the machine's own.
        config, out: where the results are, for `next_command`.
    """

    baseline: str
    contender: str
    machine: str | None = None
    build: str | None = None
    device: str | None = None
    bench: tuple[str, ...] = ()
    clocks: tuple[str, ...] = ()
    alpha: float = 0.01
    tolerance: float | None = None
    config: Path | None = None
    out: Path | None = None


def compare(
    request: Request, results: Path, ledger: "Ledger", *, measure: Measure | None = None
) -> "Comparison":
    """Compare what is stored, and with `measure` what it adds to the undecided rows.

    Raises:
        WrongSides, AmbiguousBuild: the names or options mean nothing that can be compared.
        NotMeasured: there are no results of it.
        TorchNotInstalled: a side is the installed torch, and there is none.
        re.error: an expression of `bench` is not one.
        ValueError: `alpha` or `tolerance` is out of range.
    """
    from accel_micro.comparison import compared
    from accel_micro.comparison.differences import find_differences
    from accel_micro.comparison.inventory import look
    from accel_micro.comparison.pairing import pair_up
    from accel_micro.comparison.sides import NotMeasured, find_scope, find_sides
    from accel_micro.results import read_results

    inventory = look(results, ledger)
    if not inventory.measured:
        raise NotMeasured(f"{results} holds no results yet; run `accel-micro quick` or `asv run`")
    sides = find_sides(
        request.baseline, request.contender, inventory, machine=request.machine, head=_installed
    )
    scope = find_scope(
        sides,
        inventory,
        machine=request.machine,
        build=request.build,
        device=request.device,
        bench=request.bench,
        head=_installed,
    )
    clocks = _clocks(request)
    stored = read_results(results, machines=set(scope.machines), builds=set(scope.builds))
    paired = pair_up(stored, sides[0].kind, scope, clocks)
    tolerances = _tolerances(request, results, scope, paired.pairs)
    rows = compared.judge_pairs(
        paired.pairs, request.alpha, {t.device: t.value for t in tolerances}, tolerances[0].value
    )
    comparison = compared.Comparison(
        sides=sides,
        scope=scope,
        builds=tuple(f"torch {ledger[one].version}" for one in scope.builds),  # type: ignore[arg-type]
        paired=paired,
        rows=rows,
        differences=find_differences(paired.pairs, sides[0].kind, results, paired.environments),
        cautions=compared.cautions(sides[0].kind, paired, sides),
        tolerances=tolerances,
        alpha=request.alpha,
        problems=tuple(stored.problems),
    )
    if measure is not None and comparison.undecided:
        decided = [row for row in comparison.rows if row.verdict.decided]
        fresh = measure(comparison, comparison.undecided)
        rows = compared.ordered([*decided, *fresh])
        paired = replace(paired, pairs=tuple(row.pair for row in rows))
        comparison = replace(
            comparison,
            rows=rows,
            paired=paired,
            cautions=compared.cautions(sides[0].kind, paired, sides),
        )
    return comparison


def exit_code(comparison: "Comparison", fail_on_regression: bool) -> int:
    """3: nothing could be compared. Where a regression shall fail: 1 when there is one, 4 when all rows are
    inconclusive. Else 0.
    """
    if not comparison.rows:
        return NOTHING_COMPARED
    if fail_on_regression and comparison.counts["regression"]:
        return REGRESSION
    if fail_on_regression and comparison.counts["inconclusive"] == len(comparison.rows):
        return INCONCLUSIVE
    return 0


def next_command(request: Request, comparison: "Comparison") -> str:
    """The command that measures the undecided rows; empty where there are none or they cannot be measured here."""
    if not comparison.undecided or comparison.kind == "machine":
        return ""
    words = ["accel-micro", "compare", request.baseline, request.contender]
    for option in ("machine", "build", "device"):
        if value := getattr(request, option):
            words += [f"--{option}", value]
    for pattern in request.bench:
        words += ["--bench", pattern]
    for clock in request.clocks:
        words += ["--clock", clock]
    if request.tolerance is not None:
        words += ["--tolerance", f"{request.tolerance:g}"]
    if request.alpha != Request.alpha:
        words += ["--alpha", f"{request.alpha:g}"]
    for option in ("config", "out"):
        if value := getattr(request, option):
            words += [f"--{option}", str(value)]
    return joined([*words, "--measure"])


def _installed() -> "Build":
    from accel_micro.builds import installed_torch

    return installed_torch().build


def _clocks(request: Request) -> tuple[str, ...]:
    from accel_micro.comparison.pairing import DEFAULT_CLOCKS
    from accel_micro.measure.process import CLOCKS

    if ALL_CLOCKS in request.clocks:
        return CLOCKS
    return request.clocks or DEFAULT_CLOCKS


def _tolerances(
    request: Request, results: Path, scope: "Scope", pairs: "Sequence[object]"
) -> "tuple[Tolerance, ...]":
    """The tolerance of each device that is compared; the larger one of two machines."""
    from accel_micro.comparison.compared import Tolerance
    from accel_micro.comparison.pairing import Pair

    if request.tolerance is not None:
        return (Tolerance(request.tolerance),)
    devices = dict.fromkeys(
        trial.key.case.device
        for pair in pairs
        if isinstance(pair, Pair)
        for trial in (pair.baseline, pair.contender)
    )
    found = []
    for device in devices:
        each = [calibrated(results, machine, device) for machine in dict.fromkeys(scope.machines)]
        found.append(max(each, key=lambda tolerance: tolerance.value))
    return tuple(found) or (Tolerance(DEFAULT_TOLERANCE),)


def calibrated(results: Path, machine: str, device: str) -> "Tolerance":
    """The tolerance of a device of a machine, by its last calibration."""
    from accel_micro.comparison.compared import Tolerance
    from accel_micro.results.calibrations import latest

    calibration = latest(results, machine, device)
    if calibration is None:
        note = "not calibrated: `accel-micro calibrate` finds out what this machine can tell apart"
        return Tolerance(DEFAULT_TOLERANCE, device, note, machine)
    value = max(DEFAULT_TOLERANCE, calibration.tolerance)
    if calibration.blessed:
        return Tolerance(value, device, "", machine)
    note = f"its calibration does not vouch for this machine: {calibration.why_not}"
    return Tolerance(value, device, note, machine)
