"""A crossover to one HTML file that opens by a double click, without a network: it refers to nothing else."""

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import accel_micro
from accel_micro.comparison.crossed import Crossed, Subject, answer
from accel_micro.comparison.sweeping import Swept
from accel_micro.report import crossover_words as words
from accel_micro.report import units
from accel_micro.report.crossover_plots import plot
from accel_micro.report.html import template, write_whole
from accel_micro.report.words import clean


def write_page(path: Path, crossed: Crossed, *, history_page: str | None = None) -> None:
    """Write the page; an older one of that name is replaced once the new one is complete.

    Args:
        history_page: address of the pages over builds, relative to `path`; None when there are none.

    Raises:
        OSError: the file cannot be written.
    """
    write_whole(path, render_page(crossed, history_page=history_page))


def render_page(crossed: Crossed, *, history_page: str | None = None) -> str:
    """The page as text; see `write_page`."""
    first, second = (clean(side.title) for side in crossed.sides)
    return template("crossover.html").render(
        title=f"{first} or {second}: from which size on?",
        about=_about(crossed),
        summary=words.summary(crossed),
        history_page=history_page,
        names={"baseline": first, "contender": second},
        rows=[_row(crossed, row, number) for number, row in enumerate(crossed.rows)],
        absent=[(f"{clean(subject.op)} {subject.direction}", clean(why)) for subject, why in crossed.absent],
        explanations=words.explanations(crossed),
        version=accel_micro.__version__,
    )


def _about(crossed: Crossed) -> list[tuple[str, str]]:
    starts = [
        record.started
        for row in crossed.rows
        for size in row.sizes
        for record in (*size.baseline, *size.contender)
        if record.started
    ]
    return [
        ("machine", clean(crossed.machine)),
        ("torch", clean(crossed.torch_version)),
        ("device" if crossed.kind == "dtype" else "dtype", clean(crossed.held)),
        ("measured", _moment(max(starts)) if starts else ""),
    ]


def _moment(started: str) -> str:
    try:
        moment = datetime.fromisoformat(started).astimezone(timezone.utc)
    except ValueError:
        return clean(started)
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def _row(crossed: Crossed, row: Swept[Subject], number: int) -> dict[str, Any]:
    names = {which: clean(crossed.side(which)) for which in words.SIDES}
    return {
        "id": f"op-{number}",
        "op": clean(row.line.subject.op),
        "direction": row.line.subject.direction,
        "size": words.size_text(row),
        "answer": answer(row),
        "faster": words.faster_text(crossed, row),
        "crossings": words.crossings_text(row),
        "ends": words.ends_text(row),
        "bound": words.bound_text(crossed, row),
        "notes": list(words.notes(crossed, row)),
        "label": row.line.sweep.label,
        "plot": plot(row, names, crossed.tolerance.value) if row.calls else None,
        "sizes": [
            {
                "size": size.size,
                "faster": clean(crossed.side(size.call.faster)) if size.call else "",
                "kind": size.call.faster if size.call else "",
                "speed": words.times_as_fast(size.call) if size.call else "",
                "processes": size.call.processes if size.call else 0,
                "seconds": [
                    units.quantity(seconds, "s") if (seconds := size.seconds(which)) is not None else "–"
                    for which in words.SIDES
                ],
                "failure": clean(size.failure),
            }
            for size in row.sizes
        ],
    }
