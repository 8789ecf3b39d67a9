"""Limits that a control group puts on this process: CPU quota and memory, versions 1 and 2 (Linux).

A group's limit binds everything below it, so the limit of a process is the least one from its own group up
to the topmost group that is visible. Kernel documentation: admin-guide/cgroup-v1 and admin-guide/cgroup-v2.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from accel_micro.host import read

_UNLIMITED_BYTES = 1 << 60
"""Version 1 writes "no limit" as the largest whole number of pages; nothing has an exbibyte of memory."""


@dataclass(frozen=True)
class Mount:
    """Where a hierarchy is mounted. `root` is the group seen there; version 2 has no `controllers`."""

    point: str
    root: str
    controllers: frozenset[str]


def parse_membership(text: str) -> dict[str, str]:
    """/proc/self/cgroup → {controller: path of the group}; version 2 has the controller `""`."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if number.isdigit() and colon and path.startswith("/"):
            for controller in controllers.split(","):
                found.setdefault(controller, path)
    return found


def parse_mounts(text: str) -> list[Mount]:
    """/proc/self/mountinfo → the control group hierarchies in it."""
    mounts = []
    for line in text.splitlines():
        left, dash, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if not dash or len(fields) < 5 or len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        controllers = frozenset() if kind[0] == "cgroup2" else frozenset(kind[2].split(","))
        mounts.append(Mount(_unescape(fields[4]), _unescape(fields[3]), controllers))
    return mounts


def _unescape(path: str) -> str:
    return re.sub(r"\\([0-3][0-7]{2})", lambda match: chr(int(match[1], 8)), path)


def groups(membership: dict[str, str], mounts: list[Mount], controller: str) -> list[str]:
    """Directories of the groups that bind this process, its own first; both versions when both are mounted.

    A container may see its own group as the root of the mount, or a membership that lies outside the mount:
    then the root of the mount is all there is to read.
    """
    found: list[str] = []
    for mount in mounts:
        if mount.controllers and controller not in mount.controllers:
            continue
        path = membership.get(controller if mount.controllers else "")
        if path is None:
            continue
        below = _relative(path, mount.root)
        for part in (below, *below.parents):
            found.append(str(PurePosixPath(mount.point) / part))
    return list(dict.fromkeys(found))


def _relative(path: str, root: str) -> PurePosixPath:
    try:
        relative = PurePosixPath(path).relative_to(root)
    except ValueError:
        return PurePosixPath()
    return PurePosixPath() if ".." in relative.parts else relative


def parse_cpu_max(text: str) -> float | None:
    """cpu.max of version 2 (`quota period`, `max period`) → cores; None without a limit."""
    parts = text.split()
    quota, period = (
        read.to_integer(parts[0] if parts else ""),
        read.to_integer(parts[1]) if len(parts) > 1 else 100_000,
    )
    return _cores(quota, period)


def _cores(quota: int | None, period: int | None) -> float | None:
    return quota / period if quota and period and quota > 0 and period > 0 else None


def _own_groups(controller: str, root: Path) -> Iterator[str]:
    membership = parse_membership(read.text("proc/self/cgroup", root) or "")
    mounts = parse_mounts(read.text("proc/self/mountinfo", root) or "")
    for directory in groups(membership, mounts, controller):
        yield directory.lstrip("/")


def quota_cores(root: Path = read.ROOT) -> float | None:
    """Cores' worth of CPU time that this process may use; None without a limit."""
    limits = []
    for directory in _own_groups("cpu", root):
        maximum = read.text(f"{directory}/cpu.max", root)
        limits.append(parse_cpu_max(maximum) if maximum else None)
        quota = read.integer(f"{directory}/cpu.cfs_quota_us", root)
        limits.append(_cores(quota, read.integer(f"{directory}/cpu.cfs_period_us", root)))
    return min((limit for limit in limits if limit is not None), default=None)


def memory_limit_bytes(root: Path = read.ROOT) -> int | None:
    """Bytes of memory that this process and its group may hold; None without a limit."""
    limits = []
    for directory in _own_groups("memory", root):
        for name in ("memory.max", "memory.high", "memory.limit_in_bytes"):
            limits.append(read.integer(f"{directory}/{name}", root))
    return min((limit for limit in limits if limit and 0 < limit < _UNLIMITED_BYTES), default=None)


def throttled(root: Path = read.ROOT) -> tuple[int, int] | None:
    """(periods, periods in which the quota ran out) since the group was made, of the group throttled most."""
    found = []
    for directory in _own_groups("cpu", root):
        counts = parse_stat(read.text(f"{directory}/cpu.stat", root) or "")
        if counts.get("nr_periods"):
            found.append((counts["nr_periods"], counts.get("nr_throttled", 0)))
    return max(found, key=lambda pair: pair[1] / pair[0], default=None)


def parse_stat(text: str) -> dict[str, int]:
    """A file of lines `name number` → the numbers by name."""
    found = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        number = read.to_integer(value)
        if name and number is not None:
            found[name] = number
    return found
