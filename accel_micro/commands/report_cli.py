"""`accel-micro report`: its options. Thin; imports happen when the command runs."""

from pathlib import Path
from typing import Annotated

import typer

from accel_micro.commands.common import (
    ENVIRONMENT,
    WRONG_USE,
    Config,
    ResultsAndPages,
    Room,
    reported,
    say_error,
    say_note,
    stdout,
)


def report(
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="BUILD",
            help="Build that is compared with: version, date, start of an id; else the one before.",
        ),
    ] = None,
    contender: Annotated[
        str | None,
        typer.Option(metavar="BUILD", help="Build that is compared, else the newest of each channel."),
    ] = None,
    config: Config = None,
    out: ResultsAndPages = None,
) -> None:
    """Write pages about all results that open without a server: verdicts, histories, builds, machines.

    Exits with 0; with 2 for a build that nobody knows or that was not measured; with 3 when there are no results.
    """
    from accel_micro.report.site import write_site
    from accel_micro.report.words import clean, count

    with reported():
        room = Room.of(config, out)
        results = Path(room.conf.results_dir)
        folder = Path(room.conf.html_dir) if out is None else out / "html"
        if not any(results.glob("*/*.processes.jsonl")):
            say_error(f"{results} holds no results yet; run `accel-micro quick` or `asv run`")
            raise typer.Exit(ENVIRONMENT)
        written = write_site(folder, results, baseline=baseline, contender=contender)
    for problem in written.problems[:10]:
        say_note(problem)
    if len(written.problems) > 10:
        say_note(f"and {len(written.problems) - 10} more")
    if (baseline or contender) and not written.comparisons:
        say_error(f"no machine has measured {_pair(baseline, contender)}, so the pages compare nothing")
        raise typer.Exit(WRONG_USE)
    console = stdout()
    said = f"{count(written.cases, 'case')} on {count(written.builds, 'build')}"
    if written.regressions:
        said += f", {count(written.regressions, 'regression')}"
    console.print(f"{said}, in {written.seconds:.1f} s", markup=False)
    console.print(clean(written.first.resolve().as_uri()), markup=False, soft_wrap=True)


def _pair(baseline: str | None, contender: str | None) -> str:
    """What would have been compared, by what was asked for."""
    if baseline and contender:
        return f"{baseline} and {contender} as two builds"
    return f"{baseline} and a newer build" if baseline else f"{contender} and a build before it"
