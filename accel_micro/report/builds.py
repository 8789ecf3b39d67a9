"""Builds for people and programs: rows of a ledger, a table, one build in full, JSON."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from accel_micro.builds import Build, Ledger, Target, Wheel, choose_wheel
from accel_micro.builds.commits import commit_url, compare_url, same_commit
from accel_micro.builds.wheels import local_path
from accel_micro.report import units, words

if TYPE_CHECKING:
    from rich.console import Console

ID_LENGTH: Final = 8
"""Digits of an id that are shown, as asv shows them."""

STATES: Final = {
    "here": "on this disk",
    "listed": "an index lists it",
    "hidden": "no index lists it any more; its file may still be there",
    "broken": "it cannot be installed",
    "no wheel": "none is known for this Python, platform and variant",
}
"""What can be done about a build on this machine."""

_EMPTY: Final = "–"
_SAME: Final = "="
_GAP: Final = 2
_MACHINES_WIDTH: Final = 24
_DROPPED_FIRST: Final = ("Size", "PyTorch commit", "Variant", "Measured on", "Date", "State")


@dataclass(frozen=True)
class BuildRow:
    """One build.

    Attributes:
        build: itself.
        state: one of `STATES`.
        wheel: to install here, None where the state is `no wheel`, or an interpreter has the build.
        python: an interpreter that has the build.
        machines: that have results of it.
        before: the build before it in its channel.
    """

    build: Build
    state: str
    wheel: Wheel | None
    python: str | None
    machines: tuple[str, ...]
    before: Build | None

    @property
    def compare_url(self) -> str | None:
        """What came in since the build before, when both commits are known."""
        return compare_url(self.before, self.build) if self.before else None

    @property
    def same_as_before(self) -> bool:
        """Whether it is made from the commit of the build before: then they differ by noise alone."""
        return self.before is not None and same_commit(self.before, self.build)


def build_rows(
    ledger: Ledger,
    builds: Iterable[Build],
    targets: Sequence[Target],
    measured: Mapping[str, Iterable[str]] = {},
) -> list[BuildRow]:
    """Rows of these builds.

    Args:
        targets: for which a wheel is looked for, the first that has one.
        measured: start of an id → machines, see `builds.measured`.
    """
    before: dict[str, Build] = {}
    latest: dict[str, Build] = {}
    for build in ledger.ordered():
        if build.channel in latest:
            before[build.id] = latest[build.channel]
        latest[build.channel] = build
    rows = []
    for build in builds:
        wheels = ledger.wheels(build.id)
        wheel = next((found for target in targets if (found := choose_wheel(wheels, target))), None)
        python = next((found.python for found in ledger.installations(build.id)), None)
        machines = tuple(sorted(measured.get(build.id[:ID_LENGTH], ())))
        rows.append(BuildRow(build, _state(wheel, python), wheel, python, machines, before.get(build.id)))
    return rows


def print_builds(rows: Sequence[BuildRow], missing_days: Sequence[int], console: "Console") -> None:
    """A table of builds, and what is missing or broken, in words."""
    cells = [_cells(row) for row in rows]
    console.out("\n".join(_lines(cells, console.width)), highlight=False)
    if any(row.same_as_before for row in rows):
        console.print(
            f"{_SAME}: made from the same commit as the build before it.", markup=False, style="dim"
        )
    for state in STATES:
        if any(row.state == state for row in rows) and state != "listed":
            console.print(f"{state}: {STATES[state]}.", markup=False, style="dim")
    for row in rows:
        if row.wheel is not None and row.wheel.broken is not None:
            console.print(f"{row.build.version}: {words.first_line(row.wheel.broken)}", markup=False)
    if missing_days:
        text = ", ".join(map(day, missing_days[-10:])) + (" and earlier" if len(missing_days) > 10 else "")
        console.print(f"No nightly is known of {text}.", markup=False)


def print_build(row: BuildRow, wheels: Sequence[Wheel], console: "Console") -> None:
    """All that is known of one build."""
    build = row.build
    facts = {
        "version": build.version,
        "id": build.id,
        "channel": build.channel,
        "date": _date(build),
        "commit": build.git_version,
        "main commit": build.main_commit,
        "commit page": commit_url(build),
        "before it": row.before.version if row.before else None,
        "changes": row.compare_url,
        "state": f"{row.state}: {STATES[row.state]}",
        "interpreter": row.python,
        "measured on": ", ".join(row.machines),
    }
    if row.same_as_before:
        facts["changes"] = "none: the same commit as the build before"
    for name, value in facts.items():
        if value:
            console.print(f"{name:12} {words.clean(value)}", markup=False, soft_wrap=True)
    for wheel in wheels:
        chosen = row.wheel is not None and wheel.file_name == row.wheel.file_name
        console.print(
            f"\n{wheel.file_name}{'  (for this machine)' if chosen else ''}", markup=False, soft_wrap=True
        )
        size = "" if wheel.size_bytes is None else units.byte_count(wheel.size_bytes)
        told = {"variant": wheel.variant, "size": size, "sha256": wheel.sha256, "broken": wheel.broken}
        for name, value in told.items():
            if value:
                console.print(f"  {name:10} {words.clean(value)}", markup=False, soft_wrap=True)
        for place in wheel.places:
            listed = "listed" if place.listed else "hidden"
            console.print(f"  {listed:10} {words.clean(place.url)}", markup=False, soft_wrap=True)


def to_json(row: BuildRow) -> dict[str, Any]:
    """A row as plain data; sizes in bytes, dates as days."""
    wheel = row.wheel
    return {
        **asdict(row.build),
        "date": _date(row.build) or None,
        "state": row.state,
        "wheel": None if wheel is None else {**asdict(wheel), "urls": wheel.urls},
        "python": row.python,
        "measured_on": list(row.machines),
        "before": row.before.id if row.before else None,
        "commit_url": commit_url(row.build),
        "compare_url": row.compare_url,
        "same_commit_as_before": row.same_as_before,
    }


def day(milliseconds: int) -> str:
    """ISO day, UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).date().isoformat()


