"""The command line. Thin: a command imports what it needs when it runs, so that `--help` answers at once."""

import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import typer

from accel_micro.commands.bisect_cli import app as bisect_app
from accel_micro.commands.builds_cli import app as builds_app
from accel_micro.commands.calibrate_cli import calibrate
from accel_micro.commands.common import ProfileName, ResultsAndPages, reported
from accel_micro.commands.compare_cli import compare
from accel_micro.commands.coverage_cli import coverage
from accel_micro.commands.crossover_cli import crossover
from accel_micro.commands.doctor_cli import doctor
from accel_micro.commands.explain_cli import capture, explain
from accel_micro.commands.help import WIDEST, Command, Group
from accel_micro.commands.ops_cli import ops
from accel_micro.commands.report_cli import report
from accel_micro.commands.reproduce_cli import reproduce
from accel_micro.commands.selfcheck_cli import selfcheck


class Format(str, Enum):
    """How a report of timings is written."""

    table = "table"
    json = "json"
    markdown = "markdown"
    csv = "csv"


Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="asv's configuration; else the nearest asv.conf.json, else the suite's own."
    ),
]
app = typer.Typer(
    name="accel-micro",
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
)


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
    """Trustworthy microbenchmarks of PyTorch ops on every accelerator.

    Begin with `accel-micro quick`; `accel-micro doctor` says whether this machine's numbers can be trusted. The options
    of a command, with examples: `accel-micro COMMAND --help`. `asv run`, `asv publish` and the others work on the same
    results.
    """


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
            metavar="REGEX",
            help="Regular expression that chooses cases, such as 'matmul.mm' or 'backward'; repeatable.",
        ),
    ] = None,
    profile: Annotated[ProfileName, typer.Option(help="How much is run.")] = ProfileName.quick,
    format: Annotated[Format, typer.Option(help="Form of the report on standard output.")] = Format.table,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Fresh processes of each case: 1 in quick, 3 in standard, 5 in full unless given.",
        ),
    ] = None,
    config: Config = None,
    out: ResultsAndPages = None,
) -> None:
    """Time ops on the installed torch: a table here, results saved, a page that opens without internet.

    Exits with 0; with 3 when nothing could be timed; with 130 when interrupted, and what was measured is kept.
    """
    from rich.console import Console

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
    with reported():
        code = quick(request, Console(stderr=True, highlight=False))
    raise typer.Exit(code)


def preview(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine; 0 takes a free one.")
    ] = 0,
    config: Config = None,
    out: ResultsAndPages = None,
) -> None:
    """Serve the published pages, with the history over builds, on this machine until Ctrl-C."""
    from accel_micro.commands.preview import serve

    with reported():
        serve(config, out, port)


def _add(group: str, command: Callable[..., None], *examples: str) -> None:
    app.command(cls=Command, rich_help_panel=group, epilog="\n".join(examples))(command)


_TRUST = "Measure, and know the machine"
_add(
    _TRUST,
    quick,
    "accel-micro quick",
    "accel-micro quick --device cpu --bench matmul.mm --rounds 3",
    "accel-micro quick --bench attention --format json > attention.json",
)
_add(_TRUST, doctor, "accel-micro doctor", "accel-micro doctor --sync --device cpu")
_add(_TRUST, calibrate, "accel-micro calibrate", "accel-micro calibrate --device cuda --minutes 30")
_add(
    _TRUST,
    selfcheck,
    "accel-micro selfcheck",
    "accel-micro selfcheck power cost --budget 1200",
    "accel-micro selfcheck truth --device cuda",
)

_CHANGE = "Compare builds of torch"
_add(
    _CHANGE,
    compare,
    "accel-micro compare 2.12.0 2.13.0",
    "accel-micro compare 20261101 20261127 --bench '^conv' --measure --budget 30",
    "accel-micro compare cpu cuda",
    "accel-micro compare --history nightly",
)
app.add_typer(bisect_app, rich_help_panel=_CHANGE)
_add(
    _CHANGE,
    reproduce,
    "accel-micro reproduce 'matmul.mm forward float32 m=64 k=64 n=64 on cpu' > reproducer.py",
)
app.add_typer(builds_app, rich_help_panel=_CHANGE)

_MODEL = "Explain a model, or an op"
_add(
    _MODEL,
    explain,
    "accel-micro explain --model resnet18 --baseline cpu --contender cuda",
    "accel-micro explain --model mobilenet_v2 --baseline batch=4 --contender batch=64 --page why.html",
    "accel-micro explain laptop.json server.json",
)
_add(_MODEL, capture, "accel-micro capture resnet18 --device cuda --batch 4 --out server.json")
_add(
    _MODEL,
    crossover,
    "accel-micro crossover",
    "accel-micro crossover cpu cuda --dtype bfloat16 --bench matmul.mm --budget 20",
)

_SUITE = "See the suite, and the results"
_add(_SUITE, ops, "accel-micro ops", "accel-micro ops matmul --cases", "accel-micro ops --aten addmm")
_add(_SUITE, coverage, "accel-micro coverage", "accel-micro coverage docs/coverage.md")
_add(_SUITE, report, "accel-micro report", "accel-micro report --baseline 2.13.0 --contender 20261114")
_add(_SUITE, preview, "accel-micro preview", "accel-micro preview --port 8000")


FAULT: Final = 70
"""EX_SOFTWARE of sysexits.h. Python's own code for a crash is 1, which is a regression here."""


def main() -> None:
    """Run the command line; the exit codes are those of docs/design.md."""
    try:
        app()
    except Exception:
        import traceback

        traceback.print_exc()
        typer.echo(
            "This is a fault of accel-micro itself; the text above belongs in the report of it.", err=True
        )
        sys.exit(FAULT)


if __name__ == "__main__":
    main()
