"""The words around the numbers: marks of flags, remedies, what an interval covers, a glossary."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from accel_micro.measure.flags import REMEDIES
from accel_micro.measure.records import Cold
from accel_micro.report import units
from accel_micro.report.rows import Report, Row
from accel_micro.stats.estimate import FEWEST_PROCESSES, Estimate

WIDEST_TEXT: Final = 110
"""Characters of a line of prose, however wide the terminal is."""

FAILURE_REMEDIES: Final[dict[str, str]] = {
    "wrong result": "repeat the case alone; if it stays wrong, report it to PyTorch with the error",
    "implausible": "the op may be lazy, cached or running elsewhere; see `accel-micro doctor`",
    "rejected": "leave the case out on this device, or report the reason to the makers of the backend",
    "crashed": "repeat the case alone; the system's or the driver's log may say why the process died",
    "timed out": "repeat the case alone, with a larger `default_benchmark_timeout` in asv.conf.json",
    "out of memory": "close other programs that hold the device's memory, or leave this shape out",
    "failed": "read the error; if this build lacks the kernel, mark the case as unsupported",
}
"""What a reader can do about each kind of failure."""

GLOSSARY: Final[dict[str, str]] = {
    "op": "What is timed, for example a matrix product.",
    "case": "Op × shape × dtype × device, forward or backward.",
    "build": "One torch wheel.",
    "clock": (
        "One of four ways to time a call. Latency: synchronise, one call, synchronise. Throughput: seconds "
        "per call when calls are queued back to back. Dispatch: host seconds to enqueue one call. Device: "
        "seconds for which one call keeps the device busy."
    ),
    "block": "Calls timed together, so many that the timer's own cost does not matter.",
    "sample": "Seconds per call from one block.",
    "speed-corrected": (
        "A sample taken while the machine ran below its full speed, scaled to full speed by what a probe of "
        "known work took beside it."
    ),
    "process": "One fresh interpreter, which takes twenty samples.",
    "trial": "All processes of a case on a build.",
    "estimate": "The median time of a trial, with an interval.",
    "launch-bound": (
        "Enqueueing a call takes longer than running it: the device waits for the host, and a faster kernel "
        "would change nothing."
    ),
    "device-bound": "Running a call takes longer than enqueueing it: the host waits for the device.",
    "peak": (
        "What this machine was measured to reach with this dtype and size of data, not what its maker states."
    ),
    "cold": (
        "A case whose calls take many sets of the same inputs in turn, so many that no cache holds them; in other "
        "cases each call finds its inputs where the last one left them."
    ),
    "first call": "The very first call in a process: initialisation, choice of algorithm, compilation.",
}
"""The words of the report and their meaning."""


@dataclass(frozen=True)
class Legend:
    """One flag that occurs in a report: its mark, name and remedy, and in how many cases it was raised."""

    mark: str
    name: str
    remedy: str
    cases: int


def assign_marks(names: Iterable[str]) -> dict[str, str]:
    """One letter a flag: the first of its name that is free.

    >>> assign_marks(["speed-corrected", "short block"])
    {'speed-corrected': 's', 'short block': 'h'}
    """
    marks: dict[str, str] = {}
    for name in names:
        letters = [letter for letter in f"{name}abcdefghijklmnopqrstuvwxyz" if letter.isalpha()]
        marks[name] = next((letter for letter in letters if letter not in marks.values()), "?")
    return marks


MARKS: Final = assign_marks(REMEDIES)


def flag_marks(row: Row) -> str:
    """The marks of a row's median, each once, as the legend orders them; `!` when some processes failed.

    Flags of the other clocks are left out: a busy host spoils dispatch and says nothing about a device-bound median.
    """
    raised = {flag.name for flag in row.flags if flag.clock == row.clock}
    return "".join(MARKS[name] for name in REMEDIES if name in raised) + ("!" if row.failures else "")


def legend(rows: Sequence[Row], *, all_clocks: bool = True) -> tuple[Legend, ...]:
    """The flags that occur in these rows; of the median alone, as `flag_marks` shows them, without `all_clocks`."""

    def is_raised(name: str, row: Row) -> bool:
        return any(flag.name == name and (all_clocks or flag.clock == row.clock) for flag in row.flags)

    counts = {name: sum(is_raised(name, row) for row in rows) for name in REMEDIES}
    return tuple(Legend(MARKS[name], name, REMEDIES[name], count) for name, count in counts.items() if count)


def interval_notes(rows: Sequence[Row]) -> tuple[str, ...]:
    """What the intervals of these rows cover, a sentence for each way in which they were made."""
    estimates = [row.headline for row in rows if row.headline is not None]
    notes = dict.fromkeys(_interval_note(e) for e in sorted(estimates, key=lambda e: -e.processes))
    return tuple(notes)


def _interval_note(e: Estimate) -> str:
    if e.confidence == 0:
        return "A time without an interval rests on a single sample."
    percent = f"{100 * e.confidence:.3g} %"
    if not e.within_only:
        return (
            f"From {e.processes} processes: the interval covers the time of a call with {percent} "
            "confidence; how processes differ is part of it (Student's t on the logs of their medians)."
        )
    ends = "smallest and largest"
    if e.order is not None and e.order[0] > 1:
        ends = f"{_ordinal(e.order[0])} and {_ordinal(e.order[1])}"
    covers = "covers the median within it" if e.processes == 1 else "spans those of the medians within both,"
    return (
        f"From {count(e.processes, 'process', 'processes')}: the interval {covers} with {percent} "
        f"confidence (the {ends} of {e.samples // e.processes} samples). Processes differ by more than that; "
        f"{FEWEST_PROCESSES} or more would tell by how much."
    )


def failure_remedy(kind: str) -> str:
    """What a reader can do about this kind of failure."""
    return FAILURE_REMEDIES.get(kind, FAILURE_REMEDIES["failed"])


def failure_title(row: Row) -> str:
    """`wrong result` or, when other processes of the case did better, `crashed in 1 of 3 processes`."""
    return "; ".join(
        f"{failure.kind} in {failure.processes} of {failure.of} processes"
        if failure.processes < failure.of
        else failure.kind
        for failure in row.failures
    )


def headline(report: Report) -> str:
    """How many cases were timed, failed and were skipped, in one line."""
    timed = sum(bool(row.estimates) for row in report.rows)
    failed, skipped = len(report.failed), sum(len(skip.cases) for skip in report.skips)
    parts = [f"{count(timed, 'case')} timed"]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{skipped} skipped"] if skipped else []
    return ", ".join(parts)


def clean(text: str) -> str:
    """Text from a record on one line, without characters that could move a terminal's cursor.

    >>> clean("a\\x1b[2J\\nb")
    'a\ufffd[2J b'
    """
    return "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text)


def first_line(text: str) -> str:
    """The first line of an error's detail that says something, clean."""
    return next((clean(line).strip() for line in text.splitlines() if line.strip()), "")


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 case`, `3 cases`."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


def _ordinal(n: int) -> str:
    suffix = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{suffix}"


def first_call(row: Row) -> str:
    """`93 ms` or, of a backend that counts its compilations, `112 ms, 101 ms compiling`; empty when unknown."""
    if row.first_call_seconds is None:
        return ""
    total = units.quantity(row.first_call_seconds, "s")
    if not row.compile_seconds:
        return total
    return f"{total}, {units.quantity(row.compile_seconds, 's')} compiling"


def cold_inputs(cold: Cold) -> str:
    """`9 sets in turn, of which a call reads 8.00 MB each; cache 33.6 MB (32 MiB, from /sys…)`."""
    read, cache = units.byte_count(round(cold.read_bytes)), units.byte_count(cold.cache_bytes)
    return f"{cold.sets} sets in turn, of which a call reads {read} each; cache {cache} ({cold.cache})"


def device_interval(low: float, high: float) -> str:
    """`12 to 34 µs`, or `up to 34 µs` when nothing is known from below."""
    most = units.quantity(high, "s", 2)
    if low <= 0:
        return f"up to {most}"
    least = units.quantity(low, "s", 2)
    same = least.split()[-1] == most.split()[-1]
    return f"{least.split()[0] if same else least} to {most}"


def wrapped(text: str, width: int, mark: str = "", hang: int = 0) -> list[str]:
    """Lines of a sentence in a terminal, those after the first below its text, to the right of the mark."""
    return textwrap.wrap(
        text,
        max(20, min(width, WIDEST_TEXT)),
        initial_indent=mark,
        subsequent_indent=" " * (len(mark) + hang),
        break_long_words=False,
        break_on_hyphens=False,
    )
