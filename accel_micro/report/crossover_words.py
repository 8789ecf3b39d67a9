"""The words of a crossover: who is faster where, where the sides cross, what bounds them, what is open.

Pure; the terminal, Markdown and the page take their texts from here, so that they say the same.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from accel_micro.comparison.crossed import Crossed, Subject, answer, launch, runs
from accel_micro.comparison.sweeping import SLOW_SECONDS, Swept, Which
from accel_micro.dtypes import SHORT
from accel_micro.report import units
from accel_micro.report.layout import short_direction
from accel_micro.report.progress import duration
from accel_micro.report.words import clean, count, first_line
from accel_micro.stats.crossover import CLEAR, LOOKS, Call, Crossing

SIDES: Final[tuple[Which, Which]] = ("baseline", "contender")
_NONE: Final = "–"


def short(name: str) -> str:
    """A side's name for narrow columns: `bf16`."""
    return SHORT.get(name, clean(name))


def title(crossed: Crossed) -> str:
    """`cpu → cuda on workshop, torch 2.13.0, float32`."""
    first, second = (clean(side.title) for side in crossed.sides)
    return (
        f"{first} → {second} on {clean(crossed.machine)}, torch {clean(crossed.torch_version)}, "
        f"{clean(crossed.held)}, throughput"
    )


def summary(crossed: Crossed) -> str:
    """`8 ops: 5 cross, 2 contender faster at all sizes, 1 open`."""
    counts = Counter(_kind(crossed, row) for row in crossed.rows)
    told = ", ".join(f"{number} {kind}" for kind, number in counts.most_common())
    return f"{count(len(crossed.rows), 'row')}: {told or 'nothing was measured'}"


def _kind(crossed: Crossed, row: Swept[Subject]) -> str:
    found = answer(row)
    if found == "throughout":
        return f"{crossed.side(runs(row)[0].faster)} faster throughout"
    kinds = {
        "crosses": "with a crossing",
        "equal": "equal throughout",
        "partly equal": "equal at some sizes",
        "open": "not decided",
        "no time": "without a time",
        "not measured": "not measured",
    }
    return kinds[found]


def op_text(row: Swept[Subject]) -> str:
    """`matmul.mm fwd`."""
    return f"{clean(row.line.subject.op)} {short_direction(row.line.subject.direction)}"


def size_text(row: Swept[Subject]) -> str:
    """What the size is: `m=k=n 16–4096`; to the largest that was measured."""
    largest = max(row.calls, default=row.line.sweep.high)
    return f"{row.line.sweep.label} {row.line.sweep.low}–{largest}"


def faster_text(crossed: Crossed, row: Swept[Subject]) -> str:
    """`cpu ≤ 128 · cuda ≥ 160`, over the sizes that were measured."""
    return " · ".join(faster_texts(crossed, row))


def faster_texts(crossed: Crossed, row: Swept[Subject]) -> list[str]:
    """The same in its parts."""
    found = runs(row)
    if not row.calls:
        return [answer(row)]
    if not found:
        return ["not decided"]
    names = [name if name == "equal" else short(name) for name in (crossed.side(run.faster) for run in found)]
    if len(found) == 1 and not row.open:
        return [f"{names[0]} throughout"]
    smallest, largest = min(row.calls), max(row.calls)
    parts = []
    for name, run in zip(names, found, strict=True):
        if run.first == smallest:
            where = f"≤ {run.last}"
        elif run.last == largest:
            where = f"≥ {run.first}"
        else:
            where = f"{run.first}" if run.first == run.last else f"{run.first}–{run.last}"
        parts.append(f"{name} {where}")
    return parts


def crossing_text(one: Crossing) -> str:
    """`142 [128, 160]`."""
    return f"{rounded(one.at, one)} [{one.low}, {one.high}]"


def rounded(at: float, one: Crossing) -> str:
    """As many digits as the interval bears."""
    width = one.high - one.low
    step = 1
    while step * 1000 <= width:
        step *= 10
    return str(min(max(round(at / step) * step, one.low), one.high))


def crossings_text(row: Swept[Subject]) -> str:
    """All crossings of a row, or a dash."""
    return ", ".join(crossing_texts(row))


def crossing_texts(row: Swept[Subject]) -> list[str]:
    """The same one by one."""
    return list(map(crossing_text, row.crossings)) or [_NONE]


def times_as_fast(call: Call) -> str:
    """How many times as fast the contender is: `0.12×`, `31×`."""
    speed = 1 / call.ratio
    return f"{speed:.2f}×" if speed < 9.95 else f"{speed:.0f}×"


