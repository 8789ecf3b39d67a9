"""`accel-micro calibrate`: its options. Thin; imports happen when the command runs."""

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from accel_micro.commands.common import Config, OwnResults, print_json, say_error, stderr, stdout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accel_micro.commands.calibrate import Outcome

MINUTES: Final = 5.0
MOST_MINUTES: Final = 15.0


class Format(str, Enum):
    """How a calibration is written."""

    text = "text"
    json = "json"


def calibrate(
    device: Annotated[
        list[str] | None,
        typer.Option(
            help="Device to calibrate, such as cuda:1, repeatable; else the CPU and each accelerator here."
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            metavar="MINUTES",
            help=f"Time for each device.  [default: {MINUTES:g}, without end if --processes is given]",
        ),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes of a case at most.")
    ] = None,
    format: Annotated[Format, typer.Option(help="For people or for programs.")] = Format.text,
    config: Config = None,
    out: OwnResults = None,
) -> None:
    """Compare the installed torch with itself to learn what this machine can show, and how far to trust it.

    Exits with 0 when comparisons can be trusted; with 4 when they cannot or that cannot be told; with 3 when nothing
    could be timed; with 130 when interrupted, and what was measured is kept.
    """
    from accel_micro.asv_plugin.session import SessionError
    from accel_micro.commands import calibrate as calibrating
    from accel_micro.report.progress import listener

    request = calibrating.Request(
        devices=tuple(device or ()),
        minutes=MINUTES if minutes is None and processes is None else minutes,
        most_minutes=MOST_MINUTES if minutes is None else None,
        processes=processes,
        config=config,
        out=out,
    )
    bar = listener(stderr())
    try:
        with calibrating.bench(request) as bench:
            outcomes = calibrating.calibrate(
                request,
                bench,
                tell=lambda turn: bar.case_started(turn.case, turn.number, turn.total),
                ended=bar.case_finished,
            )
            results = bench.results
    except SessionError as error:
        say_error(str(error))
        raise typer.Exit(error.exit_code) from None
    finally:
        bar.finished()
    _show(outcomes, results, format)
    raise typer.Exit(calibrating.exit_code(outcomes))


def _show(outcomes: "Sequence[Outcome]", results: Path, format: Format) -> None:
    from accel_micro.report.calibration import print_calibration, to_json

    for outcome in outcomes:
        if outcome.calibration is None:
            why = outcome.run.failed[0] if outcome.run.failed else None
            detail = (
                (why.skipped or (why.failure and str(why.failure.detail or why.failure.kind))) if why else ""
            )
            if why is None and outcome.run.stopped == "time":
                detail = "the time was up before one was measured; raise --minutes"
            say_error(f"{outcome.device}: no case has a time" + (f": {detail}" if detail else ""))
        elif format is Format.text:
            print_calibration(outcome.calibration, outcome.run.failed, stdout())
    if format is Format.json:
        shown = [
            {**to_json(outcome.calibration), "stored": outcome.stored}
            for outcome in outcomes
            if outcome.calibration is not None
        ]
        print_json({"results": str(results), "calibrations": shown})
    for outcome in outcomes:
        if outcome.calibration is None:
            continue
        if outcome.stored:
            from accel_micro.results.calibrations import FILE_NAME

            stderr().print(
                f"Stored: {results / outcome.calibration.machine / FILE_NAME}", soft_wrap=True, markup=False
            )
        else:
            stderr().print(f"Not stored for {outcome.device}: too little was measured.", soft_wrap=True)
