"""NVIDIA GPUs: through NVML where nvidia-ml-py is installed, else through the `nvidia-smi` program.

Both ways give the same facts under the same names, one dictionary a GPU. A GPU's uuid is left out: facts are
shared with results.
"""

import contextlib
import csv
import importlib.util
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from accel_micro.host import read

Gpu = dict[str, Any]
Answer = TypeVar("Answer")

THROTTLE_REASONS: Final[dict[int, str]] = {
    0x1: "idle",
    0x2: "application clocks set",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clocks",
}
"""Bits of `clocks_throttle_reasons.active` (NVML: nvmlClocksEventReasons)."""

HOLDING: Final = (
    "power cap",
    "hardware slowdown",
    "sync boost",
    "software thermal slowdown",
    "hardware thermal slowdown",
    "power brake",
)
"""Reasons that hold the clock of a card down which has work to do, and which nobody has set it to."""

_QUERY: Final = {
    "index": "index",
    "pci.bus_id": "bus",
    "name": "name",
    "driver_version": "driver",
    "memory.total": "memory_bytes",
    "memory.used": "memory_used_bytes",
    "utilization.gpu": "utilization",
    "temperature.gpu": "temperature_celsius",
    "power.draw": "power_watts",
    "power.limit": "power_limit_watts",
    "power.default_limit": "power_default_limit_watts",
    "clocks.sm": "clock_hertz",
    "clocks.max.sm": "clock_maximum_hertz",
    "clocks_throttle_reasons.active": "throttle_reasons",
    "ecc.mode.current": "ecc",
    "persistence_mode": "persistence",
}
_NEWER_QUERY: Final = {"mig.mode.current": "mig", "compute_cap": "compute_capability"}
"""Fields that an old nvidia-smi does not know; one unknown field makes it refuse the whole query."""


def gpus() -> tuple[list[Gpu], str]:
    """(facts of each GPU, where they were read); an empty list where there is none or no driver.

    `processes` lists who else uses a GPU, this process left out; a container sees only its own.
    """
    found, source = _by_nvml(), "NVML"
    if found is None:
        found, source = _by_smi(), "nvidia-smi"
    for gpu in found:
        gpu["processes"] = [process for process in gpu.get("processes", []) if process["pid"] != os.getpid()]
    return found, source


def uuids() -> list[tuple[int, str, str]]:
    """(number, UUID, name) of each GPU in the order of `nvidia-smi`; for this machine's own use, see above."""
    found = with_nvml(
        lambda nvml: [
            (number, _plain(nvml.nvmlDeviceGetUUID(handle)), _plain(nvml.nvmlDeviceGetName(handle)))
            for number, handle in enumerate(
                map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
            )
        ]
    )
    return found if found is not None else parse_uuids(_smi("--query-gpu=index,uuid,name") or "")


def parse_uuids(text: str) -> list[tuple[int, str, str]]:
    """`nvidia-smi --query-gpu=index,uuid,name` → (number, UUID, name)."""
    found = []
    for row in _rows(text):
        number = read.to_integer(row[0]) if len(row) == 3 else None
        if number is not None:
            found.append((number, row[1].strip(), row[2].strip()))
    return found


def watched() -> bool | None:
    """Whether a process of this Python can ask NVML about clocks; None where there is no NVIDIA driver to ask."""
    if with_nvml(lambda nvml: nvml.nvmlDeviceGetCount()):
        return True
    return False if importlib.util.find_spec("pynvml") is None else None


def card_of_slice(uuid: str) -> str | None:
    """UUID of the GPU that a MIG slice is part of; None where NVML cannot tell."""

    def ask(nvml: Any) -> str:
        part = nvml.nvmlDeviceGetHandleByUUID(uuid)
        return _plain(nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part)))

    return with_nvml(ask)


def with_nvml(ask: Callable[[Any], Answer]) -> Answer | None:
    """What NVML answers; None where it is not installed, there is no driver, or it raises."""
    try:
        import pynvml as nvml

        nvml.nvmlInit()
    except Exception:  # not installed, or NVML's own errors, which exist only where it is
        return None
    try:
        return ask(nvml)
    except Exception:
        return None
    finally:
        nvml.nvmlShutdown()


def _by_smi() -> list[Gpu]:
    for fields in ({**_QUERY, **_NEWER_QUERY}, _QUERY):
        text = _smi(f"--query-gpu={','.join(fields)}")
        if text is not None:
            found = parse_gpus(text, tuple(fields.values()))
            version = parse_cuda_version(read.output(["nvidia-smi"]) or "")
            processes = parse_processes(
                _smi("--query-compute-apps=gpu_bus_id,pid,process_name,used_memory") or ""
            )
            return [_complete(gpu, version, processes) for gpu in found]
    return []


def _smi(query: str) -> str | None:
    return read.output(["nvidia-smi", query, "--format=csv,noheader,nounits"])


def _complete(gpu: Gpu, cuda_version: str | None, processes: Mapping[str, list[Gpu]]) -> Gpu:
    bus = gpu.pop("bus", None)
    if cuda_version:
        gpu["cuda_driver"] = cuda_version
    return {**gpu, "processes": processes.get(str(bus), [])}


