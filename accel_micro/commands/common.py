"""What commands share: the configuration with its ledger, and errors as one sentence with an exit code."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from accel_micro.device_names import kind_of

if TYPE_CHECKING:
    import re

    from rich.console import Console

    from accel_micro.asv_plugin.sources import Sources
    from accel_micro.builds import Ledger
    from accel_micro.report.builds import BuildRow

WRONG_USE: Final = 2
ENVIRONMENT: Final = 3


Config = Annotated[
    Path | None, typer.Option(metavar="FILE", help="asv's configuration; else the nearest asv.conf.json.")
]
StoredResults = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Folder that holds the results, else that of the configuration."),
]
OwnResults = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Folder for results, else that of the configuration.")
]
ResultsAndPages = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Folder for results and pages, else those of the configuration."),
]


class ProfileName(str, Enum):
    """How much is run."""

    quick = "quick"
    standard = "standard"
    full = "full"


@dataclass
class Room:
    """A configuration, its ledger, and what of that could not be read."""

    conf: Any
    base: Path
    ledger: "Ledger"
    problems: list[str]

    @classmethod
    def of(cls, config: Path | None, out: Path | None) -> "Room":
        """That of a chosen or the nearest configuration; `out` replaces its folder of results.

        Raises:
            NoConfiguration: there is none.
        """
        from accel_micro.asv_plugin.config import find_config, load
        from accel_micro.builds import Ledger

        found = find_config(config)
        conf = load(found, None if out is None else out / "results")
        problems: list[str] = []
        ledger = Ledger.beside(Path(conf.results_dir), problems)
        return cls(conf, Path.cwd() if found.bundled else found.path.parent, ledger, problems)

    def sources(
        self, index: list[str] | tuple[()] | None, variant: str | None, python: list[str] | None
    ) -> "Sources":
        """Where builds come from, see `find_sources`."""
        from accel_micro.asv_plugin.sources import find_sources

        return find_sources(
            self.conf, base=self.base, indexes=index or (), variant=variant, pythons=python or ()
        )

    def rows(self, ranges: list[str] | None, sources: "Sources") -> "list[BuildRow]":
        """Rows of the builds in these ranges, or of all, from old to new.

        Raises:
            UnknownBuild: a range names none.
        """
        from accel_micro.builds.measured import measured_on
        from accel_micro.builds.ranges import select
        from accel_micro.report.builds import build_rows

        builds = self.ledger.ordered()
        if ranges:
            chosen = {build.id for text in ranges for build in select(self.ledger, text)}
            builds = [build for build in builds if build.id in chosen]
        measured = measured_on(Path(self.conf.results_dir))
        return build_rows(self.ledger, builds, sources.targets, measured)


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """What can go wrong, as one sentence and an exit code."""
    from accel_micro.asv_plugin.config import NoConfiguration
    from accel_micro.asv_plugin.embedding import SessionError
    from accel_micro.builds import ChangedFile, TorchNotInstalled, UnknownBuild
    from accel_micro.builds.archive import ArchiveBusy
    from accel_micro.builds.commits import NoClone
    from accel_micro.builds.contents import BrokenWheel
    from accel_micro.builds.index import BadIndex
    from accel_micro.builds.interpreters import NoInterpreter
    from accel_micro.builds.uv import UvError
    from accel_micro.builds.web import Unreachable
    from accel_micro.builds.wheels import NotAWheel

    try:
        yield
    except SessionError as problem:
        say_error(str(problem))
        raise typer.Exit(problem.exit_code) from None
    except (BadIndex, NoClone, NoConfiguration, NotAWheel, TorchNotInstalled, UnknownBuild) as problem:
        say_error(str(problem))
        raise typer.Exit(WRONG_USE) from None
    except (ArchiveBusy, BrokenWheel, ChangedFile, NoInterpreter, OSError, Unreachable, UvError) as problem:
        say_error(sentence(problem))
        raise typer.Exit(ENVIRONMENT) from None


def need_torch() -> None:
    """Leave with `ENVIRONMENT` where this interpreter has no torch. Does not import it."""
    import importlib.util
    import sys

    if importlib.util.find_spec("torch") is None:
        say_error(f"{sys.executable} has no torch; install it: {sys.executable} -m pip install torch")
        raise typer.Exit(ENVIRONMENT)


def sentence(problem: Exception) -> str:
    """What an exception says, without the number of the system's error."""
    if isinstance(problem, OSError) and problem.strerror and problem.filename:
        return f"{problem.filename}: {problem.strerror}"
    return str(problem)


def compiled(patterns: "Sequence[str]", option: str = "") -> "list[re.Pattern[str]]":
    """Regular expressions that were given to an option; leaves with `WRONG_USE` when one is none."""
    import re

    found = []
    for pattern in patterns:
        try:
            found.append(re.compile(pattern))
        except re.error as error:
            say_error(f"{option}{pattern!r} is no regular expression: {error}")
            raise typer.Exit(WRONG_USE) from None
    return found


def on_card(names: "Sequence[str | None]", machine: str | None) -> "tuple[list[str | None], str | None]":
    """Names of devices without their index, and the machine that has the results of those cards.

    Leaves with an exit code where they name two cards, one that is not here, or another machine than is given.

    Args:
        names: as the user wrote them; what is no device stays what it is. machine: as given, or None.
    """
    devices = [name.removeprefix("device:") for name in names if name is not None and has_index(name)]
    if not devices:
        return list(names), machine
    from asv.util import UserError

    from accel_micro.asv_plugin.machine import name_for
    from accel_micro.devices import chosen

    try:
        chosen.asked(",".join(devices))
        found = name_for(devices)
    except ValueError as problem:
        say_error(f"{problem}; then compare the machines that their results are of")
        raise typer.Exit(WRONG_USE) from None
    except UserError as problem:
        say_error(str(problem))
        raise typer.Exit(ENVIRONMENT) from None
    if machine is not None and found not in (None, machine):
        say_error(f"results of {devices[0]} are of machine {found}, and --machine says {machine}")
        raise typer.Exit(WRONG_USE)
    return [without_index(name) for name in names], found or machine


def has_index(name: str) -> bool:
    """Whether it names one of several devices: `cuda:1`."""
    from accel_micro.devices import wrong_name

    device = name.removeprefix("device:")
    return ":" in device and wrong_name(device) is None


def without_index(name: str | None) -> str | None:
    """A device's name without its index; all else stays what it is."""
    return name if name is None or not has_index(name) else kind_of(name.removeprefix("device:"))


def say_error(text: str) -> None:
    """One line on standard error, without what could move a terminal's cursor: it may quote a server."""
    from accel_micro.report.words import clean

    typer.echo(f"accel-micro: {clean(text)}", err=True)


def say_note(text: str) -> None:
    """The same, of something that costs nothing."""
    from accel_micro.report.words import clean

    typer.echo(f"note: {clean(text)}", err=True)


def print_json(facts: dict[str, Any]) -> None:
    """Plain data on standard output."""
    typer.echo(json.dumps(facts, indent=2))


def stdout() -> "Console":
    """A console that colours nothing by itself."""
    from rich.console import Console

    return Console(highlight=False)


def stderr() -> "Console":
    """The same, for progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)
