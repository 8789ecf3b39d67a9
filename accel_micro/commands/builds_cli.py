"""`accel-micro builds`: which torch builds there are, and where. Thin; imports happen when a command runs."""

from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from accel_micro.commands.common import (
    ENVIRONMENT,
    Config,
    OwnResults,
    Room,
    print_json,
    reported,
    say_error,
    say_note,
    stderr,
    stdout,
)
from accel_micro.commands.help import Command, Group

if TYPE_CHECKING:
    from accel_micro.builds import Wheel

SHOWN: Final = 30

app = typer.Typer(
    name="builds",
    cls=Group,
    help="Which builds of torch there are: nightlies, releases and your own. The ledger, a file beside the results, "
    "remembers them all.",
    no_args_is_help=True,
)


class Format(str, Enum):
    """How an answer is written."""

    table = "table"
    json = "json"


class Channel(str, Enum):
    """Where a build comes from."""

    nightly = "nightly"
    release = "release"
    local = "local"


Ranges = Annotated[
    list[str] | None,
    typer.Argument(
        help="Builds: a version, a nightly's date, a channel, or a range such as 20261101..20261127."
    ),
]
Index = Annotated[
    list[str] | None,
    typer.Option(
        metavar="URL",
        help="Index or folder of wheels, repeatable; {variant} stands for each. Else as configured.",
    ),
]
Variant = Annotated[
    str | None,
    typer.Option(
        help="For what its wheels are made: cpu, cu130, …, several with commas, or auto: what this machine can run."
    ),
]
Python = Annotated[list[str] | None, typer.Option(help="Python whose wheels are meant, repeatable.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
OutputFormat = Annotated[Format, typer.Option(help="For people or for programs.")]


@app.command(
    cls=Command, epilog="accel-micro builds sync\naccel-micro builds sync --variant cpu,cu130 --no-commits"
)
def sync(
    index: Index = None,
    variant: Variant = None,
    python: Python = None,
    commits: Annotated[bool, typer.Option(help="Ask each new wheel for its PyTorch commit.")] = True,
    clone: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Clone of PyTorch whose branch nightly tells commits of main."),
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Take this file although another was known by its name; repeatable."
        ),
    ] = None,
    dry_run: DryRun = False,
    format: OutputFormat = Format.table,
    config: Config = None,
    out: OwnResults = None,
) -> None:
    """Note what the indexes list now. Nothing is forgotten, and no changed file is silently taken.

    Exits with 0; with 3 when an index cannot be read or lists another file under a known name.
    """
    from rich.progress import Progress

    from accel_micro.builds.commits import read_clone
    from accel_micro.report.words import count

    with reported():
        room = Room.of(config, out)
        sources = room.sources(index, variant, python)
        nightlies = None if clone is None else read_clone(clone)
        with Progress(console=stderr(), transient=True, disable=not stderr().is_terminal) as progress:
            task = progress.add_task("PyTorch commits", total=None)
            found = sources.sync(
                room.ledger,
                commits=commits,
                nightlies=nightlies,
                accept=accept or (),
                dry_run=dry_run,
                progress=lambda done, total: progress.update(task, completed=done, total=total),
            )
    if format is Format.json:
        facts: dict[str, Any] = {
            "indexes": [listing.index for listing in found.read],
            "variants": sources.variants.names,
            "builds": [asdict(build) for build in found.builds],
            "wheels": [asdict(wheel) for wheel in found.wheels],
            "gone": [wheel.file_name for wheel in found.gone],
            "changed": found.changed,
            "failures": found.failures,
            "problems": found.problems,
        }
        print_json(facts)
    else:
        would = "Would note" if dry_run else "Noted"
        pages, gone = count(len(found.read), "page"), count(len(found.gone), "wheel")
        typer.echo(
            f"{would} {count(len(found.builds), 'new build')} and {count(len(found.wheels), 'new wheel')} of {pages} "
            f"({', '.join(sources.variants.names[:3])}: {sources.variants.reason}); {gone} no longer listed."
        )
        if found.builds:
            typer.echo("New: " + ", ".join(build.version for build in found.builds[-SHOWN:]))
    for problem in found.problems[:SHOWN]:
        say_note(problem)
    for text in (*found.changed, *found.failures):
        say_error(text)
    if found.instead:
        say_note(found.instead)
    if found.changed:
        say_error("a changed file is not taken; if it is meant to be another one, say --accept FILE_NAME")
    if found.failures and not dry_run:
        say_error(
            f"the ledger goes on with the {sum(1 for _ in room.ledger)} builds that it knows: {room.ledger.path}"
        )
    if found.failures or found.changed:
        raise typer.Exit(ENVIRONMENT)


