"""The processor: model, cores, frequency, caches. Linux from /proc and /sys, macOS from kernel variables."""

import hashlib
import json
import os
import platform
import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from accel_micro.host import cgroups, cores, read
from accel_micro.host.cache import cache_folder

Put = Callable[[str, Any, str], None]
"""Takes a fact's name, its value (None when it could not be read) and where it was read."""

_CPUS = "sys/devices/system/cpu"
_INSTRUCTION_SETS = (
    "sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "avx512_vnni", "avx_vnni",
    "amx_tile", "amx_bf16", "amx_int8", "asimd", "asimddp", "fphp", "bf16", "i8mm", "sve", "sve2", "sme",
)  # fmt: skip
_FREQUENCY_SAMPLE = 8
"""CPUs whose frequency is asked for: some drivers take milliseconds for each."""


def gather(put: Put, root: Path = read.ROOT) -> None:
    """Facts named `cpu.…`."""
    info = cpu_info(root)
    put("cpu.model", info.get("brand_raw"), "py-cpuinfo")
    put("cpu.vendor", vendor(info), "py-cpuinfo")
    put("cpu.instruction_sets", instruction_sets(info), "py-cpuinfo")
    put("cpu.base_frequency_hertz", _first(info.get("hz_advertised")), "py-cpuinfo")
    _gather_cores(put, root)
    _gather_frequency(put, root)
    put("cpu.last_level_cache_bytes", last_level_cache_bytes(root), f"/{_CPUS}/cpu0/cache")


def _gather_cores(put: Put, root: Path) -> None:
    online = cores.parse_cpu_list(read.text(f"{_CPUS}/online", root) or "")
    put("cpu.logical_cores", len(online) or os.cpu_count(), f"/{_CPUS}/online")
    physical = cores.cores_of(online, root) if online else read.sysctl_integer("hw.physicalcpu")
    put("cpu.physical_cores", physical, f"/{_CPUS}/cpu*/topology, hw.physicalcpu")
    performance, efficiency, source = hybrid_cores(online, root)
    put("cpu.performance_cores", performance, source)
    put("cpu.efficiency_cores", efficiency, source)
    smt = read.integer(f"{_CPUS}/smt/active", root)
    put("cpu.smt", None if smt is None else bool(smt), f"/{_CPUS}/smt/active")
    mine = cores.affinity()
    if mine is not None:
        put("cpu.affinity", cores.format_cpu_list(mine), "sched_getaffinity")
        put("cpu.affinity_cores", cores.cores_of(mine, root), "sched_getaffinity")
    put("cpu.quota_cores", cgroups.quota_cores(root), "cgroup cpu.max, cpu.cfs_quota_us")
    put("cpu.allowed_cores", cores.allowed_cores(), "physical cores within affinity and quota")
    nodes = cores.parse_cpu_list(read.text("sys/devices/system/node/online", root) or "")
    put("cpu.numa_nodes", len(nodes) or None, "/sys/devices/system/node/online")


def hybrid_cores(online: list[int], root: Path = read.ROOT) -> tuple[int | None, int | None, str]:
    """(performance cores, efficiency cores, source); None for both where all are alike or it is not told."""
    fast = read.sysctl_integer("hw.perflevel0.physicalcpu")
    slow = read.sysctl_integer("hw.perflevel1.physicalcpu")
    if fast and slow:
        return fast, slow, "hw.perflevel*.physicalcpu"
    lists = [read.text(f"sys/devices/{kind}/cpus", root) for kind in ("cpu_core", "cpu_atom")]
    if lists[0] and lists[1]:
        fast, slow = (cores.cores_of(cores.parse_cpu_list(text or ""), root) for text in lists)
        return fast, slow, "/sys/devices/cpu_core/cpus, /sys/devices/cpu_atom/cpus"
    # big.LITTLE: the scheduler's measure of a core, 1024 for the largest.
    capacities = [read.integer(f"{_CPUS}/cpu{cpu}/cpu_capacity", root) for cpu in online]
    known = [capacity for capacity in capacities if capacity]
    if known and min(known) < 0.9 * max(known):
        fast = sum(capacity >= 0.9 * max(known) for capacity in known)
        return fast, len(known) - fast, f"/{_CPUS}/cpu*/cpu_capacity"
    return None, None, ""


