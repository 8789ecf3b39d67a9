"""How large the last-level caches are that this process can use. Needs the standard library alone."""

import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from accel_micro.host import cores, read
from accel_micro.host.processor import parse_size
from accel_micro.host.system import virtual_machine

ASSUMED_BYTES: Final = 128 << 20
"""Where nothing tells: more than any processor has of which the kernel says nothing, as far as we know. Apple's
system-level cache, which no call of macOS gives, has up to 96 MB (M1 Ultra), that of Ampere's Altra 32 MB."""

_CPUS: Final = "sys/devices/system/cpu"
_MOST_INDICES: Final = 10
_LAST_LEVEL: Final = 3
"""Where the kernel lists none of that level there may still be one: some Arm servers do not list theirs."""


@dataclass(frozen=True)
class Cache:
    """Bytes of the last-level caches together, and where that is known from; `assumed` where nothing tells it."""

    bytes: int
    source: str
    assumed: bool = False


def last_level(root: Path = read.ROOT) -> Cache:
    """The last-level caches of the CPUs that this process may use, each once however many CPUs share it.

    A cache that only some of those CPUs share counts as a whole: it holds data of this process all the same. In a
    virtual machine it is what the hypervisor tells, which need not be what there is. py-cpuinfo is not asked: what it
    calls the L3 of an AMD processor is its L2 (`cache size` of /proc/cpuinfo; seen on a Zen 4 with 32 MB, as 1 MB).
    """
    listed = cores.parse_cpu_list(read.text(f"{_CPUS}/online", root) or "")
    mine = cores.affinity() if root == read.ROOT else None
    found: dict[tuple[int, ...], tuple[int, int]] = {}
    for cpu in sorted(mine or listed):
        level, size, shared = _farthest(cpu, root)
        found[shared] = max(found.get(shared, (0, 0)), (level, size))
    if found and all(level >= _LAST_LEVEL and size for level, size in found.values()):
        sizes = sorted(size for _, size in found.values())
        told = (
            _mebibytes(sizes[0])
            if len(set(sizes)) == 1
            else " to ".join(map(_mebibytes, (sizes[0], sizes[-1])))
        )
        each = told if len(sizes) == 1 else f"{len(sizes)} caches of {told}"
        by = ", as the host of this virtual machine tells it" if virtual_machine(root) else ""
        return Cache(sum(sizes), f"{each}, from /{_CPUS}/cpu*/cache{by}")
    macos = read.sysctl_integer("hw.l3cachesize")
    if macos:  # Intel's; Apple's own processors have none that is told
        return Cache(macos, "hw.l3cachesize")
    return Cache(
        ASSUMED_BYTES, f"assumed: {platform.system()} tells of no last-level cache here", assumed=True
    )


def _farthest(cpu: int, root: Path) -> tuple[int, int, tuple[int, ...]]:
    """Level, bytes and CPUs of the cache that is farthest from a CPU."""
    best: tuple[int, int, tuple[int, ...]] = (0, 0, (cpu,))
    for index in range(_MOST_INDICES):
        folder = f"{_CPUS}/cpu{cpu}/cache/index{index}"
        level, kind = read.integer(f"{folder}/level", root), read.text(f"{folder}/type", root)
        size = parse_size(read.text(f"{folder}/size", root) or "")
        if level is None or size is None or kind == "Instruction":
            continue
        shared = cores.parse_cpu_list(read.text(f"{folder}/shared_cpu_list", root) or "") or [cpu]
        best = max(best, (level, size, tuple(shared)))
    return best


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.4g} MiB"
