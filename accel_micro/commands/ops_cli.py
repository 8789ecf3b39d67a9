"""`accel-micro ops`: its options. Thin; imports happen when the command runs."""

from dataclasses import replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accel_micro.commands.common import (
    ENVIRONMENT,
    WRONG_USE,
    Config,
    ProfileName,
    Room,
    StoredResults,
    compiled,
    need_torch,
    reported,
    say_error,
)

if TYPE_CHECKING:
    from accel_micro.catalogue import Listing
    from accel_micro.suite import OpBenchmark


class Format(str, Enum):
    """How the catalogue is written."""

    table = "table"
    json = "json"
    csv = "csv"


def ops(
    name: Annotated[
        list[str] | None, typer.Argument(help="Only ops or families whose name matches, regular expressions.")
    ] = None,
    profile: Annotated[ProfileName, typer.Option(help="Whose cases are counted.")] = ProfileName.standard,
    device: Annotated[
        list[str] | None,
        typer.Option(help="Kind of device, repeatable; else the CPU and each accelerator here."),
    ] = None,
    aten: Annotated[
        str | None,
        typer.Option(
            metavar="OPERATOR", help="Only ops that run this operator of ATen, such as addmm or aten.addmm."
        ),
    ] = None,
    cases: Annotated[bool, typer.Option("--cases", help="List each case too.")] = False,
    format: Annotated[Format, typer.Option(help="Form of the list on standard output.")] = Format.table,
    config: Config = None,
    out: StoredResults = None,
) -> None:
    """List the ops of the suite, which cases a profile runs of each, and about how long that takes here.

    Exits with 0; with 2 when nothing is of that name; with 3 when the suite cannot be imported.
    """
    need_torch()
    from rich.console import Console

    from accel_micro import profiles
    from accel_micro.catalogue import NotASuite, list_ops, load
    from accel_micro.devices import UnknownDevice, available, get
    from accel_micro.measure.records import read_all
    from accel_micro.report.ops import render

    patterns = compiled(name or [])
    with reported():
        room = Room.of(config, out)
        try:
            kinds = [get(one).kind for one in device or ()]
            found = load(Path(room.conf.benchmark_dir))
        except UnknownDevice as error:
            say_error(str(error))
            raise typer.Exit(WRONG_USE) from None
        except NotASuite as error:
            say_error(str(error))
            raise typer.Exit(ENVIRONMENT) from None
        if not kinds:
            kinds = [kind for kind, facts in available().items() if facts["unavailable"] is None]
        chosen = [cls for cls in found if not patterns or any(p.search(cls.op.name) for p in patterns)]
        ran_here = cache(_is_this)
        records = (record for record in read_all(Path(room.conf.results_dir)) if ran_here(record.machine))
        listing = list_ops(chosen, profiles.get(profile.value), list(dict.fromkeys(kinds)), records)
    if aten is not None:
        listing = _running(listing, {cls.op.name: cls for cls in chosen}, aten)
    if not listing.rows:
        asked = " and ".join(filter(None, [", ".join(name or []), f"--aten {aten}" if aten else ""]))
        say_error(f"the suite has no op of {asked}" if asked else "the suite has no ops")
        raise typer.Exit(WRONG_USE)
    typer.echo(render(listing, format.value, cases=cases, width=Console().width), nl=False)


def _is_this(machine: str) -> bool:
    from accel_micro.asv_plugin.machine import is_this

    return is_this(machine)


def _running(listing: "Listing", classes: "dict[str, type[OpBenchmark]]", operator: str) -> "Listing":
    """Only the ops that run an operator, each with all that it runs."""
    from accel_micro.catalogue.aten import operators

    wanted = operator if "." in operator else f"aten.{operator}"
    known = {name: operators(cls.op) for name, cls in classes.items()}
    rows = [replace(row, aten=known[row.op]) for row in listing.rows if wanted in known[row.op]]
    return replace(listing, rows=tuple(rows))
