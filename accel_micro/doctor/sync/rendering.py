"""The audit for people (rich) and for programs (plain data)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from accel_micro.doctor.rendering import print_hanging
from accel_micro.doctor.sync.audit import AGREEMENT, OURS, TURNS, Audit
from accel_micro.report.printing import trimmed
from accel_micro.report.units import quantity

_STYLES: Final = {"right": "green", "too": "yellow", "impossible": "bold red", "no": "bold red"}


def render(audits: Sequence[Audit], console: Console) -> None:
    """Print a table for each workload, what was done, what the verdicts rest on, and one line that sums up."""
    with trimmed(console):
        for audit in audits:
            _print_title(audit, console)
            _print_table(audit, console)
        _print_group(console, "What was done", _done(audits))
        _print_group(console, "Left out", _left_out(audits))
        notes = [("", text) for audit in audits for text in _notes(audit)]
        known = {audit.known_by: None for audit in audits}
        basis = [("", f"The truth is known by {witness}.") for witness in known]
        _print_group(console, "What the verdicts rest on", [*basis, ("", _basis()), *notes])
        print_hanging(console, Text(), Text(summary(audits)))


def to_json(audits: Sequence[Audit]) -> dict[str, Any]:
    """The audits as plain data."""
    return {
        "audits": [{**asdict(audit), "right": audit.right} for audit in audits],
        "agreement": AGREEMENT,
        "right": bool(audits) and all(audit.right for audit in audits),
    }


def summary(audits: Sequence[Audit]) -> str:
    """One sentence: whether ours is right, and where others are not."""
    if not audits:
        return "Nothing was audited."
    wrong = [audit for audit in audits if not audit.right]
    if wrong:
        where = ", ".join(f"{audit.workload} on {audit.device}" for audit in wrong)
        return f"Ours cannot be trusted here: {where}. Take no timings until that is understood."
    others = [row for audit in audits for row in audit.rows if row.way != OURS]
    misled = sum(not row.right for row in others)
    return f"Ours is right everywhere. Of {len(others)} other readings {misled} are not."


def _print_title(audit: Audit, console: Console) -> None:
    model = f" ({audit.model})" if audit.model else ""
    print_hanging(console, Text(), Text(f"{audit.device}{model}: {audit.what}", style="bold"))
    least = audit.least_seconds
    bound = "" if least is None else f"; by the measured peak at least {quantity(least, 's')}"
    truth = quantity(audit.true_seconds, "s")
    print_hanging(console, Text("  "), Text(f"In truth {truth} a call{bound}."))


def _print_table(audit: Audit, console: Console) -> None:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column("way", no_wrap=True)
    table.add_column("a call", justify="right", no_wrap=True)
    table.add_column("÷ truth", justify="right", no_wrap=True)
    table.add_column("verdict")
    for row in audit.rows:
        table.add_row(
            Text(row.way, style="bold" if row.way == OURS else ""),
            Text("" if row.seconds is None else quantity(row.seconds, "s")),
            Text("" if row.factor is None else _factor(row.factor)),
            Text(row.word, style=_STYLES.get(row.word.split()[0].strip(","), "")),
        )
    console.print()
    console.print(table)
    console.print()


def _print_group(console: Console, title: str, rows: Iterable[tuple[str, str]]) -> None:
    rows = list(rows)
    if not rows:
        return
    console.print(Text(title, style="bold"))
    for label, text in rows:
        print_hanging(console, Text(f"  {label + ': ' if label else ''}", style="dim"), Text(text))
    console.print()


def _done(audits: Sequence[Audit]) -> Iterator[tuple[str, str]]:
    """Each way once."""
    yield from {row.way: row.done for audit in audits for row in audit.rows}.items()


def _left_out(audits: Sequence[Audit]) -> Iterator[tuple[str, str]]:
    """Each way and reason once."""
    yield from {pair: None for audit in audits for pair in audit.left_out}


def _factor(factor: float) -> str:
    return f"{factor:.2g}" if factor < 0.1 else f"{factor:.2f}" if factor < 100 else f"{factor:.0f}"


def _notes(audit: Audit) -> Iterator[str]:
    if audit.problem:
        yield f"{audit.workload} on {audit.device}: {audit.problem}."
    if audit.unlike:
        names = ", ".join(row.way for row in audit.unlike)
        yield (
            f"{audit.device} works while it is called, so all ways must read alike, and {names} did not with the "
            f"{audit.workload} work: other programs had the cores, or the timer's own cost shows."
        )


def _basis() -> str:
    return (
        f"Each way is read in {TURNS} turns with the witness; right is a median ratio within {100 * AGREEMENT:.0f} %. "
        "Impossible is what is faster than the best rate that this machine was measured to reach."
    )