def ends_text(row: Swept[Subject]) -> str:
    """How many times as fast the contender is at the smallest and the largest size."""
    calls = row.calls
    if not calls:
        return _NONE
    first, last = calls[min(calls)], calls[max(calls)]
    return f"{times_as_fast(first)[:-1]} → {times_as_fast(last)}"


def bound_text(crossed: Crossed, row: Swept[Subject]) -> str:
    """`launch ≤ 512`: up to which size a side is launch-bound; a dash where no side has such clocks."""
    parts = []
    for which in SIDES:
        found = launch(row, which)
        if found is None:
            continue
        if found.up_to is None:
            text = "device"
        elif found.beyond is None:
            text = "launch"
        else:
            text = f"launch ≤ {found.up_to}"
        parts.append((short(crossed.side(which)), text))
    if len(parts) == 1:
        return parts[0][1]
    return ", ".join(f"{name} {text}" for name, text in parts) or _NONE


def notes(crossed: Crossed, row: Swept[Subject]) -> Iterator[str]:
    """What else a reader must know of a row, in sentences."""
    if row.line.sweep.rest:
        yield clean(row.line.sweep.rest)
    if row.left_out:
        yield _named(crossed, clean(first_line(row.left_out)))
    failed: dict[str, list[str]] = {}
    for size in row.sizes:
        if size.failure:
            failed.setdefault(_named(crossed, clean(first_line(size.failure))), []).append(str(size.size))
    for why, sizes in failed.items():
        yield f"no time at {', '.join(sizes)}: {why}"
    yield from _undecided(row)
    for one in row.crossings:
        where = f"between {one.low} and {one.high}"
        if one.factor <= crossed.factor:
            continue
        if row.stopped != "done":
            yield f"{where} there was no time for more"
        elif one.open:
            yield f"{where} the sides are too close to tell with {LOOKS.processes[-1]} processes a side"


def _undecided(row: Swept[Subject]) -> Iterator[str]:
    """Open sizes outside of crossings; inside, the interval tells."""
    opened = {size: call for size, call in row.calls.items() if size in row.open}
    few = [str(size) for size, call in opened.items() if call.processes < LOOKS.processes[0]]
    if few:
        yield f"too few processes yet to tell at {', '.join(few)}"
    for size, call in opened.items():
        if str(size) not in few:
            yield f"not decided at {size}: {needs_text(call)}"


def _named(crossed: Crossed, failure: str) -> str:
    """With a side's name in place of what it is called inside."""
    for which in SIDES:
        failure = re.sub(rf"\b{which}: ", f"{clean(crossed.side(which))}: ", failure, count=1)
    return failure


def needs_text(call: Call) -> str:
    """`0.99× as fast; about 12 more processes a side would tell`."""
    speed = f"{times_as_fast(call)} as fast" if units.is_finite_positive(call.ratio) else "no ratio"
    if call.needed is None:
        return f"{speed}; {call.reason}"
    return f"{speed}; about {count(call.needed, 'more process', 'more processes')} a side would tell"


def more_text(crossed: Crossed) -> str:
    """What would decide what is open; empty where nothing is, or more time does not help."""
    unfinished = [row for row in crossed.rows if row.stopped == "budget"]
    if not unfinished:
        return ""
    return f"The time ({duration(crossed.budget_seconds)}) was up for {count(len(unfinished), 'row')}; more of it:"


def explanations(crossed: Crossed) -> list[str]:
    """How to read it, once below all rows."""
    percent = f"{100 * crossed.alpha:g}"
    second = clean(crossed.sides[1].title)
    told = [
        f"Who is faster: at the sizes that were measured, by more than {units.percent(crossed.tolerance.value)}; in "
        f"at most {percent} of 100 rows is any size called for the wrong side.",
        "Crossing: estimate, and in brackets the last size of one side and the first of the other; so it lies between "
        f"them with {100 * (1 - crossed.alpha):g} %. Two crossings between neighbouring sizes are not seen.",
        f"Speed: how many times as fast {second} is, at the smallest and the largest size. Sizes where all processes "
        f"are {CLEAR:g} times apart are decided by two a side.",
    ]
    if any(launch(row, which) for row in crossed.rows for which in SIDES):
        told.append(
            "launch ≤ n: up to that size enqueueing a call takes longer than running it, so a faster device changes "
            "nothing there; fewer, larger calls do (larger batches, fused ops, CUDA graphs)."
        )
    if any(row.left_out for row in crossed.rows):
        told.append(f"Sizes of which a process would take more than {SLOW_SECONDS:.0f} s are left out.")
    if crossed.tolerance.note:
        told.append(f"Tolerance: {clean(crossed.tolerance.note)}.")
    return told
