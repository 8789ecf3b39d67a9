"""A calibration for readers: whether the machine can be trusted, what it can show, and what to do if it cannot."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from accel_micro.measure.flags import REMEDIES
from accel_micro.measure.records import Record
from accel_micro.report.printing import trimmed
from accel_micro.report.progress import duration
from accel_micro.report.units import percent, quantity
from accel_micro.report.words import clean, count, first_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from accel_micro.results.calibrations import CalibratedCase, Calibration

LEGEND: Final = (
    "Spread: standard deviation of the processes' times. Itself: what 95 in 100 comparisons of the case with "
    "itself stay below, ten processes a side. Other mode: processes that ran in one, and how many times slower. "
    "p: of all A against all B."
)

REMEDY_EXCEEDS: Final = (
    "`accel-micro doctor` says what disturbs this machine; what comes at regular moments disturbs most. End it, or "
    "give the run cores of its own (taskset, numactl), then calibrate again.",
    "Until then a regression found here is a hint: confirm it on another machine.",
)
REMEDY_SHORT: Final = ("Give it more time: `accel-micro calibrate --minutes {minutes}`.",)


def headline(calibration: "Calibration") -> str:
    """Blessed or not, in one line."""
    where = f"{clean(calibration.machine)}, {calibration.device}, torch {clean(calibration.torch_version)}"
    return f"{where}: {verdict(calibration)}"


def verdict(calibration: "Calibration") -> str:
    """The same without the machine's name."""
    if calibration.blessed:
        return f"comparisons can be trusted, for differences above {percent(calibration.tolerance)}"
    if is_short(calibration):
        return "not enough was measured to tell"
    return "comparisons cannot be trusted"


def is_short(calibration: "Calibration") -> bool:
    """Not blessed for want of comparisons alone."""
    from accel_micro.stats.calibration import FEWEST_COMPARISONS

    return not calibration.blessed and calibration.comparisons < FEWEST_COMPARISONS


def facts(calibration: "Calibration") -> Iterator[tuple[str, str]]:
    """What was found, as label and sentence."""
    c = calibration
    cases = count(len(c.cases), "case")
    if c.why_not:
        yield "Why not", f"{clean(c.why_not)}."
    yield (
        "Measured",
        f"{count(c.processes, 'process', 'processes')} of {cases} in {duration(c.seconds)}, "
        f"A B B A, all of the same build.",
    )
    yield "False alarms", _alarms(c)
    yield "Tolerance", _tolerance(c)
    if c.spread is not None and c.worst_spread is not None:
        yield (
            "Processes",
            f"differ by {percent(c.spread)} (standard deviation; {percent(c.worst_spread)} in the worst case).",
        )
    if c.modes:
        yield (
            "Speed modes",
            f"{percent(c.modes)} of the processes ran in another speed mode, typically {_times(c.slowdown)}.",
        )
    else:
        yield "Speed modes", "all processes of a case ran in one."
    yield "Drift", _drift(c)
    if c.below_full_speed is not None:
        yield "Below full speed", f"{percent(c.below_full_speed)} of the samples."
    if c.flags:
        yield "Flags", ", ".join(f"{clean(name)} ({number})" for name, number in c.flags.items()) + "."
    yield "Shows, in one case", _detectable(c)


def remedies(calibration: "Calibration") -> tuple[str, ...]:
    """What to do, when it is not blessed."""
    if calibration.blessed:
        return ()
    if is_short(calibration):
        return tuple(text.format(minutes=_minutes_needed(calibration)) for text in REMEDY_SHORT)
    flagged = [REMEDIES[name] for name in calibration.flags if name in REMEDIES]
    told = [f"Most frequent flag: {flagged[0]}."] if flagged else []
    return (*REMEDY_EXCEEDS, *told)


def print_calibration(calibration: "Calibration", failed: Sequence[Record], console: "Console") -> None:
    """Write it to a terminal, a file or a pipe.

    Args:
        failed: records of cases without a time.
    """
    with trimmed(console):
        _print(calibration, failed, console)


