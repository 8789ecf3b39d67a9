"""Rows to data for other programs: JSON with everything, CSV with a line a case.

JSON, schema 1, is one object:

    schema    1; raised whenever a reader of the old form would misread the new one
    made_by   "accel_micro 0.1.0"
    profile   name of the profile, "" when unknown
    facts     what the machine is, as `accel_micro.host` tells it; {} when unknown
    findings  what is wrong with the machine for benchmarking
    rows      a row a case: the case's five names; machine, build, environment; `clock`, the one that stands
              for the case; `estimates` by clock, in seconds; rates in FLOP/s and B/s and the larger share of
              its peak; `bound` and `dispatch_over_device`; `cold`, how its inputs were kept out of the cache,
              and `cold_over_hot`, its time over that of the hot case; flags and failures with counts of processes
    skips     reasons, with the cases
    records   the processes all this was made from, as in the files beside asv's results

Numbers are SI without prefixes; what is unknown is null, and so is what is not finite.
"""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import accel_micro
from accel_micro.measure.process import CLOCKS
from accel_micro.measure.records import Record
from accel_micro.report import words
from accel_micro.report.rows import Report, Row

SCHEMA: Final = 1
"""Of the JSON export; see the module's text."""

CASE_FIELDS: Final = ("op", "direction", "device", "dtype", "shape")


def to_json(
    report: Report,
    records: Iterable[Record],
    *,
    facts: Mapping[str, Any] | None = None,
    findings: Sequence[Mapping[str, Any]] = (),
    profile: str = "",
) -> str:
    """The whole report as JSON; see the module's text for its form."""
    data = {
        "schema": SCHEMA,
        "made_by": f"accel_micro {accel_micro.__version__}",
        "profile": profile,
        "facts": dict(facts or {}),
        "findings": [dict(finding) for finding in findings],
        "rows": [row_to_json(row) for row in report.rows],
        "skips": [
            {"reason": skip.reason, "cases": [asdict(case) for case in skip.cases]} for skip in report.skips
        ],
    }
    # A record a line, as in the files they come from: twenty samples on twenty lines help nobody.
    text = json.dumps(finite(data), indent=1, ensure_ascii=False, default=str).removesuffix("\n}")
    lines = (json.dumps(finite(record.to_json()), ensure_ascii=False) for record in records)
    return f'{text},\n "records": [\n' + ",\n".join(lines) + "\n ]\n}\n"


