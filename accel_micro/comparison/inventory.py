"""Which builds have records on which machine, told by the names of files: nothing else is read."""

import bisect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from accel_micro.builds import Ledger
from accel_micro.builds.identity import from_id
from accel_micro.measure.records import SUFFIX

_FILE: Final = re.compile(r"([0-9a-f]{8})-.+")


@dataclass(frozen=True)
class Inventory:
    """What a folder of results has.

    Attributes:
        ledger: knows every build in `measured`, for as long as this object lives.
        measured: machine → ids of the builds that have records there, from old to new.
    """

    results: Path
    ledger: Ledger
    measured: Mapping[str, tuple[str, ...]]

    def in_order(self, builds: Iterable[str]) -> list[str]:
        """These builds from old to new."""
        return sorted(set(builds), key=lambda one: (self.ledger.date_milliseconds(one), one))

    def newest(self, builds: Iterable[str]) -> str:
        """The newest of them, at least one."""
        return self.in_order(builds)[-1]

    def nearest(self, date_milliseconds: int, channel: str, builds: Iterable[str]) -> list[str]:
        """The last before and the first after a date; of that channel where it has any."""
        builds = list(builds)
        same = [one for one in builds if self.ledger[one].channel == channel]
        ordered = self.in_order(same or builds)
        dates = [self.ledger.date_milliseconds(one) for one in ordered]
        place = bisect.bisect_left(dates, date_milliseconds)
        return ordered[max(0, place - 1) : place + 1]


def look(results: Path, ledger: Ledger) -> Inventory:
    """What is in a folder of results. Builds that the ledger lacks are known by what their ids tell."""
    by_start: dict[str, list[str]] = {}
    for build in ledger:
        by_start.setdefault(build.id[:8], []).append(build.id)
    found: dict[str, set[str]] = {}
    for path in sorted(results.glob(f"*/*{SUFFIX}")):
        match = _FILE.match(path.name)
        if match is None:
            continue
        known = by_start.get(match[1], [])
        build_id = known[0] if len(known) == 1 else _first_build(path)
        if build_id is None:
            continue
        if build_id not in ledger:
            ledger.add(from_id(build_id))
            by_start.setdefault(build_id[:8], []).append(build_id)
        found.setdefault(path.parent.name, set()).add(build_id)
    inventory = Inventory(results, ledger, {})
    measured = {machine: tuple(inventory.in_order(builds)) for machine, builds in sorted(found.items())}
    return Inventory(results, ledger, measured)


class _Whose(msgspec.Struct):
    build: str


def _first_build(path: Path) -> str | None:
    """The build of the first record of a file that can be read."""
    with path.open("rb") as lines:
        for line in lines:
            try:
                build = msgspec.json.decode(line, type=_Whose).build
            except ValueError:
                continue
            if re.fullmatch(r"[0-9a-f]{40}", build):
                return build
    return None
