"""`accel-micro selfcheck`: its options. Thin; imports happen when the command runs."""

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from accel_micro.commands.common import ENVIRONMENT, WRONG_USE, need_torch, say_error, stderr

INTERRUPTED = 130
FOLDER = Path("selfcheck")
PAGE, MARKDOWN = "selfcheck.html", "selfcheck.md"


class Format(str, Enum):
    """How a self-check is written on standard output."""

    table = "table"
    json = "json"
    markdown = "markdown"


def selfcheck(
    sections: Annotated[
        list[str] | None,
        typer.Argument(
            help="Of truth, power, cost, bisect, explain and scale; all without one.", show_default=False
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="Device to measure on.")] = "cpu",
    budget: Annotated[
        float, typer.Option(min=1.0, metavar="SECONDS", help="About how long all of it may take.")
    ] = 600.0,
    format: Annotated[Format, typer.Option(help="Form of the report on standard output.")] = Format.table,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for the page and the Markdown.")
    ] = FOLDER,
) -> None:
    """Hold accel-micro against its peers on this machine: stopwatches, verdicts, searches, cost; a page and a table.

    Exits with 0; with 3 when no section has an answer; with 130 when interrupted, and what was found is shown.
    """
    need_torch()
    from accel_micro.commands.selfcheck import Request, check
    from accel_micro.devices.base import DeviceUnavailable, UnknownDevice
    from accel_micro.report.selfcheck import render, to_markdown
    from accel_micro.report.selfcheck_page import write_page
    from accel_micro.selfcheck.planning import UnknownSection

    console = stderr()
    request = Request(
        sections=tuple(sections or ()),
        device=device,
        budget_seconds=budget,
        command=" ".join(["accel-micro", *sys.argv[1:]]),
    )
    try:
        found = check(request, lambda text: console.print(text, markup=False, soft_wrap=True))
    except (UnknownSection, UnknownDevice) as error:
        say_error(str(error))
        raise typer.Exit(WRONG_USE) from None
    except DeviceUnavailable as error:
        say_error(str(error))
        raise typer.Exit(ENVIRONMENT) from None
    render(found, format.value, sys.stdout)
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / MARKDOWN).write_text(to_markdown(found), encoding="utf-8")
        write_page(out / PAGE, found)
    except OSError as error:
        say_error(f"the page could not be written: {error}")
    else:
        console.print(f"Page: {(out / PAGE).resolve().as_uri()}", soft_wrap=True, markup=False)
    if found.interrupted:
        raise typer.Exit(INTERRUPTED)
    if all(section.failed for section in found.sections):
        raise typer.Exit(ENVIRONMENT)