@app.command(
    "list", cls=Command, epilog="accel-micro builds list nightly --last 5\naccel-micro builds list --measured"
)
def list_builds(
    ranges: Ranges = None,
    channel: Annotated[Channel | None, typer.Option(help="Only builds of this channel.")] = None,
    measured: Annotated[
        bool | None, typer.Option("--measured/--unmeasured", help="Only builds with, or without, results.")
    ] = None,
    last: Annotated[
        int, typer.Option(min=0, metavar="N", help="Show the newest N only; 0 shows all.")
    ] = SHOWN,
    variant: Variant = None,
    python: Python = None,
    format: OutputFormat = Format.table,
    config: Config = None,
    out: OwnResults = None,
) -> None:
    """List the builds that the ledger knows, from old to new. Needs no network."""
    from accel_micro.builds.ranges import missing_days
    from accel_micro.report.builds import day, print_builds, to_json

    with reported():
        room = Room.of(config, out)
        rows = room.rows(ranges, room.sources((), variant, python))
    rows = [row for row in rows if channel is None or row.build.channel == channel.value]
    rows = [row for row in rows if measured is None or bool(row.machines) == measured]
    missing = missing_days([row.build for row in rows]) if measured is None else []
    shown = rows[-last:] if last else rows
    if format is Format.json:
        print_json(
            {"builds": [to_json(row) for row in shown], "days_without_nightly": [day(d) for d in missing]}
        )
        return
    if not rows:
        typer.echo("No such build is known; `accel-micro builds sync` reads the indexes.")
        return
    print_builds(shown, missing, stdout())
    if len(shown) < len(rows):
        typer.echo(f"{len(rows) - len(shown)} older ones: --last 0")
    for problem in room.problems[:SHOWN]:
        say_note(problem)


@app.command(cls=Command, epilog="accel-micro builds show 20261105")
def show(
    name: Annotated[
        str, typer.Argument(help="A version, a nightly's date, a channel's name, or the start of an id.")
    ],
    variant: Variant = None,
    python: Python = None,
    format: OutputFormat = Format.table,
    config: Config = None,
    out: OwnResults = None,
) -> None:
    """Show all that is known of one build: its commit, what came in since the one before, its wheels."""
    from accel_micro.report.builds import print_build, to_json

    with reported():
        room = Room.of(config, out)
        (row,) = room.rows([room.ledger.resolve(name).id], room.sources((), variant, python))
    wheels = room.ledger.wheels(row.build.id)
    if format is Format.json:
        print_json({**to_json(row), "wheels": [asdict(wheel) for wheel in wheels]})
    else:
        print_build(row, wheels, stdout())


