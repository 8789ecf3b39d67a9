"""A comparison to data for other programs: JSON with everything, CSV with a line a row.

JSON, schema 1, is one object:

    schema       1; raised whenever a reader of the old form would misread the new one
    made_by      "accel_micro 0.1.0"
    kind         what the sides differ in: build, device, dtype or machine
    baseline, contender   name, id or name in `value`, and machine, build, build_id, environment of its processes
    alpha        share of false ones among what is called different
    tolerances   value, machine and device, with a note where it is not a calibrated machine's own
    counts       rows by verdict
    cautions     sentences
    differences  `found`: group, name, values of both sides, `pairs` it concerns (0: all); `unknown`: sentences
    rows         the case of the contender (its five names) and what differs in the baseline's; `clock`; seconds
                 of both sides; all fields of the verdict; `tolerance`; `conditions`: interleaved, in turn or apart
    uncompared   reason, side, detail, cases; `clock` where other clocks of the cases were compared
    problems     lines of the results that could not be read
    next_command what measures the undecided rows, "" when nothing does

Numbers are SI without prefixes; what is unknown is null, and so is what is not finite.
"""

import csv
import io
import json
from dataclasses import asdict
from typing import Any, Final

import accel_micro
from accel_micro.comparison.compared import Compared, Comparison
from accel_micro.report.export import CASE_FIELDS, finite
from accel_micro.report.words import clean, first_line

SCHEMA: Final = 1
"""Of the JSON; see the module's text."""


def to_json(comparison: Comparison, next_command: str = "") -> str:
    """All of it; see the module's text for its form."""
    data = {
        "schema": SCHEMA,
        "made_by": f"accel_micro {accel_micro.__version__}",
        "kind": comparison.kind,
        "baseline": _side(comparison, 0),
        "contender": _side(comparison, 1),
        "alpha": comparison.alpha,
        "tolerances": [asdict(tolerance) for tolerance in comparison.tolerances],
        "counts": comparison.counts,
        "cautions": comparison.cautions,
        "differences": {
            "found": [asdict(difference) for difference in comparison.differences.found],
            "unknown": comparison.differences.unknown,
        },
        "uncompared": [asdict(group) for group in comparison.uncompared],
        "problems": comparison.problems,
        "next_command": next_command,
    }
    text = json.dumps(finite(data), indent=1, ensure_ascii=False, default=str).removesuffix("\n}")
    # A row a line: of ten thousand nobody reads them otherwise.
    rows = (json.dumps(finite(_row(row)), ensure_ascii=False) for row in comparison.rows)
    return f'{text},\n "rows": [\n' + ",\n".join(rows) + "\n ]\n}\n"


def _side(comparison: Comparison, side: int) -> dict[str, Any]:
    return {
        "title": comparison.sides[side].title,
        "value": comparison.sides[side].value,
        "machine": comparison.scope.machines[side],
        "build": comparison.builds[side].removeprefix("torch "),
        "build_id": comparison.scope.builds[side],
        "environment": comparison.paired.environments[side],
    }


def _row(row: Compared) -> dict[str, Any]:
    baseline, contender = row.seconds
    return {
        **_case(row),
        "clock": row.pair.clock,
        "baseline_seconds": baseline,
        "contender_seconds": contender,
        **asdict(row.verdict),
        "tolerance": row.tolerance,
        "conditions": row.pair.conditions,
    }


def _case(row: Compared) -> dict[str, str]:
    before, case = row.pair.baseline.key.case, row.pair.case
    names = {name: getattr(case, name) for name in CASE_FIELDS}
    other = {
        f"baseline_{name}": getattr(before, name)
        for name in ("device", "dtype")
        if getattr(before, name) != getattr(case, name)
    }
    return {**names, **other}


CSV_COLUMNS: Final = (
    *CASE_FIELDS, "baseline_device", "baseline_dtype", "clock",
    "verdict", "ratio", "ratio_low", "ratio_high", "p_value", "q_value",
    "baseline_seconds", "contender_seconds", "baseline_processes", "contender_processes",
    "baseline_spread", "contender_spread", "baseline_set_aside", "contender_set_aside",
    "processes_needed", "reason", "tolerance", "conditions", "uncompared", "uncompared_side", "detail",
)  # fmt: skip


def to_csv(comparison: Comparison) -> str:
    """A line a row, then a line for each case that was not compared; unknown is empty, units are in the names."""
    out = io.StringIO()
    writer = csv.DictWriter(out, CSV_COLUMNS, restval="", lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in comparison.rows:
        line = finite(_row(row))
        aside = dict(zip(("baseline_set_aside", "contender_set_aside"), row.verdict.set_aside, strict=True))
        writer.writerow(_cleaned({**line, **aside, "verdict": row.verdict.kind}))
    for group in comparison.uncompared:
        for case in group.cases:
            told = {
                "clock": group.clock,
                "uncompared": group.reason,
                "uncompared_side": group.side,
                "detail": first_line(group.detail) if case is group.cases[0] else "",
            }
            writer.writerow(_cleaned({**asdict(case), **told}))
    return out.getvalue()


def _cleaned(line: dict[str, Any]) -> dict[str, Any]:
    return {
        key: clean(value) if isinstance(value, str) else "" if value is None else value
        for key, value in line.items()
    }
