"""The ledger: every build ever seen, kept beside the results, so that sharing one shares the other.

One JSON line a build. Lines are only ever added, each in one write, and folded by id when read: two runs may
add at once, and two shared ledgers are merged by putting one after the other. (Not `.json`: asv takes every
such file for a result.)
"""

import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from packaging.version import InvalidVersion, Version

from accel_micro.builds.identity import CHANNELS, ID_LENGTH, Build, public_version
from accel_micro.builds.release_dates import RELEASE_DATES

FILE_NAME: Final = "builds.jsonl"
SCHEMA: Final = 1
SHORTEST_PREFIX: Final = 4


class UnknownBuild(LookupError):
    """No build goes by that name; the message says what is known."""


class AmbiguousBuild(UnknownBuild):
    """Several builds go by that name; the message lists them."""


class Ledger:
    """The builds that a folder of results knows.

    Args:
        path: the ledger's file; it need not exist.
        problems: where lines that are no builds are named, when given; they are skipped.
    """

    def __init__(self, path: Path, problems: list[str] | None = None) -> None:
        self.path = path
        self._builds: dict[str, Build] = {}
        for build in _read(path, problems):
            self._fold(build)

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
        stored = next((known for known in _read(self.path, None) if known.id == build.id), None)
        if build.date_milliseconds is None and (stored is None or stored.date_milliseconds is None):
            build = replace(build, date_milliseconds=now_milliseconds or int(time.time() * 1000))
        self._fold(build)
        known = self._builds[build.id]
        if stored != known:
            _append(self.path, known)
        return known

    def ordered(self, channel: str | None = None) -> list[Build]:
        """Builds from old to new, of one channel or all."""
        dates = self._dates()
        chosen = (b for b in self._builds.values() if channel is None or b.channel == channel)
        return sorted(chosen, key=lambda b: (dates[b.id], CHANNELS.index(b.channel), b.id))

    def date_milliseconds(self, build_id: str) -> int:
        """When a build appeared, as far as it is known; 0 when nothing at all tells.

        Raises:
            KeyError: the build is not in the ledger.
        """
        return self._dates()[build_id]

    def resolve(self, name: str) -> Build:
        """The build called `name`: a version, a nightly's date, a channel (its newest) or the start of an id.

        Raises:
            UnknownBuild, AmbiguousBuild: none or several are.
        """
        if name in CHANNELS:
            builds = self.ordered(name)
            if not builds:
                raise UnknownBuild(f"no {name} build is known yet")
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

    def _fold(self, build: Build) -> None:
        known = self._builds.get(build.id)
        if known is None:
            self._builds[build.id] = build
            return
        dates = [d for d in (known.date_milliseconds, build.date_milliseconds) if d is not None]
        self._builds[build.id] = replace(
            build if known.version.startswith("nightly ") else known,  # the id alone told no full version
            date_milliseconds=min(dates, default=None),
            git_version=known.git_version or build.git_version,
        )

    def _dates(self) -> dict[str, int]:
        dates = {b.id: b.date_milliseconds or 0 for b in self._builds.values()}
        # First seen is no release date: a release is at least as old as any higher version seen before it.
        releases = [(_parsed(b.version), b) for b in self._builds.values() if b.channel == "release"]
        bound: int | None = None
        for _, build in sorted(releases, key=lambda pair: pair[0], reverse=True):
            if bound is not None and build.version not in RELEASE_DATES:
                dates[build.id] = min(dates[build.id], bound - 1)
            bound = dates[build.id] if bound is None else min(bound, dates[build.id])
        return dates


def _parsed(version: str) -> Version:
    try:
        return Version(version)
    except InvalidVersion:
        return Version("0")


def _read(path: Path, problems: list[str] | None) -> Iterable[Build]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            yield _from_json(json.loads(line))
        except (KeyError, TypeError, ValueError) as error:
            if problems is not None:
                problems.append(f"{path}:{number}: not a build, skipped ({type(error).__name__}: {error})")


def _from_json(data: Any) -> Build:
    if data["schema"] != SCHEMA:
        raise ValueError(f"build of schema {data['schema']!r}, this version reads {SCHEMA}")
    date, git_version = data["date_milliseconds"], data["git_version"]
    build = Build(
        id=str(data["id"]),
        channel=str(data["channel"]),
        version=str(data["version"]),
        date_milliseconds=None if date is None else int(date),
        git_version=None if git_version is None else str(git_version),
    )
    if not re.fullmatch(rf"[0-9a-f]{{{ID_LENGTH}}}", build.id) or build.channel not in CHANNELS:
        raise ValueError(f"id {build.id!r} of channel {build.channel!r}")
    return build


def _append(path: Path, build: Build) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps({"schema": SCHEMA, **asdict(build)}) + "\n"
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        os.write(handle, (("\n" if torn else "") + line).encode())
    finally:
        os.close(handle)
