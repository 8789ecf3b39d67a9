"""What changes from minute to minute: load, other processes, stolen time, pressure, heat and power."""

import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accel_micro.host import apple, cgroups, read
from accel_micro.host.processor import Put

_CPUS = "sys/devices/system/cpu"
_NOTICED_CORES = 0.05
"""A process that uses less of a core than this is not named."""


@dataclass(frozen=True)
class Moment:
    """Counters at one moment; two of them make rates.

    Attributes:
        seconds: the host clock.
        cpu: CPU seconds of the whole machine by kind (user, idle, steal, …), summed over its cores.
        own_seconds: CPU seconds of this process and its children.
        processes: {(pid, start time): (name, CPU seconds)} of the other processes that can be seen.
        swapped_bytes: bytes moved to and from swap.
        throttle_events: times a core or its package cut its clock for heat or power.
    """

    seconds: float
    cpu: Mapping[str, float] = field(default_factory=dict)
    own_seconds: float = 0.0
    processes: Mapping[tuple[int, float], tuple[str, float]] = field(default_factory=dict)
    swapped_bytes: int = 0
    throttle_events: int | None = None


def look(root: Path = read.ROOT) -> Moment:
    """The counters now."""
    import psutil

    own = os.times()
    swap = psutil.swap_memory()
    return Moment(
        seconds=time.perf_counter(),
        cpu=psutil.cpu_times()._asdict(),
        own_seconds=own.user + own.system + own.children_user + own.children_system,
        processes=_other_processes(),
        swapped_bytes=swap.sin + swap.sout,
        throttle_events=throttle_events(root),
    )


def _other_processes() -> dict[tuple[int, float], tuple[str, float]]:
    import psutil

    found = {}
    for process in psutil.process_iter(["name", "cpu_times", "create_time"]):
        facts = process.info
        if process.pid != os.getpid() and facts["cpu_times"] is not None:
            key = (process.pid, facts["create_time"] or 0.0)
            found[key] = (facts["name"] or "?", facts["cpu_times"].user + facts["cpu_times"].system)
    return found


def throttle_events(root: Path = read.ROOT) -> int | None:
    """Times any core or package cut its clock since the machine started; None where nobody counts."""
    pattern = f"{_CPUS}/cpu[0-9]*/thermal_throttle/*_throttle_count"
    try:
        counts = [read.integer(str(path), root) for path in root.glob(pattern)]
    except OSError:
        return None
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def busy_elsewhere(before: Moment, after: Moment) -> float | None:
    """Share of the machine's CPU time between two moments that went to other processes, 0 to 1.

    Stolen time counts apart: it is not this system's.
    """
    spent = _spent(before, after)
    if spent is None:
        return None
    total, idle, steal = spent
    busy = total - idle - steal - (after.own_seconds - before.own_seconds)
    return min(1.0, max(0.0, busy / total))


def stolen(before: Moment, after: Moment) -> float | None:
    """Share of CPU time between two moments that the hypervisor gave to others; None where it is not told."""
    spent = _spent(before, after)
    if spent is None or "steal" not in after.cpu:
        return None
    return min(1.0, max(0.0, spent[2] / spent[0]))


def _spent(before: Moment, after: Moment) -> tuple[float, float, float] | None:
    # Linux counts a guest's time in user time as well.
    spent = {
        kind: after.cpu[kind] - before.cpu.get(kind, 0.0)
        for kind in after.cpu
        if kind not in ("guest", "guest_nice")
    }
    total = sum(spent.values())
    if total <= 0:
        return None
    return total, spent.get("idle", 0.0) + spent.get("iowait", 0.0), spent.get("steal", 0.0)


def busiest(before: Moment, after: Moment, count: int = 5) -> list[dict[str, Any]]:
    """The other processes that used most CPU between two moments: `name`, `pid`, `cores` (1.0 is a core)."""
    elapsed = after.seconds - before.seconds
    if elapsed <= 0:
        return []
    used = []
    for key, (name, seconds) in after.processes.items():
        if key in before.processes:
            cores = (seconds - before.processes[key][1]) / elapsed
            if cores >= _NOTICED_CORES:
                used.append({"name": name, "pid": key[0], "cores": round(cores, 2)})
    return sorted(used, key=lambda process: -float(str(process["cores"])))[:count]


