"""What `explain --published` does: read published times, and say what they allow. Nothing is measured."""

from pathlib import Path

import typer


def show(file: Path | None, json: bool) -> None:
    """Write what the reports of a file tell, or those that are shipped, to standard output.

    Raises:
        NotPublished: the file is none. OSError: it cannot be read.
    """
    from accel_micro.explain.published.data import read
    from accel_micro.explain.published.findings import findings
    from accel_micro.report import published as report

    found = findings(read(file))
    if json:
        typer.echo(report.to_json(found), nl=False)
    else:
        report.render(found)
