"""Records to one HTML file that opens by a double click, without a network: it refers to nothing else.

Python decides what is shown and in which words; the templates only place it. Jinja2 escapes all text.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import accel_micro
from accel_micro.measure.process import CLOCKS
from accel_micro.measure.records import Record
from accel_micro.report import facts as fact_texts
from accel_micro.report import layout, plots, units, words
from accel_micro.report.rows import FlagCount, Report, Row, collect
from accel_micro.report.table import family_title

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

SEVERITIES: Final = ("problem", "error", "warning", "note")
"""Of findings, the worst first; an unknown severity comes last."""


def write_html(
    path: Path,
    records: Iterable[Record],
    *,
    facts: Mapping[str, Any],
    findings: Sequence[Mapping[str, Any]],
    title: str,
    asv_page: str | None,
    profile: str,
    sessions: Literal["latest", "all"] = "latest",
) -> None:
    """Write the page; an older one of that name is replaced once the new one is complete.

    Args:
        facts: what the machine is, grouped as `accel_micro.host` groups them.
        findings: what is wrong with the machine for benchmarking: mappings with `name`, `severity` (see
            `SEVERITIES`), `what` and `remedy`.
        title: heading of the page.
        asv_page: address of asv's page, relative to `path`; None when there is none.
        profile: name of the profile that was run, "" when unknown.
        sessions: see `rows.collect`.

    Raises:
        OSError: the file cannot be written.
    """
    page = render_html(
        collect(records, sessions=sessions),
        facts=facts,
        findings=findings,
        title=title,
        asv_page=asv_page,
        profile=profile,
    )
    write_whole(path, page)


def render_html(
    report: Report,
    *,
    facts: Mapping[str, Any],
    findings: Sequence[Mapping[str, Any]],
    title: str,
    asv_page: str | None,
    profile: str,
) -> str:
    """The page as text; see `write_html`."""
    timed = [row for family in report.families for row in family.rows]
    numbers = {id(row): number for number, row in enumerate(timed)}
    return template("page.html").render(
        title=title,
        asv_page=asv_page,
        about=_about(report, facts, profile),
        tiles=_tiles(report, timed),
        findings=sorted(findings, key=_severity_rank),
        families=[
            {
                "title": family_title(family, report),
                "rows": [_row(row, numbers[id(row)]) for row in family.rows],
            }
            for family in report.families
        ],
        has_bound=any(row.bound for row in timed),
        rooflines=plots.rooflines(timed),
        failed=[_failed(row, numbers.get(id(row))) for row in report.failed],
        skips=report.skips,
        legend=words.legend(timed),
        notes=words.interval_notes(timed),
        fact_groups=fact_texts.groups(facts),
        glossary=words.GLOSSARY,
        version=accel_micro.__version__,
    )


def write_whole(path: Path, page: str) -> None:
    """Write a page; an older one of that name is replaced once the new one is complete.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.write_text(page, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def template(name: str) -> "Template":
    """A template of this room: values are escaped, and one that lacks is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("accel_micro.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["code"] = code
    return environment.get_template(name)


def code(text: str) -> "Markup":
    """Text with what stands between backticks as code; all of it escaped."""
    from markupsafe import Markup, escape

    parts = text.split("`")
    last = len(parts) - 1
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 and number < last else escape(part)
        for number, part in enumerate(parts)
    )


def _severity_rank(finding: Mapping[str, Any]) -> int:
    severity = str(finding.get("severity", ""))
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def _about(report: Report, facts: Mapping[str, Any], profile: str) -> list[tuple[str, str]]:
    """Labels and texts of the headline."""

    def all_of(name: str) -> str:
        return ", ".join(dict.fromkeys(filter(None, (getattr(row, name) for row in report.rows))))

    starts = sorted(record.started for row in report.rows for record in row.records if record.started)
    date = starts[-1][:16].replace("T", " ") if starts else ""
    if date and starts[-1].endswith(("+00:00", "Z")):
        date += " UTC"
    about = [
        ("machine", " · ".join(filter(None, (all_of("machine"), *fact_texts.summary(facts))))),
        ("torch", all_of("build")),
        ("environment", all_of("environment")),
        ("measured", date),
        ("profile", profile),
    ]
    return [(label, text) for label, text in about if text]


def _tiles(report: Report, timed: Sequence[Row]) -> list[dict[str, Any]]:
    """The numbers at the top, each with a link to what it counts."""
    tiles: list[dict[str, Any]] = [
        {"number": len(timed), "text": "cases timed", "kind": "", "href": "#cases"}
    ]
    if any(row.bound for row in timed):
        launch_bound = sum(row.bound == "launch-bound" for row in timed)
        tiles.append({"number": launch_bound, "text": "launch-bound", "kind": "launch", "href": "#rooflines"})
    flagged = sum(bool(row.flags) for row in timed)
    tiles.append({"number": flagged, "text": "flagged", "kind": "flag" if flagged else "", "href": "#flags"})
    failed = len(report.failed)
    tiles.append({"number": failed, "text": "failed", "kind": "bad" if failed else "", "href": "#failed"})
    skipped = sum(len(skip.cases) for skip in report.skips)
    if skipped:
        tiles.append({"number": skipped, "text": "skipped", "kind": "", "href": "#skipped"})
    return tiles


def _row(row: Row, number: int) -> dict[str, Any]:
    """What the template shows of a case, and what it can be sorted and searched by."""
    e = row.headline
    assert e is not None, "a row of a family has a time"
    share = row.rate.share_of_peak if row.rate else None
    return {
        "id": f"case-{number}",
        "op": row.case.op,
        "direction": row.case.direction,
        "dtype": layout.short_dtype(row.case.dtype),
        "shape": row.case.shape,
        "over_hot": layout.over_hot(row),
        "search": _search_text(row),
        "clock": row.clock,
        "time": units.time_text(e),
        "strip": _strip(row, row.clock or ""),
        "rate": units.quantity(row.rate.per_second, row.rate.unit) if row.rate else "",
        "share": units.percent(share) if share is not None else "",
        "share_width": round(min(100.0, 100 * share), 1) if share is not None else None,
        "bar": plots.bound_bar(row),
        "bound": row.bound,
        "factor": units.factor(row.dispatch_over_device) if row.dispatch_over_device else "",
        "flags": words.legend([row]),
        "failures": words.failure_title(row),
        "sort": {
            "median": e.seconds,
            "share": share,
            "launch": row.dispatch_over_device,
            "spread": e.half_width / e.seconds,
        },
        "clocks": [_clock(row, clock) for clock in CLOCKS if clock in row.estimates],
        "facts": _row_facts(row),
        "flag_details": [_flag_detail(flag) for flag in row.flags],
    }


def _search_text(row: Row) -> str:
    parts = [str(row.case), layout.short_dtype(row.case.dtype), row.bound, *(flag.name for flag in row.flags)]
    return " ".join(parts).lower()


def _flag_detail(flag: FlagCount) -> str:
    """`speed-corrected: throughput, 2 of 3 processes, 5 of 20 samples. The remedy`."""
    counts = f"{flag.clock}, {flag.processes} of {words.count(flag.of, 'process', 'processes')}"
    return f"{flag.name}: {', '.join((counts, *flag.details))}. {flag.remedy.capitalize()}"


def _strip(row: Row, clock: str) -> plots.Strip:
    processes = [record.clocks[clock] for record in row.records if clock in record.clocks]
    return plots.strip(processes, row.estimates[clock])


def _clock(row: Row, clock: str) -> dict[str, Any]:
    e = row.estimates[clock]
    processes = [record.clocks[clock] for record in row.records if clock in record.clocks]
    return {
        "name": clock,
        "time": units.time_text(e).full,
        "spread": units.percent(e.spread),
        "processes": e.processes,
        "samples": e.samples,
        "calls": _range([process.calls_per_block for process in processes]),
        "strip": _strip(row, clock),
    }


def _range(values: Sequence[int]) -> str:
    return f"{min(values)}" if min(values) == max(values) else f"{min(values)} to {max(values)}"


def _row_facts(row: Row) -> list[tuple[str, str]]:
    """The rest of what is known about a case: labels and texts."""
    found: list[tuple[str, str]] = []
    if row.first_call_seconds is not None:
        found.append(("first call", words.first_call(row)))
    if row.peak_memory_bytes is not None:
        found.append(("memory", units.byte_count(row.peak_memory_bytes)))
    if row.work is not None:
        found.append(
            ("work", f"{units.quantity(row.work.flops, 'FLOP')}, {units.quantity(row.work.bytes, 'B')}")
        )
    for name, unit in (("flops_per_second", "FLOP/s"), ("bytes_per_second", "B/s")):
        rate, peak = getattr(row, name), getattr(row.peak, name, None)
        if rate is not None:
            of = f" of {units.quantity(peak, unit)}" if units.is_finite_positive(peak) else ""
            found.append((unit, units.quantity(rate, unit) + of))
    if row.cold is not None:
        found.append(("cold inputs", words.cold_inputs(row.cold)))
    if row.check is not None:
        check = f"{row.check.error:.2g}, allowed {row.check.tolerance:.2g}, against {row.check.reference}"
        found.append(("relative error", check))
    for key, value in row.records[-1].precision.items():
        found.append((fact_texts.label(key), fact_texts.text(key, value)))
    return found


def _failed(row: Row, number: int | None) -> dict[str, Any]:
    return {
        "title": words.failure_title(row),
        "case": str(row.case),
        "href": None if number is None else f"#case-{number}",
        "failures": [
            {"detail": failure.detail, "remedy": words.failure_remedy(failure.kind)}
            for failure in row.failures
        ],
    }
