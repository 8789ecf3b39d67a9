"""`accel-micro reproduce`: its options. Thin; imports happen when the command runs."""

from pathlib import Path
from typing import Annotated

import typer

from accel_micro.commands.common import (
    ENVIRONMENT,
    WRONG_USE,
    Config,
    ProfileName,
    Room,
    need_torch,
    reported,
    say_error,
)


def reproduce(
    benchmark: Annotated[
        str,
        typer.Argument(
            help="A case: its whole name, as asv's pages or a table have it, else a regular expression."
        ),
    ],
    device: Annotated[
        list[str] | None,
        typer.Option(
            help="Kind of device that an expression looks at, repeatable; else the CPU and each accelerator here."
        ),
    ] = None,
    dtype: Annotated[
        list[str] | None, typer.Option(help="Dtype that an expression looks at, repeatable; else all.")
    ] = None,
    profile: Annotated[
        ProfileName | None, typer.Option(help="Profile whose cases an expression looks at, else all.")
    ] = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="A sentence for the script's heading.")] = "",
    config: Config = None,
) -> None:
    """Print a script that times one case with torch alone: to paste into a bug report, to run under two builds.

    Exits with 0; with 2 when not exactly one case matches, or it cannot do without accel-micro; with 3 when the suite
    cannot be imported.
    """
    need_torch()
    from accel_micro import profiles
    from accel_micro.catalogue import NotASuite, NotOneCase, choose, load
    from accel_micro.catalogue.standalone import NotStandalone
    from accel_micro.comparison.sides import DTYPES
    from accel_micro.devices import UnknownDevice, available, get
    from accel_micro.report.reproducer import reproducer

    if unknown := [name for name in dtype or () if name not in DTYPES]:
        say_error(f"unknown dtype {unknown[0]!r}; known: {', '.join(dict.fromkeys(DTYPES.values()))}")
        raise typer.Exit(WRONG_USE)
    with reported():
        room = Room.of(config, None)
        try:
            kinds = [get(one).kind for one in device or ()]
            found = load(Path(room.conf.benchmark_dir))
            if not kinds:
                kinds = [kind for kind, facts in available().items() if facts["unavailable"] is None]
            chosen = choose(
                found,
                benchmark,
                kinds,
                dtypes=[DTYPES[name] for name in dtype or ()],
                profile=profiles.get(profile.value) if profile else None,
            )
            script = reproducer(chosen.benchmark.op, chosen.case, clock=chosen.clock, note=note)
        except (NotOneCase, NotStandalone, UnknownDevice) as error:
            sentence, *candidates = str(error).split("\n")
            say_error(sentence)
            for candidate in candidates:
                typer.echo(candidate, err=True)
            raise typer.Exit(WRONG_USE) from None
        except NotASuite as error:
            say_error(str(error))
            raise typer.Exit(ENVIRONMENT) from None
    typer.echo(script, nl=False)