def _gather_frequency(put: Put, root: Path) -> None:
    mine = sorted(cores.affinity() or ())[:_FREQUENCY_SAMPLE] or [0]
    folders = [f"{_CPUS}/cpu{cpu}/cpufreq" for cpu in mine]
    source = f"/{_CPUS}/cpu*/cpufreq"
    for name, file in (
        ("governor", "scaling_governor"),
        ("frequency_driver", "scaling_driver"),
        ("energy_preference", "energy_performance_preference"),
    ):
        values = sorted({value for folder in folders if (value := read.text(f"{folder}/{file}", root))})
        put(f"cpu.{name}", ",".join(values) or None, f"{source}/{file}")
    for name, file, pick in (
        ("frequency_minimum_hertz", "cpuinfo_min_freq", min),
        ("frequency_maximum_hertz", "cpuinfo_max_freq", max),
        ("frequency_limit_hertz", "scaling_max_freq", max),
        ("frequency_now_hertz", "scaling_cur_freq", statistics.mean),
    ):
        kilohertz = [number for folder in folders if (number := read.integer(f"{folder}/{file}", root))]
        put(f"cpu.{name}", round(pick(kilohertz)) * 1000 if kilohertz else None, f"{source}/{file}")
    put("cpu.boost", boost(root), f"/{_CPUS}/intel_pstate/no_turbo, /{_CPUS}/cpufreq/boost")


def boost(root: Path = read.ROOT) -> bool | None:
    """Whether the clock may rise above its base (turbo, boost); None when it cannot be seen."""
    no_turbo = read.integer(f"{_CPUS}/intel_pstate/no_turbo", root)
    if no_turbo is not None:
        return not no_turbo
    allowed = read.integer(f"{_CPUS}/cpufreq/boost", root)
    return None if allowed is None else bool(allowed)


def last_level_cache_bytes(root: Path = read.ROOT) -> int | None:
    """Size of the largest cache that the first CPU sees."""
    sizes = [parse_size(read.text(f"{_CPUS}/cpu0/cache/index{index}/size", root) or "") for index in range(6)]
    sizes += [
        read.sysctl_integer(name)
        for name in ("hw.l3cachesize", "hw.perflevel0.l2cachesize", "hw.l2cachesize")
    ]
    return max((size for size in sizes if size), default=None)


def parse_size(text: str) -> int | None:
    """`32768K`, `32M`, `512` → bytes."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    number = read.to_integer(text.strip().rstrip("KMGiB"))
    suffix = text.strip().rstrip("iB")[-1:]
    return None if number is None or number < 0 else number * units.get(suffix, 1)


def vendor(info: Mapping[str, Any]) -> str | None:
    """The maker in words: AMD, Intel, Apple, Arm, or what the processor calls itself."""
    name = f"{info.get('vendor_id_raw', '')} {info.get('brand_raw', '')}"
    for word, maker in (
        ("AMD", "AMD"),
        ("Intel", "Intel"),
        ("Apple", "Apple"),
        ("ARM", "Arm"),
        ("Neoverse", "Arm"),
    ):
        if word.lower() in name.lower():
            return maker
    return str(info["vendor_id_raw"]) if info.get("vendor_id_raw") else None


def instruction_sets(info: Mapping[str, Any]) -> list[str]:
    """The instruction sets that kernels choose by; py-cpuinfo drops the underscore of some names."""
    flags = info.get("flags")
    plain = {str(flag).replace("_", "") for flag in flags} if isinstance(flags, list) else set()
    return [name for name in _INSTRUCTION_SETS if name.replace("_", "") in plain]


def _first(value: Any) -> int | None:
    return read.to_integer(value[0]) if isinstance(value, (list, tuple)) and value else None


def cpu_info(root: Path = read.ROOT) -> dict[str, Any]:
    """What py-cpuinfo says, remembered per kind of processor: it needs a second and starts processes.

    The memory lies in the user's cache folder, under a name made of what the kernel calls the processor, so
    that machines that share a home folder do not read each other's.
    """
    seen = parse_cpu_model(read.text("proc/cpuinfo", root) or "") or read.sysctl_text(
        "machdep.cpu.brand_string"
    )
    key = f"{platform.system()}\n{platform.machine()}\n{seen}"
    name = f"cpuinfo-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
    path = cache_folder() / name
    try:
        remembered = json.loads(path.read_text())
        if isinstance(remembered, dict) and remembered.get("brand_raw"):
            return remembered
    except (OSError, ValueError):
        pass
    try:
        import cpuinfo

        fresh: dict[str, Any] = cpuinfo.get_cpu_info()
    except Exception:  # whatever a foreign parser of a foreign machine's files may raise
        return {"brand_raw": seen.splitlines()[0]} if seen else {}
    _remember(path, fresh)
    return fresh


def _remember(path: Path, content: Mapping[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as file:
            json.dump(content, file)
        Path(file.name).replace(path)
    except (OSError, TypeError):
        pass  # a machine without a writable cache folder asks again next time


def parse_cpu_model(text: str) -> str | None:
    """/proc/cpuinfo → what identifies the first processor, its name first; None when there is nothing."""
    wanted = ("model name", "vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU part")
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() in wanted and value.strip():
            fields.setdefault(name.strip(), value.strip())
    return "\n".join(fields[name] for name in wanted if name in fields) or None