@app.command(cls=Command, epilog="accel-micro builds archive nightly --to wheels --dry-run")
def archive(
    ranges: Annotated[list[str], typer.Argument(help="Builds to keep: versions, dates, channels or ranges.")],
    to: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Folder for the wheels; it becomes an index for us, pip and uv."),
    ],
    variant: Variant = None,
    python: Python = None,
    dry_run: DryRun = False,
    format: OutputFormat = Format.table,
    config: Config = None,
    out: OwnResults = None,
) -> None:
    """Download wheels before their index hides them. Goes on where an earlier attempt stopped.

    Exits with 0; with 3 when a wheel could not be kept, and the others are.
    """
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from accel_micro.builds.archive import archive as run
    from accel_micro.builds.web import Web
    from accel_micro.report.units import byte_count
    from accel_micro.report.words import count

    with reported():
        room = Room.of(config, out)
        rows = room.rows(ranges, room.sources((), variant, python))
        wheels = [row.wheel for row in rows if row.wheel is not None]
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        with (
            Web() as web,
            Progress(*columns, console=stderr(), transient=True, disable=not stderr().is_terminal) as bar,
        ):
            task = bar.add_task("", total=None)

            def start(wheel: "Wheel", size: int | None) -> None:
                bar.reset(task, description=wheel.version, total=wheel.size_bytes)

            done = run(
                room.ledger,
                wheels,
                to,
                web,
                dry_run=dry_run,
                start=start,
                advance=lambda have: bar.update(task, completed=have),
            )
    without = [row.build.version for row in rows if row.wheel is None]
    if format is Format.json:
        print_json(
            {
                "folder": str(to),
                "kept": [{"file_name": wheel.file_name, "bytes": size} for wheel, size in done.kept],
                "already": [wheel.file_name for wheel in done.already],
                "failures": done.failures,
                "no_wheel": without,
            }
        )
    else:
        for wheel, size in done.kept:
            typer.echo(f"{'?' if size is None else byte_count(size):>8}  {wheel.file_name}")
        verb = "Would download" if dry_run else "Downloaded"
        typer.echo(
            f"{verb} {count(len(done.kept), 'wheel')}, {byte_count(done.total_bytes)}; "
            f"{len(done.already)} were there. Index: {to.absolute().as_uri()}/"
        )
    for version in without:
        say_note(f"{version} has no wheel for this Python, platform and variant")
    for file_name, reason in done.failures.items():
        say_error(f"{file_name}: {reason}")
    if done.failures:
        raise typer.Exit(ENVIRONMENT)


@app.command(cls=Command, epilog="accel-micro builds add ~/pytorch/.venv")
def add(
    path: Annotated[Path, typer.Argument(help="A wheel of torch, a Python, or an environment's folder.")],
    accept: Annotated[
        bool, typer.Option("--accept", help="Take the wheel although another was known by its name.")
    ] = False,
    dry_run: DryRun = False,
    format: OutputFormat = Format.table,
    config: Config = None,
    out: OwnResults = None,
) -> None:
    """Know a build that no index lists: a wheel of yours, or the torch that an environment has."""
    from accel_micro.builds import adding

    with reported():
        room = Room.of(config, out)
        if path.suffix == ".whl":
            build, wheel = adding.add_wheel(room.ledger, path, accept=accept, dry_run=dry_run)
            what, facts = wheel.version, asdict(wheel)
        else:
            build, installed = adding.add_interpreter(room.ledger, path, dry_run=dry_run)
            what, facts = installed.version, {"python": str(adding.find_python(path))}
    if format is Format.json:
        print_json({"build": asdict(build), **facts})
    else:
        typer.echo(f"{'Would add' if dry_run else 'Added'} {build.channel} build {what}: {build.id}")


@app.command(cls=Command, epilog="accel-micro builds prune --limit 20 --dry-run")
def prune(
    limit: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="GIGABYTES",
            help="What environments may take, else ACCEL_MICRO_ENVIRONMENTS_GB, else 50.",
        ),
    ] = None,
    dry_run: DryRun = False,
    format: OutputFormat = Format.table,
    config: Config = None,
    out: OwnResults = None,
) -> None:
    """Remove environments of builds, those not used for longest first, never one in use."""
    from accel_micro.builds import pruning
    from accel_micro.builds.environments import Environments
    from accel_micro.report.units import byte_count

    with reported():
        room = Room.of(config, out)
        try:
            limit_bytes = pruning.limit_bytes() if limit is None else int(limit * 1e9)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
        done = pruning.prune(Environments.below(Path(room.conf.env_dir)), limit_bytes, dry_run=dry_run)
    if format is Format.json:
        print_json({**asdict(done), "leftovers": [str(folder) for folder in done.leftovers]})
        return
    for removed in done.removed:
        typer.echo(f"{byte_count(removed.freed_bytes):>8}  {removed.name}  torch {removed.version}")
    verb = "Would remove" if dry_run else "Removed"
    typer.echo(
        f"{verb} {len(done.removed)} environments: {byte_count(done.before_bytes)} before, "
        f"{byte_count(done.after_bytes)} after, limit {byte_count(done.limit_bytes)}."
    )
    for name in done.in_use:
        say_note(f"{name} is in use and was spared")
