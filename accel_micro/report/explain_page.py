"""An explanation to one HTML file that opens by a double click, without a network: it refers to nothing else."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import accel_micro
from accel_micro.explain.batches import Fit
from accel_micro.explain.capture import Capture, Row
from accel_micro.explain.causes import Ablation, Cause
from accel_micro.explain.explanation import SIDES, Explanation
from accel_micro.report import explain_plots as plots
from accel_micro.report import explain_words as words
from accel_micro.report import units
from accel_micro.report.html import template, write_whole
from accel_micro.report.words import clean, count

GENERATOR: Final = "accel_micro explain"
"""Says in a page's head what it is, so that the pages about all results can list it."""

_MOST_ROWS: Final = 80


def write_page(
    path: Path,
    e: Explanation,
    causes: Sequence[Cause] = (),
    ablations: Sequence[Ablation] = (),
    fit: Fit | None = None,
    *,
    list_page: str | None = None,
) -> None:
    """Write the page; an older one of that name is replaced once the new one is complete. Raises OSError.

    Args:
        list_page: address of the page that lists all explanations, relative to `path`; None when there is none.
    """
    write_whole(path, render_page(e, causes, ablations, fit, list_page=list_page))


def render_page(
    e: Explanation,
    causes: Sequence[Cause] = (),
    ablations: Sequence[Ablation] = (),
    fit: Fit | None = None,
    *,
    list_page: str | None = None,
) -> str:
    """The page as text; see `write_page`."""
    sides = (e.baseline, e.contender)
    return template("explain.html").render(
        title=words.title(e),
        summary=words.summary(e),
        generator=GENERATOR,
        started=max(clean(side.started) for side in sides),
        list_page=list_page,
        about=[("how", words.how(e)), *_machines(e)],
        left=words.left(e),
        closures=[words.closure(name, each) for name, each in zip(SIDES, e.closures, strict=True)],
        prediction=words.prediction(e),
        waterfall=plots.waterfall(e),
        tracks=[
            (name, drawn, words.step(side, wider))
            for name, side, (drawn, wider) in zip(SIDES, sides, plots.tracks(sides), strict=True)
        ],
        phases=plots.PHASE_CLASSES,
        causes=[_cause(each, ablations) for each in causes],
        fit=words.fit_lines(fit) if fit is not None else [],
        tables=[(name, _table(side)) for name, side in zip(SIDES, sides, strict=True)],
        notes=[clean(note) for note in e.notes],
        version=accel_micro.__version__,
        geometry={"width": plots.WIDTH, "label": plots.LABEL, "value": plots.VALUE, "row": plots.ROW},
    )


def _machines(e: Explanation) -> list[tuple[str, str]]:
    found = []
    for name, side in zip(SIDES, (e.baseline, e.contender), strict=True):
        facts = [side.machine.get(key, "") for key in ("gpu", "model", "cpu", "os")]
        text = ", ".join(dict.fromkeys(clean(fact) for fact in facts if fact))
        found.append(
            (f"machine of the {name}", f"{text}; {count(len(side.readings), 'process', 'processes')}")
        )
    return found


def _cause(cause: Cause, ablations: Sequence[Ablation]) -> dict[str, Any]:
    done = next((each for each in ablations if each.cause == cause), None)
    return {
        "name": clean(cause.name),
        "side": cause.side,
        "text": clean(cause.text),
        "after": clean(done.text) if done else f"would confirm it: {clean(cause.ablation)}",
        "confirmed": bool(done and done.confirmed),
    }


def _table(capture: Capture) -> list[dict[str, str]]:
    """The rows that take longest, with what is known of each."""
    if not capture.has_ops:
        return []
    seconds = [fmean(reading.ops[n] for reading in capture.readings) for n in range(len(capture.rows))]
    order = sorted(range(len(capture.rows)), key=lambda n: -seconds[n])[:_MOST_ROWS]
    return [_row(capture, capture.rows[n], seconds[n]) for n in order]


def _row(capture: Capture, row: Row, seconds: float) -> dict[str, str]:
    each = row.device_seconds or seconds / row.count
    peak = ""
    if row.flops and capture.flops_per_second and each > 0:
        peak = units.percent(row.flops / each / capture.flops_per_second)
    if row.error is None:
        check = clean(row.check) or "–"
    else:
        check = f"{row.error:.1g}" if not row.check else f"wrong: {clean(row.check)}"
    return {
        "op": clean(row.operator),
        "phase": row.phase,
        "where": clean(f"{row.module} {row.module_class}".strip()),
        "inputs": clean(", ".join(row.inputs)),
        "backend": clean(row.backend),
        "count": str(row.count),
        "seconds": words.seconds(seconds),
        "share": units.percent(seconds / capture.step_seconds),
        "hot": _optional(row.hot_seconds),
        "cold": _optional(row.cold_seconds),
        "device": _optional(row.device_seconds),
        "peak": peak or "–",
        "check": check,
        "wrong": "wrong" if row.is_wrong or row.non_finite else "",
    }


def _optional(seconds: float | None) -> str:
    return "–" if seconds is None else words.seconds(seconds)
