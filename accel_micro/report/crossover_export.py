"""A crossover to data for other programs, and to Markdown.

JSON, schema 1, is one object:

    schema, made_by
    kind         what the sides differ in: device or dtype
    baseline, contender   their names; `held` is the dtype or device that both have
    machine, torch_version, session
    alpha        how often, at most, any size of a row is called for the wrong side
    tolerance    relative difference that does not matter, with `tolerance_note` where no calibration stands behind it
    factor       width of an interval that is narrow enough; budget_seconds: that measuring might take
    rows         one for each op and direction: `answer` (see `crossed.Answer`), `swept` (the shape
                 with its range), `size` (the arguments), `crossings` (low, high, at, faster from there on, and sizes
                 between them that are equal or open), `launch_bound` (of each side `up_to` and `beyond`, null where it
                 has no such clocks), `stopped` (done, budget, interrupted), `left_out`, and `sizes`: size, shape,
                 faster, ratio (contender ÷ baseline) with its 95 % interval, processes, `needed`, and of both sides the
                 seconds by each clock and the medians of the processes
    absent       ops that a side does not have
    next_command what gives it more time, "" when nothing is left

Numbers are SI without prefixes; what is unknown is null. CSV has a line a size and a line a crossing.
"""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import accel_micro
from accel_micro.comparison.crossed import Crossed, Subject, answer, launch
from accel_micro.comparison.sweeping import CLOCK, Size, Swept, middle
from accel_micro.measure.process import CLOCKS
from accel_micro.measure.records import Record
from accel_micro.report import crossover_words as words
from accel_micro.report.export import finite
from accel_micro.report.markdown import escape
from accel_micro.report.words import clean

SCHEMA: Final = 1
"""Of the JSON; see the module's text."""


def to_json(crossed: Crossed, next_command: str = "") -> str:
    """All of it; see the module's text for its form."""
    data = {
        "schema": SCHEMA,
        "made_by": f"accel_micro {accel_micro.__version__}",
        "kind": crossed.kind,
        "baseline": crossed.sides[0].value,
        "contender": crossed.sides[1].value,
        "held": crossed.held,
        "machine": crossed.machine,
        "torch_version": crossed.torch_version,
        "session": crossed.session,
        "alpha": crossed.alpha,
        "tolerance": crossed.tolerance.value,
        "tolerance_note": crossed.tolerance.note,
        "factor": crossed.factor,
        "budget_seconds": crossed.budget_seconds,
        "rows": [_row(crossed, row) for row in crossed.rows],
        "absent": [{**asdict(subject), "reason": why} for subject, why in crossed.absent],
        "next_command": next_command,
    }
    return json.dumps(finite(data), indent=1, ensure_ascii=False) + "\n"


def _row(crossed: Crossed, row: Swept[Subject]) -> dict[str, Any]:
    launches = {which: launch(row, which) for which in words.SIDES}
    return {
        "op": row.line.subject.op,
        "direction": row.line.subject.direction,
        "swept": row.line.sweep.text,
        "size": row.line.sweep.label,
        "answer": answer(row),
        "crossings": [{**asdict(one), "faster": crossed.side(one.faster)} for one in row.crossings],
        "launch_bound": {
            crossed.side(which): None if found is None else found._asdict()
            for which, found in launches.items()
        },
        "stopped": row.stopped,
        "left_out": row.left_out,
        "sizes": [_size(crossed, row, size) for size in row.sizes],
    }


def _size(crossed: Crossed, row: Swept[Subject], size: Size) -> dict[str, Any]:
    call = {} if size.call is None else {**asdict(size.call), "faster": crossed.side(size.call.faster)}
    return {
        "size": size.size,
        "shape": row.line.sweep.shape(size.size),
        **call,
        "looks": size.looks,
        "baseline": _side(size.baseline),
        "contender": _side(size.contender),
        "failure": size.failure,
    }


def _side(records: Sequence[Record]) -> dict[str, Any]:
    read = {f"{clock}_seconds": middle(records, clock) for clock in CLOCKS}
    return {
        **{name: seconds for name, seconds in read.items() if seconds is not None},
        "process_seconds": [record.clocks[CLOCK].median_seconds for record in records],
        "flags": sorted({flag.name for record in records for flag in record.clocks[CLOCK].flags}),
    }


CSV_COLUMNS: Final = (
    "op", "direction", "baseline", "contender", "held", "what", "size", "shape", "faster",
    "ratio", "ratio_low", "ratio_high", "processes", "needed", "clear",
    *(f"{which}_{clock}_seconds" for which in words.SIDES for clock in ("throughput", "dispatch", "device")),
    "failure", "crossing_low", "crossing_high", "crossing_at",
)  # fmt: skip


def to_csv(crossed: Crossed, next_command: str = "") -> str:
    """A line a size (`what` is size), then a line a crossing; unknown is empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, CSV_COLUMNS, restval="", lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in crossed.rows:
        subject = {
            **asdict(row.line.subject),
            "baseline": crossed.sides[0].value,
            "contender": crossed.sides[1].value,
            "held": crossed.held,
        }
        for size in row.sizes:
            line = {**subject, "what": "size", **_size(crossed, row, size)}
            line |= {"baseline": subject["baseline"], "contender": subject["contender"]}
            for which in words.SIDES:
                read = _side(getattr(size, which))
                line |= {f"{which}_{name}": value for name, value in read.items()}
            writer.writerow(_cleaned(line))
        for one in row.crossings:
            found = {"crossing_low": one.low, "crossing_high": one.high, "crossing_at": one.at}
            writer.writerow({**subject, "what": "crossing", "faster": crossed.side(one.faster), **found})
    return out.getvalue()


def _cleaned(line: dict[str, Any]) -> dict[str, Any]:
    return {
        key: clean(value) if isinstance(value, str) else "" if value is None else value
        for key, value in finite(line).items()
    }


def to_markdown(crossed: Crossed, next_command: str = "") -> str:
    """A table a reader of an issue can take in, and how to read it."""
    from accel_micro.report.crossover import TITLES, cells

    text = [f"**{escape(words.title(crossed))}**", "", escape(words.summary(crossed))]
    if crossed.rows:
        text += ["", _line(TITLES), _line(["---"] * len(TITLES))]
        text += [_line(map(escape, row)) for row in cells(crossed)]
    told = [
        f"{escape(words.op_text(row))}: {escape(note)}"
        for row in crossed.rows
        for note in words.notes(crossed, row)
    ]
    told += [f"{escape(subject.op)} {subject.direction}: {escape(why)}" for subject, why in crossed.absent]
    told += [escape(one) for one in words.explanations(crossed)]
    text += ["", *(f"- {one}" for one in told)]
    if (more := words.more_text(crossed)) and next_command:
        text += ["", escape(more), "", "```sh", clean(next_command), "```"]
    return "\n".join(text) + "\n"


def _line(texts: Any) -> str:
    return f"| {' | '.join(texts)} |"