def gather(put: Put, interval_seconds: float, root: Path = read.ROOT) -> None:
    """Facts named `load.…` and `memory.…` from two looks, `interval_seconds` apart."""
    before = look(root)
    time.sleep(interval_seconds)
    after = look(root)
    put("load.interval_seconds", round(after.seconds - before.seconds, 3), "two looks")
    put("load.busy_elsewhere", _rounded(busy_elsewhere(before, after)), "psutil.cpu_times less this process")
    put("load.steal", _rounded(stolen(before, after)), "/proc/stat")
    put("load.processes", busiest(before, after), "psutil.process_iter")
    put("memory.swapped_bytes", after.swapped_bytes - before.swapped_bytes, "psutil.swap_memory")
    if before.throttle_events is not None and after.throttle_events is not None:
        source = f"/{_CPUS}/cpu*/thermal_throttle"
        put("power.throttle_events", after.throttle_events - before.throttle_events, source)
        put("power.throttle_events_since_start", after.throttle_events, source)


def gather_state(put: Put, root: Path = read.ROOT) -> None:
    """Facts named `load.…` and `memory.…` that one look tells."""
    import psutil

    put("load.average", round(os.getloadavg()[0], 2), "getloadavg, one minute")
    for kind in ("cpu", "memory"):
        pressure = parse_pressure(read.text(f"proc/pressure/{kind}", root) or "")
        put(f"load.{kind}_pressure", pressure, f"/proc/pressure/{kind}, some avg10")
    periods = cgroups.throttled(root)
    if periods is not None:
        put("load.quota_throttled", _rounded(periods[1] / periods[0]), "cgroup cpu.stat")
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    put("memory.available_bytes", memory.available, "psutil.virtual_memory")
    put("memory.swap_total_bytes", swap.total, "psutil.swap_memory")
    put("memory.swap_used_bytes", swap.used, "psutil.swap_memory")


def gather_power(put: Put) -> None:
    """Facts named `power.…`."""
    import psutil

    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    if battery is not None:
        plugged: Any = battery.power_plugged  # None where the system cannot tell, whatever the stubs say
        put("power.on_battery", None if plugged is None else not plugged, "psutil.sensors_battery")
        put("power.battery_percent", round(battery.percent), "psutil.sensors_battery")
    if hasattr(psutil, "sensors_temperatures"):
        put(
            "power.temperature_celsius", hottest(psutil.sensors_temperatures()), "psutil.sensors_temperatures"
        )
    if sys.platform == "darwin":
        put("power.low_power_mode", apple.low_power_mode(), "pmset -g")
        put("power.source", apple.power_source(), "pmset -g batt")
        put("power.thermal_pressure", apple.thermal_pressure(), "notifyutil")
        limit = parse_speed_limit(read.output(["pmset", "-g", "therm"]) or "")
        put("power.speed_limit_percent", limit, "pmset -g therm")


def hottest(sensors: Mapping[str, Iterable[Any]]) -> float | None:
    """Degrees of the processor's hottest sensor, of psutil's sensors by chip."""
    chips = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "soc_thermal")
    degrees = [sensor.current for chip in chips for sensor in sensors.get(chip, ()) if sensor.current]
    return round(max(degrees), 1) if degrees else None


def parse_pressure(text: str) -> float | None:
    """A file of /proc/pressure → share of the last ten seconds in which some process waited, 0 to 1."""
    match = re.search(r"^some .*?avg10=([\d.]+)", text, re.MULTILINE)
    percent = read.to_float(match[1]) if match else None
    return None if percent is None else percent / 100


def parse_speed_limit(text: str) -> int | None:
    """`pmset -g therm` → percent of full speed that heat allows; Apple silicon does not tell."""
    match = re.search(r"CPU_Speed_Limit\s*=\s*(\d+)", text)
    return int(match[1]) if match else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
