"""`accel-micro coverage`: its options. Thin; imports happen when the command runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accel_micro.commands.common import ENVIRONMENT, Config, Room, need_torch, reported, say_error, say_note

if TYPE_CHECKING:
    from accel_micro.catalogue.coverage import Coverage


def coverage(
    page: Annotated[
        Path | None, typer.Argument(help="File to write, such as docs/coverage.md; else standard output.")
    ] = None,
    config: Config = None,
) -> None:
    """Say where the suite times what torch's operator benchmark and the reference models run, or why it does not.

    Runs every op and every model once on the CPU, which takes a minute or two. What is missing is also said on standard
    error. Exits with 0; with 3 when the suite cannot be imported or keeps no such lists.
    """
    need_torch()
    import torch

    from accel_micro.report.coverage import to_markdown

    with reported():
        if page is not None:
            page.parent.mkdir(parents=True, exist_ok=True)  # rather than after minutes
        found = _cover(Path(Room.of(config, None).conf.benchmark_dir))
    text = to_markdown(found, torch.__version__.partition("+")[0])
    if page is None:
        typer.echo(text, nl=False)
    else:
        with reported():
            page.write_text(text, encoding="utf-8")
    for row in found.missing:
        say_note(f"missing: {row.name} ({', '.join(row.source)}): {', '.join(row.missing)}")
    for sentence in found.stale:
        say_note(f"no longer so: {sentence}")


def _cover(suite: Path) -> "Coverage":
    from accel_micro import models
    from accel_micro.catalogue import NotASuite, load, operator_benchmark, reasons, used
    from accel_micro.catalogue.coverage import cover, trace
    from accel_micro.catalogue.signatures import is_view

    try:
        why = reasons.read(suite / "coverage" / "reasons.toml")
        listed = operator_benchmark.read(suite / "coverage" / "operator_benchmark.toml")
        ops = load(suite)
    except (NotASuite, OSError, ValueError) as error:
        say_error(str(error))
        raise typer.Exit(ENVIRONMENT) from None
    runs = {name: used.operators(name) for name in models.NAMES}
    return cover(listed, runs, trace(ops, why.untraced), why, is_view)
