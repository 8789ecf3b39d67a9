"""`accel-micro crossover`: its options. Thin; imports happen when the command runs."""

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accel_micro.commands.common import (
    WRONG_USE,
    Config,
    ResultsAndPages,
    Room,
    compiled,
    has_index,
    reported,
    say_error,
    stderr,
    without_index,
)

if TYPE_CHECKING:
    from accel_micro.commands.crossover import Request
    from accel_micro.comparison.crossed import Crossed

SIDE_HELP = "A device (cpu, cuda, cuda:1 …) or a dtype (float32, bf16 …)."


class Format(str, Enum):
    """How a crossover is written."""

    table = "table"
    json = "json"
    markdown = "markdown"
    csv = "csv"


class Direction(str, Enum):
    """What of an op is timed."""

    forward = "forward"
    backward = "backward"
    both = "both"


def crossover(
    baseline: Annotated[
        str | None,
        typer.Argument(help=f"{SIDE_HELP} Without it the CPU, and then the accelerator.", show_default=False),
    ] = None,
    contender: Annotated[
        str | None,
        typer.Argument(help="What it is compared with: the same kind of thing.", show_default=False),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="Device on which two dtypes are compared, else the accelerator, else the CPU."),
    ] = None,
    dtype: Annotated[str, typer.Option(help="Dtype in which two devices are compared.")] = "float32",
    direction: Annotated[Direction, typer.Option(help="Which pass of an op is timed.")] = Direction.forward,
    bench: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REGEX",
            help="Only ops whose name matches, repeatable; else those that the suite has chosen for this.",
        ),
    ] = None,
    budget: Annotated[
        float, typer.Option(min=0.01, metavar="MINUTES", help="Most time that measuring takes for all ops.")
    ] = 10.0,
    factor: Annotated[
        float,
        typer.Option(
            help="A crossing is known well enough when its interval's upper end ÷ its lower end is this at most."
        ),
    ] = 1.2,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="Relative difference that does not matter, else the machine's own."
        ),
    ] = None,
    alpha: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="How often, at most, any size of an op is called for the wrong side."
        ),
    ] = 0.05,
    format: Annotated[Format, typer.Option(help="Form of the report on standard output.")] = Format.table,
    config: Config = None,
    out: ResultsAndPages = None,
) -> None:
    """Find the size from which on one device, or one dtype, is faster than the other, for each op.

    Exits with 0; with 3 when nothing could be timed; with 4 when nothing was decided; with 130 when interrupted, and
    what was measured is saved and shown.
    """
    from accel_micro.commands import crossover as crossing
    from accel_micro.comparison.sides import DTYPES, WrongSides
    from accel_micro.devices import chosen
    from accel_micro.report.crossover import render
    from accel_micro.report.progress import listener

    if (baseline is None) != (contender is None):
        _wrong("two sides are compared: BASELINE CONTENDER; without both the CPU and the accelerator")
    for name, value, low, high in (
        ("--alpha", alpha, 0.0, 0.5),
        ("--tolerance", tolerance or 0.02, 0.0, 1.0),
        ("--factor", factor, 1.0, 100.0),
    ):
        if not low < value <= high:
            _wrong(f"{name} must be larger than {low:g} and at most {high:g}, not {value:g}")
    if tolerance == 0:
        _wrong("--tolerance must be larger than 0")
    if dtype not in DTYPES:
        _wrong(f"unknown dtype {dtype!r}; known: {', '.join(dict.fromkeys(DTYPES.values()))}")
    names = (name.removeprefix("device:") for name in (baseline, contender, device) if name is not None)
    cards = tuple(name for name in names if has_index(name))
    try:
        chosen.asked(",".join(cards))
    except ValueError as error:
        _wrong(f"{error}; then compare their results with accel-micro compare")
    request = crossing.Request(
        baseline=without_index(baseline),
        contender=without_index(contender),
        cards=cards,
        device=without_index(device),
        dtype=DTYPES[dtype],
        directions=crossing.DIRECTIONS if direction is Direction.both else (direction.value,),
        bench=tuple(compiled(bench or [], "--bench ")),
        budget_seconds=60 * budget,
        alpha=alpha,
        tolerance=tolerance,
        factor=factor,
        config=config,
        out=out,
    )
    bar = listener(stderr())
    with reported():
        room = Room.of(config, out)
        try:
            sides = crossing.find_sides(request, Path(room.conf.results_dir), room.ledger)
            crossed = crossing.crossover(request, sides, started=bar.case_started, ended=bar.case_finished)
        except WrongSides as error:
            _wrong(str(error))
        finally:
            bar.finished()
    render(crossed, format.value, next_command=crossing.next_command(request, crossed))
    _write_page(request, crossed)
    raise typer.Exit(crossed.exit_code)


def _wrong(text: str) -> None:
    say_error(text)
    raise typer.Exit(WRONG_USE)


def _write_page(request: "Request", crossed: "Crossed") -> None:
    """Write the page and say where it is. A page that cannot be written costs no result."""
    from accel_micro.asv_plugin import session
    from accel_micro.asv_plugin.config import CROSSOVER
    from accel_micro.report.crossover_page import write_page

    console = stderr()
    html = None if request.out is None else request.out / "html"
    try:
        page = session.pages(request.config, html=html) / CROSSOVER
        history = "overview.html" if (page.parent / "overview.html").is_file() else None
        write_page(page, crossed, history_page=history)
    except (session.SessionError, OSError) as error:
        say_error(f"the page could not be written: {error}")
        return
    console.print(f"Page: {page.resolve().as_uri()}", soft_wrap=True, markup=False)
