"""The ledger: every build ever seen, kept beside the results, so that sharing one shares the other.

Records are folded when read: builds by id, wheels by file name. Nothing is ever forgotten, and the order of
the lines does not matter. (The file is not called `.json`: asv takes every such file for a result.)
"""

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from packaging.version import InvalidVersion, Version

from accel_micro.builds import lines
from accel_micro.builds.identity import CHANNELS, ID_LENGTH, Build, public_version
from accel_micro.builds.lines import Installation, Record
from accel_micro.builds.release_dates import RELEASE_DATES
from accel_micro.builds.wheels import Wheel, changed, completed, merged

FILE_NAME: Final = "builds.jsonl"
SHORTEST_PREFIX: Final = 4


class UnknownBuild(LookupError):
    """No build goes by that name; the message says what is known."""


class AmbiguousBuild(UnknownBuild):
    """Several builds go by that name; the message lists them."""


class Ledger:
    """The builds that a folder of results knows.

    Args:
        path: the ledger's file; it need not exist.
        problems: where lines that are no records, and files that two machines know differently, are named.
    """

    def __init__(self, path: Path, problems: list[str] | None = None) -> None:
        self.path = path
        self._builds: dict[str, Build] = {}
        self._wheels: dict[str, Wheel] = {}
        self._wheels_of: dict[str, set[str]] = {}
        self._installations: dict[Installation, None] = {}
        self._dates: dict[str, int] | None = None
        for record in lines.read(path, problems):
            self._fold(record, problems)

    @classmethod
    def beside(cls, results: Path, problems: list[str] | None = None) -> "Ledger":
        """The ledger of a folder of results."""
        return cls(results / FILE_NAME, problems)

    def __iter__(self) -> Iterator[Build]:
        return iter(self.ordered())

    def __contains__(self, build_id: str) -> bool:
        return build_id in self._builds

    def __getitem__(self, build_id: str) -> Build:
        return self._builds[build_id]

    def add(self, build: Build) -> Build:
        """Know a build while this object lives, without writing; returns it with all that is known of it."""
        self._fold(build)
        return self._builds[build.id]

    def remember(self, build: Build, now_milliseconds: int | None = None) -> Build:
        """Know a build for good. Where nothing tells its date, that is when it was first remembered."""
        self.remember_all([build], now_milliseconds)
        return self._builds[build.id]

    def remember_all(self, records: Iterable[Record], now_milliseconds: int | None = None) -> int:
        """Know builds, wheels and installations for good, all in one write; returns how many told anything new.

        What a wheel does not tell stays as it was known. `broken` is not among what it tells: see `mark_broken`.

        Raises:
            ChangedFile: a wheel has other bytes than those known under its name. Nothing is written then.
        """
        records = list(records)
        if not records:
            return 0
        now = now_milliseconds or int(time.time() * 1000)
        stored = Ledger(self.path)  # another run may have written meanwhile
        known: dict[Record, None] = {}
        told: dict[Record, None] = {}
        for record in records:
            before: Record | None
            if isinstance(record, Build):
                before = stored._builds.get(record.id)
                if record.date_milliseconds is None and (before is None or before.date_milliseconds is None):
                    record = replace(record, date_milliseconds=now)
                after: Record = stored.add(record)
            elif isinstance(record, Wheel):
                before = stored._wheels.get(record.file_name)
                after = completed(before, record, now)
                stored._fold(after)
            else:
                before = record if record in stored._installations else None
                after = record
                stored._fold(after)
            known[after] = None
            if after != before:
                told[after] = None
        lines.append(self.path, told)
        for record in known:
            self._fold(record)
        return len(told)

    def is_news(self, record: Record) -> bool:
        """Whether a record tells what is not known yet."""
        if isinstance(record, Build):
            known = self._builds.get(record.id)
            return known is None or self._together(known, record) != known
        if isinstance(record, Wheel):
            before = self._wheels.get(record.file_name)
            return before is None or completed(before, record, 0) != before
        return record not in self._installations

    def wheels(self, build_id: str | None = None) -> list[Wheel]:
        """The wheels of a build, or all, by file name."""
        if build_id is None:
            return [wheel for _, wheel in sorted(self._wheels.items())]
        return [self._wheels[name] for name in sorted(self._wheels_of.get(build_id, ()))]

    def wheel(self, file_name: str) -> Wheel | None:
        """What is known of a file."""
        return self._wheels.get(file_name)

    def installations(self, build_id: str) -> list[Installation]:
        """Interpreters noted to have a build, the latest first. Check that they still do."""
        return [found for found in reversed(self._installations) if found.build_id == build_id]

    def mark_broken(self, file_name: str, reason: str | None, now_milliseconds: int | None = None) -> Wheel:
        """Note for good why a wheel cannot be installed, or with None that it can.

        Raises:
            KeyError: no such wheel is known.
        """
        known = self._wheels[file_name]
        if known.broken == reason:
            return known
        return self._revise(replace(known, broken=reason), now_milliseconds)

    def accept(self, wheel: Wheel, now_milliseconds: int | None = None) -> Wheel:
        """Take a file of a known name with other bytes for the right one, for good: what `ChangedFile` refuses."""
        known = self._wheels.get(wheel.file_name)
        replaced = known.replaced + 1 if known else wheel.replaced
        return self._revise(replace(wheel, replaced=replaced), now_milliseconds)

    def conflict(self, wheel: Wheel) -> str | None:
        """What tells that a wheel is another file than the one known by its name, or None."""
        known = self._wheels.get(wheel.file_name)
        return changed(known, wheel) if known else None

    def ordered(self, channel: str | None = None) -> list[Build]:
        """Builds from old to new, of one channel or all."""
        dates = self._all_dates()
        chosen = (b for b in self._builds.values() if channel is None or b.channel == channel)
        return sorted(chosen, key=lambda b: (dates[b.id], CHANNELS.index(b.channel), b.id))

    def date_milliseconds(self, build_id: str) -> int:
        """When a build appeared, as far as it is known; 0 when nothing at all tells.

        Raises:
            KeyError: the build is not in the ledger.
        """
        return self._all_dates()[build_id]

    def resolve(self, name: str) -> Build:
        """The build called `name`: a version, a nightly's date, a channel (its newest) or the start of an id.

        Raises:
            UnknownBuild, AmbiguousBuild: none or several are.
        """
        if name in CHANNELS:
            builds = self.ordered(name)
            if not builds:
                raise UnknownBuild(
                    f"no {name} build is known yet; `accel-micro builds sync` asks the indexes"
                )
            return builds[-1]
        version = public_version(name)
        digits = name.replace("-", "") if re.fullmatch(r"\d{4}-\d\d-\d\d|\d{8}", name) else None
        found = [b for b in self._builds.values() if name == b.version or version == b.version]
        if not found and digits is not None:
            found = [b for b in self._builds.values() if b.channel == "nightly" and b.id.startswith(digits)]
        if not found and re.fullmatch(rf"[0-9a-f]{{{SHORTEST_PREFIX},{ID_LENGTH}}}", name):
            found = [b for b in self._builds.values() if b.id.startswith(name)]
        if len(found) > 1:
            raise AmbiguousBuild(
                f"{name} may be " + " or ".join(sorted(f"{b.version} ({b.id[:12]})" for b in found))
            )
        if not found:
            known = ", ".join(b.version for b in self.ordered()[-8:]) or "none"
            raise UnknownBuild(f"no build is called {name!r}; newest known: {known}")
        return found[0]

    def _revise(self, wheel: Wheel, now_milliseconds: int | None) -> Wheel:
        now = now_milliseconds or int(time.time() * 1000)
        known = self._wheels.get(wheel.file_name)
        later = max(now, known.changed_milliseconds + 1) if known else now
        wheel = replace(
            wheel,
            changed_milliseconds=later,
            first_seen_milliseconds=wheel.first_seen_milliseconds or now,
        )
        lines.append(self.path, [wheel])
        self._fold(wheel)
        return self._wheels[wheel.file_name]

    def _fold(self, record: Record, problems: list[str] | None = None) -> None:
        if isinstance(record, Build):
            self._fold_build(record)
        elif isinstance(record, Wheel):
            self._fold_wheel(record, problems)
        else:
            self._installations.pop(record, None)
            self._installations[record] = None

    def _fold_build(self, build: Build) -> None:
        known = self._builds.get(build.id)
        together = build if known is None else self._together(known, build)
        commit = together.git_version or next(filter(None, self._commits(build.id)), None)
        self._builds[build.id] = (
            together if commit == together.git_version else replace(together, git_version=commit)
        )
        self._dates = None

    def _commits(self, build_id: str) -> Iterator[str | None]:
        names = self._wheels_of.get(build_id, ())
        return (self._wheels[name].git_version for name in sorted(names))

    @staticmethod
    def _together(known: Build, build: Build) -> Build:
        if known == build:
            return known
        dates = [d for d in (known.date_milliseconds, build.date_milliseconds) if d is not None]
        commits = [commit for commit in (known.git_version, build.git_version) if commit is not None]
        return replace(
            build if known.version.startswith("nightly ") else known,  # the id alone told no full version
            date_milliseconds=min(dates, default=None),
            git_version=min(commits, default=None),
            main_commit=known.main_commit or build.main_commit,
        )

    def _fold_wheel(self, wheel: Wheel, problems: list[str] | None) -> None:
        known = self._wheels.get(wheel.file_name)
        if known is not None:
            difference = changed(known, wheel) if known.replaced == wheel.replaced else None
            if difference and problems is not None:
                problems.append(f"{self.path}: {wheel.file_name} is known as two files: {difference}")
            wheel = merged(known, wheel)
            self._wheels_of[known.build_id].discard(wheel.file_name)
        self._wheels[wheel.file_name] = wheel
        self._wheels_of.setdefault(wheel.build_id, set()).add(wheel.file_name)
        build = self._builds.get(wheel.build_id)
        if build is not None and build.git_version is None and wheel.git_version is not None:
            self._fold_build(build)

    def _all_dates(self) -> dict[str, int]:
        if self._dates is not None:
            return self._dates
        dates = {b.id: b.date_milliseconds or 0 for b in self._builds.values()}
        # First seen is no release date: a release is at least as old as any higher version seen before it.
        releases = [(_parsed(b.version), b) for b in self._builds.values() if b.channel == "release"]
        bound: int | None = None
        for _, build in sorted(releases, key=lambda pair: pair[0], reverse=True):
            if bound is not None and build.version not in RELEASE_DATES:
                dates[build.id] = min(dates[build.id], bound - 1)
            bound = dates[build.id] if bound is None else min(bound, dates[build.id])
        self._dates = dates
        return dates


def _parsed(version: str) -> Version:
    try:
        return Version(version)
    except InvalidVersion:
        return Version("0")
