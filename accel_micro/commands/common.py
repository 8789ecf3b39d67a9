"""What commands share: the configuration with its ledger, and errors as one sentence with an exit code."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

if TYPE_CHECKING:
    import re

    from rich.console import Console

    from accel_micro.asv_plugin.sources import Sources
    from accel_micro.builds import Ledger
    from accel_micro.report.builds import BuildRow

WRONG_USE: Final = 2
ENVIRONMENT: Final = 3


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
    except (BadIndex, NoClone, NoConfiguration, NotAWheel, TorchNotInstalled, UnknownBuild) as problem:
        say_error(str(problem))
        raise typer.Exit(WRONG_USE) from None
    except (ArchiveBusy, BrokenWheel, ChangedFile, NoInterpreter, OSError, Unreachable, UvError) as problem:
        say_error(str(problem))
        raise typer.Exit(ENVIRONMENT) from None


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