def _state(wheel: Wheel | None, python: str | None) -> str:
    if wheel is None:
        return "here" if python else "no wheel"
    if wheel.broken is not None:
        return "broken"
    if wheel.urls and local_path(wheel.urls[0]) is not None:
        return "here"
    return "listed" if wheel.listed else "hidden"


def _cells(row: BuildRow) -> dict[str, str]:
    wheel = row.wheel
    commit = row.build.main_commit or row.build.git_version or ""
    machines = ", ".join(row.machines)
    if len(machines) > _MACHINES_WIDTH:
        machines = f"{len(row.machines)} machines"
    texts = {
        "Date": _date(row.build),
        "Build": row.build.version,
        "Id": row.build.id[:ID_LENGTH],
        "Variant": wheel.variant if wheel else "",
        "Size": "" if wheel is None or wheel.size_bytes is None else units.byte_count(wheel.size_bytes),
        "State": row.state,
        "PyTorch commit": commit[:10] + (f" {_SAME}" if row.same_as_before else ""),
        "Measured on": machines,
    }
    return {title: words.clean(text) or _EMPTY for title, text in texts.items()}


def _that_fit(cells: Sequence[Mapping[str, str]], width: int) -> dict[str, int]:
    """Titles of the columns that fit, with their widths; what names a build is kept."""
    titles = list(cells[0]) if cells else []
    widths = {title: max(len(title), *(len(row[title]) for row in cells)) for title in titles}
    for title in _DROPPED_FIRST:
        if sum(widths.values()) + _GAP * (len(widths) - 1) > width:
            widths.pop(title, None)
    return widths


def _lines(cells: Sequence[Mapping[str, str]], width: int) -> list[str]:
    """Title, rule and rows. By hand, since Rich takes a second for a thousand rows."""
    widths = _that_fit(cells, width)

    def line(texts: Mapping[str, str]) -> str:
        padded = (
            texts[title].rjust(size) if title == "Size" else texts[title].ljust(size)
            for title, size in widths.items()
        )
        return (" " * _GAP).join(padded).rstrip()

    titles = {title: title for title in widths}
    rule = "─" * (sum(widths.values()) + _GAP * (len(widths) - 1))
    return [line(titles), rule, *map(line, cells)]


def _date(build: Build) -> str:
    return "" if build.date_milliseconds is None else day(build.date_milliseconds)
