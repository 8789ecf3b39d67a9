"""`accel-micro compare`: its options. Thin; imports happen when the command runs."""

from dataclasses import replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accel_micro.commands.common import (
    WRONG_USE,
    Config,
    Room,
    StoredResults,
    compiled,
    on_card,
    reported,
    say_error,
    stderr,
)
from accel_micro.commands.compare_measure import BUDGET_MINUTES, INTERRUPTED, Measuring
from accel_micro.comparison.searching import HistoryRequest

if TYPE_CHECKING:
    from accel_micro.report.progress import Listener


class Format(str, Enum):
    """How a comparison is written."""

    table = "table"
    json = "json"
    markdown = "markdown"
    csv = "csv"


class Clock(str, Enum):
    """One of the ways to time a call."""

    throughput = "throughput"
    latency = "latency"
    dispatch = "dispatch"
    device = "device"
    all = "all"


class FailOn(str, Enum):
    """What shall end with another exit code than 0."""

    regression = "regression"


SIDE_HELP = "A build (version, date, HEAD, release, nightly, start of an id), a device, a dtype or a machine."


def compare(
    baseline: Annotated[str | None, typer.Argument(help=SIDE_HELP, show_default=False)] = None,
    contender: Annotated[
        str | None,
        typer.Argument(help="What it is compared with: the same kind of thing.", show_default=False),
    ] = None,
    history: Annotated[
        bool,
        typer.Option(
            "--history", help="Propose changes over all builds, or over a range given instead of two sides."
        ),
    ] = False,
    confirm: Annotated[
        bool,
        typer.Option(
            "--confirm", help="Propose as --history does, and measure each proposal anew, by turns."
        ),
    ] = False,
    machine: Annotated[str | None, typer.Option(help="Machine whose results are compared.")] = None,
    device: Annotated[
        str | None, typer.Option(help="Only cases on this device; cuda:1 takes the results of that card.")
    ] = None,
    build: Annotated[
        str | None,
        typer.Option(help="Build on which devices, dtypes or machines are compared, else the newest."),
    ] = None,
    bench: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="Only cases whose name matches, repeatable.")
    ] = None,
    clock: Annotated[
        list[Clock] | None,
        typer.Option(
            metavar="CLOCK",
            help="throughput, dispatch, device, latency or all; repeatable. Else the first three, where there are any.",
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="Relative difference that does not matter, else the machine's own."
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of false ones among what is called different.")
    ] = 0.01,
    all_rows: Annotated[bool, typer.Option("--all", help="List all rows, invariant ones too.")] = False,
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Measure what is not decided, both sides by turns, until it is."),
    ] = False,
    budget: Annotated[
        float, typer.Option(min=0.01, metavar="MINUTES", help="Most time that measuring takes for all cases.")
    ] = BUDGET_MINUTES,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            metavar="regression",
            help="Exit with 1 when there is a regression (with --confirm: a confirmed one), with 4 when all is open.",
        ),
    ] = None,
    format: Annotated[Format, typer.Option(help="Form of the report on standard output.")] = Format.table,
    config: Config = None,
    out: StoredResults = None,
) -> None:
    """Say which cases are slower, faster or the same, from stored results, and which are not decided.

    Exits with 0; with 3 when there is nothing to compare; with 130 when measuring was interrupted, and what was
    measured is saved and compared; see --fail-on for 1 and 4.
    """
    from accel_micro.comparison import comparing
    from accel_micro.comparison.sides import NotMeasured, WrongSides
    from accel_micro.report.comparison import render

    _check("--tolerance", tolerance, 1.0)
    _check("--alpha", alpha, 0.5)
    compiled(bench or [], "--bench ")
    clocks = tuple(dict.fromkeys(one.value for one in clock or ()))
    (baseline, contender, device), machine = on_card((baseline, contender, device), machine)
    if history or confirm:
        if contender is not None or build is not None or measure or (fail_on is not None and not confirm):
            say_error(
                "--history and --confirm take one range of builds at most, and not --build or --measure; "
                "--fail-on goes with --confirm"
            )
            raise typer.Exit(WRONG_USE)
        _search(
            HistoryRequest(
                range=baseline or "",
                machine=machine,
                device=device,
                bench=tuple(bench or ()),
                clocks=clocks,
                tolerance=tolerance,
                format=format.value,
                all=all_rows,
            ),
            config,
            out,
            budget_seconds=60 * budget if confirm else None,
            alpha=alpha,
            fail_on_regression=fail_on is FailOn.regression,
        )
        return
    if baseline is None or contender is None:
        say_error("two sides are compared: BASELINE CONTENDER; --history searches all builds")
        raise typer.Exit(WRONG_USE)
    request = comparing.Request(
        baseline=baseline,
        contender=contender,
        machine=machine,
        build=build,
        device=device,
        bench=tuple(bench or ()),
        clocks=clocks,
        alpha=alpha,
        tolerance=tolerance,
        config=config,
        out=out,
    )
    measuring, bar = _measuring(config, out, 60 * budget) if measure else (None, None)
    with reported():
        room = Room.of(config, out)
        try:
            comparison = comparing.compare(
                request, Path(room.conf.results_dir), room.ledger, measure=measuring
            )
        except WrongSides as error:
            say_error(str(error))
            raise typer.Exit(WRONG_USE) from None
        except NotMeasured as error:
            say_error(str(error))
            raise typer.Exit(comparing.NOTHING_COMPARED) from None
        finally:
            if bar is not None:
                bar.finished()
    command = comparing.next_command(request, comparison)
    render(comparison, format.value, all_rows=all_rows, next_command=command)
    if measuring is not None and measuring.interrupted:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(comparing.exit_code(comparison, fail_on is FailOn.regression))


def _search(
    request: HistoryRequest,
    config: Path | None,
    out: Path | None,
    *,
    budget_seconds: float | None,
    alpha: float,
    fail_on_regression: bool,
) -> None:
    """Print the changes that are proposed, measured anew where there is a budget for it."""
    from accel_micro.asv_plugin.machine import is_this
    from accel_micro.commands.confirm import confirm, exit_code
    from accel_micro.comparison.comparing import NOTHING_COMPARED
    from accel_micro.comparison.searching import NothingMeasured, find
    from accel_micro.report.history import render

    measuring = None
    with reported():
        room = Room.of(config, out)
        try:
            changes = find(request, Path(room.conf.results_dir), room.ledger)
        except NothingMeasured as error:
            say_error(str(error))
            raise typer.Exit(NOTHING_COMPARED) from None
        if budget_seconds is not None:
            measuring, bar = _measuring(config, out, budget_seconds)
            decide = partial(measuring.decide, alpha=alpha, partial=True)
            try:
                changes = replace(confirm(changes, decide, is_this), alpha=alpha)
            finally:
                bar.finished()
    typer.echo(render(changes, request.format, all_rows=request.all), nl=False)
    if measuring is not None and measuring.interrupted:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(exit_code(changes, fail_on_regression))


def _measuring(config: Path | None, out: Path | None, budget_seconds: float) -> "tuple[Measuring, Listener]":
    from accel_micro.report.progress import listener

    bar = listener(stderr())
    results = None if out is None else out / "results"
    told = Measuring(config, results, budget_seconds, started=bar.case_started, ended=bar.case_finished)
    return told, bar


def _check(option: str, value: float | None, most: float) -> None:
    if value is not None and not 0 < value <= most:
        say_error(f"{option} must be larger than 0 and at most {most:g}, not {value:g}")
        raise typer.Exit(WRONG_USE)