def _print(calibration: "Calibration", failed: Sequence[Record], console: "Console") -> None:
    from rich.text import Text

    style = "bold green" if calibration.blessed else "bold yellow"
    mark = "✓" if calibration.blessed else "!"
    console.print(Text(f"{mark} {headline(calibration)}", style), soft_wrap=True)
    console.print()
    console.print(_grid(facts(calibration)))
    console.print()
    console.print(_table(calibration.cases))
    console.print(Text(LEGEND, "dim"))
    if failed:
        console.print()
        for record in failed:
            why = (
                record.skipped or (record.failure and f"{record.failure.kind}: {record.failure.detail}") or ""
            )
            console.print(Text(f"✗ {clean(str(record.case))}: {first_line(why)}", "dim"), soft_wrap=True)
    advice = remedies(calibration)
    if advice:
        console.print()
        console.print(Text("What to do", "bold"))
        console.print(_grid(("→", text) for text in advice))


def to_json(calibration: "Calibration") -> dict[str, Any]:
    """Plain data: the stored line, and the sentences that people read."""
    return {
        **calibration.to_json(),
        "headline": headline(calibration),
        "remedies": list(remedies(calibration)),
    }


def _alarms(c: "Calibration") -> str:
    if c.false_positive_rate is None:
        return "no case ran often enough to be compared with itself."
    return (
        f"{c.alarms} of {count(c.comparisons, 'comparison')} of the build with itself found a difference "
        f"({c.side} processes a side). By all their p-values {percent(c.false_positive_rate)} would, between "
        f"{percent(c.false_positive_low)} and {percent(c.false_positive_high)}; {100 * c.alpha:g} % is promised. "
        f"A rate of {percent(c.findable_rate)} would have been noticed four times in five."
    )


def _tolerance(c: "Calibration") -> str:
    if c.difference is None or c.worst_difference is None:
        return f"{percent(c.tolerance)}, the least there is: nothing could be compared with itself."
    found = (
        f"of a build with itself 95 in 100 comparisons, ten processes a side, stay below "
        f"{percent(c.difference)} ({percent(c.worst_difference)} in the worst case)"
    )
    least = "; 2 % is the least there is" if c.difference < c.tolerance else ""
    return f"{percent(c.tolerance)}: {found}{least}."


def _drift(c: "Calibration") -> str:
    if c.drift is None or c.drift_low is None or c.drift_high is None:
        return "too few processes to tell."
    hours = c.seconds / 3600
    run = f"{_change(hours * c.drift)} over the run, " if hours < 1 else ""
    text = f"{run}{_change(c.drift)} an hour, between {_change(c.drift_low)} and {_change(c.drift_high)}."
    if c.halves:
        text += (
            f" In {c.halves} of {count(len(c.cases), 'case')} the second half of the run differs from the first: "
            "compare only what was measured interleaved (`accel-micro compare --measure`)."
        )
    return text


def _detectable(c: "Calibration") -> str:
    shown = [
        f"{'nothing' if change is None else percent(change)} in {count(minutes, 'minute')}"
        for minutes, change in sorted(c.detectable.items())
    ]
    return f"changes of {', '.join(shown)} (found four times in five)."


def _minutes_needed(c: "Calibration") -> int:
    from accel_micro.stats.calibration import FEWEST_COMPARISONS

    factor = FEWEST_COMPARISONS / c.comparisons if c.comparisons else FEWEST_COMPARISONS
    return max(5, int(1.5 * factor * c.seconds / 60) + 1)


def _change(share: float) -> str:
    return ("−" if share < 0 else "+") + percent(abs(share))


def _times(slowdown: float) -> str:
    return f"{slowdown:.2f} times slower" if slowdown >= 1 else f"{1 / slowdown:.2f} times faster"


def _grid(rows: Any) -> "RenderableType":
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in rows:
        grid.add_row(Text(label), Text(text))
    return grid


def _table(cases: "Sequence[CalibratedCase]") -> "RenderableType":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("Case", overflow="fold")
    for title in ("Time", "Processes", "each", "Spread", "Itself", "Other mode", "p"):
        table.add_column(title, justify="right", no_wrap=True)
    for case in cases:
        table.add_row(
            Text(clean(case.case)),
            quantity(case.seconds, "s"),
            str(case.processes),
            f"{case.seconds_a_process:.1f} s",
            "–" if case.spread is None else percent(case.spread),
            "–" if case.difference is None else percent(case.difference),
            f"{case.others} × {case.slowdown:.2f}" if case.others else "–",
            "<0.001" if case.p_value < 0.001 else f"{case.p_value:.3f}",
        )
    return table