def records_from_json(text: str) -> list[Record]:
    """The records of an exported JSON; `rows.collect` makes the same rows of them again.

    Raises:
        ValueError: the text is not JSON, or not of this schema.
    """
    data = json.loads(text)
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else type(data).__name__
        raise ValueError(f"not a report of schema {SCHEMA}, but {found!r}")
    try:
        return [Record.from_json(_unfinite(record)) for record in data["records"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a report: {type(error).__name__}: {error}") from error


def row_to_json(row: Row) -> dict[str, Any]:
    """One row as plain data; see the module's text."""
    return {
        **asdict(row.case),
        "machine": row.machine,
        "build": row.build,
        "environment": row.environment,
        "clock": row.clock,
        "estimates": {clock: asdict(e) for clock, e in row.estimates.items()},
        "flops_per_second": row.flops_per_second,
        "bytes_per_second": row.bytes_per_second,
        "share_of_peak": row.rate.share_of_peak if row.rate else None,
        "bound": row.bound,
        "dispatch_over_device": row.dispatch_over_device,
        "work": asdict(row.work) if row.work else None,
        "peak": asdict(row.peak) if row.peak else None,
        "check": asdict(row.check) if row.check else None,
        "first_call_seconds": row.first_call_seconds,
        "compile_seconds": row.compile_seconds,
        "peak_memory_bytes": row.peak_memory_bytes,
        "device_interval": row.device_interval,
        "cold": asdict(row.cold) if row.cold else None,
        "cold_over_hot": row.over_hot,
        "flags": [{**asdict(flag), "remedy": flag.remedy} for flag in row.flags],
        "failures": [asdict(failure) for failure in row.failures],
    }


def finite(value: Any) -> Any:
    """JSON has neither infinity nor NaN, and most readers refuse Python's spelling of them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


def _unfinite(record: dict[str, Any]) -> dict[str, Any]:
    """Undo `finite` where a record must hold a number: the error of a result that was NaN."""
    if isinstance(record.get("check"), dict):
        check = {key: math.nan if value is None else value for key, value in record["check"].items()}
        return {**record, "check": check}
    return record


def to_csv(report: Report) -> str:
    """One line a case, failed and skipped ones too; SI units are in the column names, unknown is empty.

    Texts are on one line each, whatever the records hold, so that tools which work by lines can read it.
    """
    lines = [_csv_line(row) for row in report.rows]
    lines += [{**asdict(case), "skipped": skip.reason} for skip in report.skips for case in skip.cases]
    out = io.StringIO()
    writer = csv.DictWriter(out, CSV_COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for line in lines:
        writer.writerow({key: words.clean(v) if isinstance(v, str) else v for key, v in line.items()})
    return out.getvalue()


CSV_COLUMNS: Final = (
    *CASE_FIELDS, "machine", "build", "environment",
    "clock", "seconds", "seconds_low", "seconds_high",
    "confidence", "processes", "samples", "within_only", "spread",
    *(f"{clock}_seconds{end}" for clock in CLOCKS for end in ("", "_low", "_high")),
    "flops_per_second", "bytes_per_second", "share_of_peak", "bound", "dispatch_over_device",
    "flops", "bytes", "peak_flops_per_second", "peak_bytes_per_second",
    "relative_error", "relative_tolerance", "first_call_seconds", "compile_seconds", "peak_memory_bytes",
    "cold_over_hot", "cold_input_sets", "cache_bytes",
    "flags", "failure", "failure_detail", "skipped",
)  # fmt: skip


def _csv_line(row: Row) -> dict[str, Any]:
    line: dict[str, Any] = {
        **asdict(row.case),
        "machine": row.machine,
        "build": row.build,
        "environment": row.environment,
        "flops_per_second": row.flops_per_second,
        "bytes_per_second": row.bytes_per_second,
        "share_of_peak": row.rate.share_of_peak if row.rate else None,
        "bound": row.bound,
        "dispatch_over_device": row.dispatch_over_device,
        "first_call_seconds": row.first_call_seconds,
        "compile_seconds": row.compile_seconds,
        "peak_memory_bytes": row.peak_memory_bytes,
        "flags": "; ".join(dict.fromkeys(flag.name for flag in row.flags)),
        "failure": words.failure_title(row),
        "failure_detail": "; ".join(filter(None, (words.first_line(f.detail) for f in row.failures))),
    }
    if row.headline is not None:
        e = row.headline
        line |= {"clock": row.clock, "seconds": e.seconds, "seconds_low": e.low, "seconds_high": e.high}
        for name in ("confidence", "processes", "samples", "within_only", "spread"):
            line[name] = getattr(e, name)
    for clock, e in row.estimates.items():
        ends = {"": e.seconds, "_low": e.low, "_high": e.high}
        line |= {f"{clock}_seconds{end}": seconds for end, seconds in ends.items()}
    if row.device_interval is not None and "device" not in row.estimates:
        line |= {"device_seconds_low": row.device_interval[0], "device_seconds_high": row.device_interval[1]}
    if row.cold is not None:
        line |= {"cold_over_hot": row.over_hot, "cold_input_sets": row.cold.sets}
        line["cache_bytes"] = row.cold.cache_bytes
    if row.work is not None:
        line |= {"flops": row.work.flops, "bytes": row.work.bytes}
    if row.peak is not None:
        line["peak_flops_per_second"] = row.peak.flops_per_second
        line["peak_bytes_per_second"] = row.peak.bytes_per_second
    if row.check is not None:
        line |= {"relative_error": row.check.error, "relative_tolerance": row.check.tolerance}
    return line
