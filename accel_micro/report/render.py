"""Records to a stream in one of the formats that the command line offers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Final, Literal, get_args

from accel_micro.measure.records import Record
from accel_micro.report.printing import chosen, trimmed
from accel_micro.report.rows import Report, collect

if TYPE_CHECKING:
    from rich.console import Console

Format = Literal["table", "json", "markdown", "csv"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)


def render(
    records: Iterable[Record],
    format: Format = "table",
    stream: IO[str] | None = None,
    *,
    console: "Console | None" = None,
    width: int | None = None,
    sessions: Literal["latest", "all"] = "latest",
    facts: Mapping[str, Any] | None = None,
    findings: Sequence[Mapping[str, Any]] = (),
    profile: str = "",
) -> None:
    """Write a report of these records.

    Args:
        format: one of `FORMATS`.
        stream: where to; None is standard output. Not closed.
        console: for `table` instead of the stream; by default one that uses colour on a terminal unless
            NO_COLOR is set.
        width: characters of a line of `table`; None asks the terminal, and takes 80 where there is none.
        sessions: see `rows.collect`.
        facts, findings, profile: for `json`.

    Raises:
        ValueError: no such format.
    """
    if format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; known: {', '.join(FORMATS)}")
    stream = chosen(stream)
    records = list(records)
    report = collect(records, sessions=sessions)
    if format == "table":
        _print_table(report, console, stream, width)
    elif format == "markdown":
        from accel_micro.report.markdown import to_markdown

        stream.write(to_markdown(report))
    elif format == "csv":
        from accel_micro.report.export import to_csv

        stream.write(to_csv(report))
    else:
        from accel_micro.report.export import to_json

        stream.write(to_json(report, records, facts=facts, findings=findings, profile=profile))


def _print_table(report: Report, console: "Console | None", stream: IO[str], width: int | None) -> None:
    from rich.console import Console

    from accel_micro.report.table import print_report

    console = console or Console(file=stream, width=width, highlight=False)
    with trimmed(console):
        print_report(report, console)
