"""The command line. Thin: a command imports what it needs when it runs, so that `--help` answers at once."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from accel_micro.commands.bisect_cli import app as bisect_app
from accel_micro.commands.builds_cli import app as builds_app
from accel_micro.commands.calibrate_cli import calibrate
from accel_micro.commands.common import ProfileName
from accel_micro.commands.compare_cli import compare
from accel_micro.commands.coverage_cli import coverage
from accel_micro.commands.crossover_cli import crossover
from accel_micro.commands.doctor_cli import doctor
from accel_micro.commands.explain_cli import capture, explain
from accel_micro.commands.ops_cli import ops
from accel_micro.commands.report_cli import report
from accel_micro.commands.reproduce_cli import reproduce
from accel_micro.commands.selfcheck_cli import selfcheck

app = typer.Typer(
    name="accel-micro",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(builds_app)
app.command()(compare)
app.command()(calibrate)
app.command()(crossover)
app.add_typer(bisect_app)
app.command()(capture)
app.command()(explain)
app.command()(report)
app.command()(ops)
app.command()(coverage)
app.command()(reproduce)
app.command()(selfcheck)


class Format(str, Enum):
    """How a report of timings is written."""

    table = "table"
    json = "json"
    markdown = "markdown"
    csv = "csv"


Config = Annotated[
    Path | None,
    typer.Option(help="asv's configuration; else the nearest asv.conf.json, else the suite's own."),
]
Out = Annotated[
    Path | None, typer.Option(help="Folder for results and pages, else those of the configuration.")
]


def _print_version(asked: bool) -> None:
    if asked:
        from accel_micro import __version__

        typer.echo(f"accel-micro {__version__}")
        raise typer.Exit


@app.callback()
def accel_micro(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Trustworthy microbenchmarks of PyTorch ops on every accelerator."""


@app.command()
def quick(
    device: Annotated[
        list[str] | None,
        typer.Option(
            help="Device to time, repeatable; else the CPU and each accelerator here. cuda:1 is the second GPU."
        ),
    ] = None,
    bench: Annotated[
        list[str] | None,
        typer.Option(
            help="Regular expression that chooses cases, such as 'matmul.mm' or 'backward'; repeatable."
        ),
    ] = None,
    profile: Annotated[ProfileName, typer.Option(help="How much is run.")] = ProfileName.quick,
    format: Annotated[Format, typer.Option(help="Form of the report on standard output.")] = Format.table,
    rounds: Annotated[int | None, typer.Option(min=1, help="Processes a case, else the profile's.")] = None,
    config: Config = None,
    out: Out = None,
) -> None:
    """Time ops on the installed torch: a table here, results saved, a page that opens without internet.

    Exits with 0; with 3 when nothing could be timed; with 130 when interrupted, and what was measured is kept.
    """
    from rich.console import Console

    from accel_micro.asv_plugin.session import SessionError
    from accel_micro.commands.quick import Request, quick

    request = Request(
        profile=profile.value,
        devices=tuple(device or ()),
        bench=tuple(bench or ()),
        format=format.value,
        config=config,
        out=out,
        rounds=rounds,
    )
    try:
        code = quick(request, Console(stderr=True, highlight=False))
    except SessionError as error:
        typer.echo(f"accel-micro: {error}", err=True)
        raise typer.Exit(error.exit_code) from None
    raise typer.Exit(code)


app.command()(doctor)


@app.command()
def preview(
    port: Annotated[int, typer.Option(min=0, help="Port on this machine; 0 takes a free one.")] = 0,
    config: Config = None,
    out: Out = None,
) -> None:
    """Serve the published pages, with the history over builds, on this machine until Ctrl-C."""
    from accel_micro.asv_plugin.session import SessionError
    from accel_micro.commands.preview import serve

    try:
        serve(config, out, port)
    except SessionError as error:
        typer.echo(f"accel-micro: {error}", err=True)
        raise typer.Exit(error.exit_code) from None


def main() -> None:
    """Run the command line; leaves with 0 done, 2 wrong use, or 3 the environment cannot do it."""
    app()


if __name__ == "__main__":
    main()