def parse_gpus(text: str, names: tuple[str, ...]) -> list[Gpu]:
    """`nvidia-smi --query-gpu --format=csv,noheader,nounits` → facts; what reads `[N/A]` is absent."""
    found = []
    for row in _rows(text):
        if len(row) == len(names):
            values = {name: _value(name, cell.strip()) for name, cell in zip(names, row, strict=True)}
            if values.get("name"):
                found.append({"vendor": "NVIDIA", **{k: v for k, v in values.items() if v is not None}})
    return found


def _value(name: str, cell: str) -> Any:
    if not cell or cell.startswith("[") or cell in ("N/A", "ERR!"):
        return None
    if name in ("name", "driver", "bus", "compute_capability"):
        return cell
    if name in ("ecc", "mig", "persistence"):
        return cell == "Enabled"
    if name == "throttle_reasons":
        return throttle_reasons(int(cell, 16)) if re.fullmatch(r"0[xX][0-9a-fA-F]+", cell) else None
    number = read.to_float(cell)
    if number is None:
        return None
    if name.endswith("_bytes"):
        return round(number * (1 << 20))
    if name.endswith("_hertz"):
        return round(number * 1e6)
    return number / 100 if name == "utilization" else int(number) if number.is_integer() else number


def throttle_reasons(bits: int) -> list[str]:
    """The reasons in words that hold the clock down."""
    return [reason for bit, reason in THROTTLE_REASONS.items() if bits & bit]


def parse_cuda_version(text: str) -> str | None:
    """The banner of `nvidia-smi` → newest CUDA version that the driver runs."""
    match = re.search(r"CUDA (?:\w+ )?Version\s*:\s*(\d+\.\d+)", text)
    return match[1] if match else None


def parse_processes(text: str) -> dict[str, list[Gpu]]:
    """`nvidia-smi --query-compute-apps` (bus, pid, name, MiB) → processes that use each GPU, by its bus."""
    found: dict[str, list[Gpu]] = {}
    for row in _rows(text):
        pid = read.to_integer(row[1]) if len(row) == 4 else None
        if pid is not None:
            memory = _value("memory_bytes", row[3].strip())
            process = {"pid": pid, "name": _base_name(row[2]), "memory_bytes": memory}
            found.setdefault(row[0].strip(), []).append({k: v for k, v in process.items() if v is not None})
    return found


def _rows(text: str) -> list[list[str]]:
    try:
        return list(csv.reader(text.splitlines(), skipinitialspace=True))
    except csv.Error:  # a NUL, before Python 3.11
        return []


def _base_name(path: str) -> str:
    return path.strip().replace("\\", "/").rpartition("/")[2] or path.strip()


def _by_nvml() -> list[Gpu] | None:
    """None where NVML cannot be asked, so that the caller asks nvidia-smi."""

    def ask(nvml: Any) -> list[Gpu]:
        cuda = nvml.nvmlSystemGetCudaDriverVersion_v2()
        shared = {
            "driver": _plain(nvml.nvmlSystemGetDriverVersion()),
            "cuda_driver": f"{cuda // 1000}.{cuda % 1000 // 10}",
        }
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        return [{"vendor": "NVIDIA", "index": i, **_read(nvml, h), **shared} for i, h in enumerate(handles)]

    return with_nvml(ask)


def _read(nvml: Any, handle: Any) -> Gpu:
    questions: dict[str, Callable[[], Any]] = {
        "name": lambda: _plain(nvml.nvmlDeviceGetName(handle)),
        # Version 2 counts what the driver reserves apart, as nvidia-smi does.
        "memory_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2).total,
        "memory_used_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2).used,
        "utilization": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100,
        "temperature_celsius": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        "power_watts": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        "power_limit_watts": lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000,
        "power_default_limit_watts": lambda: nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle) / 1000,
        "clock_hertz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) * 10**6,
        "clock_maximum_hertz": lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM) * 10**6,
        "throttle_reasons": lambda: throttle_reasons(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
        "ecc": lambda: bool(nvml.nvmlDeviceGetEccMode(handle)[0]),
        "mig": lambda: bool(nvml.nvmlDeviceGetMigMode(handle)[0]),
        "persistence": lambda: bool(nvml.nvmlDeviceGetPersistenceMode(handle)),
        "compute_capability": lambda: ".".join(map(str, nvml.nvmlDeviceGetCudaComputeCapability(handle))),
        "processes": lambda: [_process(nvml, p) for p in nvml.nvmlDeviceGetComputeRunningProcesses(handle)],
    }
    answers = {}
    for name, question in questions.items():
        try:
            answers[name] = question()
        except Exception:  # a card that lacks the feature raises NVML's "not supported"
            continue
    return answers


def _process(nvml: Any, process: Any) -> Gpu:
    facts = {"pid": process.pid, "memory_bytes": process.usedGpuMemory}
    with contextlib.suppress(Exception):  # a process of another container or user has no name to us
        facts["name"] = _base_name(_plain(nvml.nvmlSystemGetProcessName(process.pid)))
    return {name: value for name, value in facts.items() if value is not None}


def _plain(text: str | bytes) -> str:
    return text.decode(errors="replace") if isinstance(text, bytes) else text
