"""Keeping environments below a limit on disk: what was not used for longest goes first, never what is in use.

What environments share is on disk once, linked from uv's cache. So removing one frees little before uv is told
to forget the packages that no environment links to any more.
"""

import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

from accel_micro.builds.disk import inodes
from accel_micro.builds.environments import Environments

LIMIT_VARIABLE: Final = "ACCEL_MICRO_ENVIRONMENTS_GB"
DEFAULT_LIMIT_GB: Final = 50.0

_Inodes = Mapping[tuple[int, int], int]


@dataclass(frozen=True)
class Removed:
    """An environment that was removed, or would be.

    Attributes:
        name: of its folder. version: of its torch.
        freed_bytes: what that alone frees, with what uv's cache held for it.
        used_at: when it was last asked for, seconds since 1970.
    """

    name: str
    version: str
    freed_bytes: int
    used_at: float


@dataclass
class Pruning:
    """What was done, or in a dry run would be.

    Attributes:
        limit_bytes: on disk, of environments and uv's cache for them together.
        before_bytes, after_bytes: on disk. Above the limit afterwards, all that is left is in use.
        removed: environments, those not used for longest first.
        forgotten: packages that uv's cache was told to forget.
        in_use: names of environments that were spared.
        leftovers: folders that killed runs had left, removed too.
    """

    limit_bytes: int
    before_bytes: int = 0
    after_bytes: int = 0
    removed: list[Removed] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    in_use: list[str] = field(default_factory=list)
    leftovers: list[Path] = field(default_factory=list)


def limit_bytes() -> int:
    """The limit that the user set in gigabytes (10⁹ bytes), else `DEFAULT_LIMIT_GB`.

    Raises:
        ValueError: the variable is no number from 0; the message names it.
    """
    text = os.environ.get(LIMIT_VARIABLE) or str(DEFAULT_LIMIT_GB)
    try:
        limit = float(text)
    except ValueError:
        limit = -1.0
    if not 0 <= limit < float("inf"):
        raise ValueError(f"{LIMIT_VARIABLE} is {text!r}, not a number of gigabytes")
    return int(limit * 1e9)


def prune(environments: Environments, limit: int, *, dry_run: bool = False) -> Pruning:
    """Remove environments until they and uv's cache for them take at most `limit` bytes.

    Raises:
        UvError: uv could not clean its cache.
    """
    done = Pruning(limit)
    _remove_leftovers(environments, done, dry_run)
    disk = _Disk(environments)
    done.before_bytes = disk.total()
    candidates = sorted(disk.environments, key=environments.used_at)
    while disk.total() > limit:
        package = disk.largest_unlinked()
        if package is not None:
            done.forgotten.append(package)
            disk.forget(package)
            if not dry_run:
                environments.uv.run("cache", "clean", package, cwd=environments.folder)
        elif candidates:
            name = candidates.pop(0)
            with environments.held_alone(name) as alone:
                if not alone:
                    done.in_use.append(name)
                    continue
                done.removed.append(
                    Removed(name, disk.versions[name], disk.freed_by(name), environments.used_at(name))
                )
                disk.remove(name)
                if not dry_run:
                    environments.remove(name)
        else:
            break
    done.after_bytes = disk.total()
    return done


class _Disk:
    """What is on disk, by what owns it."""

    def __init__(self, environments: Environments) -> None:
        found = list(environments)
        self.versions = {environment.name: environment.facts.version for environment in found}
        self.environments = {environment.name: _sizes(environment.folder) for environment in found}
        self.archives: dict[str, dict[tuple[int, int], int]] = defaultdict(dict)
        self.rest: dict[tuple[int, int], int] = {}
        if environments.uv.own_cache and environments.uv.cache is not None:
            self._read_cache(environments.uv.cache)

    def total(self) -> int:
        """Bytes, each file once."""
        return sum(_union([*self.environments.values(), *self.archives.values(), self.rest]).values())

    def largest_unlinked(self) -> str | None:
        """The package of which the cache holds most that no environment uses."""
        sizes = {package: self._unlinked(package) for package in self.archives}
        package = max(sizes, key=lambda name: sizes[name], default=None)
        return package if package is not None and sizes[package] > 0 else None

    def freed_by(self, name: str) -> int:
        """Bytes that removing an environment frees, when uv forgets what was only for it."""
        others = _union(sizes for other, sizes in self.environments.items() if other != name)
        return sum(size for inode, size in self.environments[name].items() if inode not in others)

    def remove(self, name: str) -> None:
        self.environments.pop(name)

    def forget(self, package: str) -> None:
        self.archives.pop(package)

    def _unlinked(self, package: str) -> int:
        used = _union(self.environments.values())
        return sum(size for inode, size in self.archives[package].items() if inode not in used)

    def _read_cache(self, cache: Path) -> None:
        archived: set[tuple[int, int]] = set()
        for package, folder in _archives(cache):
            sizes = _sizes(folder)
            self.archives[package].update(sizes)
            archived.update(sizes)
        self.rest = {inode: size for inode, size in _sizes(cache).items() if inode not in archived}


def _archives(cache: Path) -> Iterator[tuple[str, Path]]:
    """(package, folder) of each wheel that uv's cache holds unpacked."""
    for folder in cache.glob("archive-v*/*"):
        for info in folder.glob("*.dist-info"):
            yield canonicalize_name(info.name.split("-")[0]), folder
            break


def _sizes(folder: Path) -> dict[tuple[int, int], int]:
    return {identity: size for identity, size, _ in inodes(folder)}


def _union(parts: Iterable[_Inodes]) -> dict[tuple[int, int], int]:
    together: dict[tuple[int, int], int] = {}
    for part in parts:
        together.update(part)
    return together


def _remove_leftovers(environments: Environments, done: Pruning, dry_run: bool) -> None:
    for name, folder in environments.leftovers():
        with environments.held_alone(name) as alone:
            if alone:
                done.leftovers.append(folder)
                if not dry_run:
                    shutil.rmtree(folder, ignore_errors=True)
