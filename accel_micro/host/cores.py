"""How many cores this process may keep busy. Needs the standard library alone and about a millisecond."""

import math
import os
import sys
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Final

from accel_micro.host import cgroups, read


def parse_cpu_list(text: str) -> list[int]:
    """The kernel's list of CPUs, `0-3,8,10-11` → [0, 1, 2, 3, 8, 10, 11]; the rest is left out."""
    found: set[int] = set()
    for part in text.replace("\n", ",").split(","):
        first, dash, last = part.strip().partition("-")
        low, high = read.to_integer(first), read.to_integer(last if dash else first)
        if low is not None and high is not None and 0 <= low <= high < 1 << 16:
            found.update(range(low, high + 1))
    return sorted(found)


def format_cpu_list(cpus: Collection[int]) -> str:
    """The inverse of `parse_cpu_list`, as short as it can be."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1][1:] = [cpu]
        else:
            parts.append([cpu])
    return ",".join("-".join(map(str, part)) for part in parts)


def affinity() -> set[int] | None:
    """The logical CPUs that this process may run on; None where the system has no such thing (macOS).

    Where OpenMP is told to bind threads, it binds this one too as soon as torch is imported, to a part of what the
    process may use. Then what this thread was allowed when this module was imported counts, with what others are now.
    """
    mine = _of_thread(0)
    if mine is None or not any(os.environ.get(name, "false").lower() != "false" for name in _BINDING):
        return mine
    return mine.union(_AT_FIRST or (), *(_of_thread(thread) or () for thread in _threads()))


def _of_thread(thread: int) -> set[int] | None:
    try:
        return os.sched_getaffinity(thread) if sys.platform == "linux" else None
    except OSError:
        return None


def _threads() -> list[int]:
    try:
        return [int(thread.name) for thread in Path("/proc/self/task").iterdir()]
    except OSError:
        return []


_BINDING: Final = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")
_AT_FIRST: Final = _of_thread(0)


def cores_of(cpus: Collection[int], root: Path = read.ROOT) -> int:
    """Number of physical cores behind these logical CPUs (Linux); one each where the kernel does not say."""
    unseen, cores = set(cpus), 0
    while unseen:
        cpu = unseen.pop()
        siblings = read.text(f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", root)
        unseen.difference_update(parse_cpu_list(siblings or ""))
        cores += 1
    return cores


def allowed(physical: int, quota: float | None) -> int:
    """The rule of `allowed_cores`: physical cores cut to the quota, rounded up, and never less than one."""
    return max(1, physical if quota is None else min(physical, math.ceil(quota)))


@cache
def allowed_cores() -> int:
    """Cores this process may keep busy: physical ones, within its affinity and its control group's CPU quota.

    On Apple silicon the performance cores alone, as torch does: the slowest thread decides.
    The affinity is the one at the first call, see `affinity`; torch changes that of its own threads later.
    """
    mine = affinity()
    if mine:
        physical: int | None = cores_of(mine)
    else:
        physical = read.sysctl_integer("hw.perflevel0.physicalcpu") or read.sysctl_integer("hw.physicalcpu")
    return allowed(physical or os.cpu_count() or 1, cgroups.quota_cores())
