"""Accelerators of every maker, one dictionary each: `vendor`, `name`, `memory_bytes`, `driver`, …"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from accel_micro.host import nvidia, read
from accel_micro.host.nvidia import Gpu
from accel_micro.host.processor import Put

_PCI_VENDORS = {0x10DE: "NVIDIA", 0x1002: "AMD", 0x8086: "Intel"}


def gather(put: Put, root: Path = read.ROOT) -> None:
    """Facts named `gpu.…`: `gpu.devices`, in each maker's own order, and `gpu.pci`, what the bus shows."""
    put("gpu.pci", pci_display_controllers(root), "/sys/bus/pci/devices")
    devices: list[Gpu] = []
    sources = []
    for find in (nvidia.gpus, _amd, _apple):
        found, source = find()
        devices += found
        sources += [source] if found else []
    if any(device.get("vendor") == "NVIDIA" for device in devices):
        put("gpu.clocks_watched", nvidia.watched(), "NVML")
    put("gpu.devices", devices, ", ".join(sources) or "NVML, nvidia-smi, amd-smi, rocm-smi, system_profiler")


def pci_display_controllers(root: Path = read.ROOT) -> list[dict[str, Any]]:
    """The GPUs that the bus shows, whether a driver took them or not: `vendor`, `driver`, `integrated`."""
    found = []
    try:
        folders = sorted((root / "sys/bus/pci/devices").iterdir())
    except OSError:
        return []
    for folder in folders:
        kind, vendor = (_hexadecimal(read.text(str(folder / name), root)) for name in ("class", "vendor"))
        if kind is None or kind >> 16 not in (0x03, 0x12) or vendor not in _PCI_VENDORS:
            continue
        link = folder / "driver"
        driver = link.resolve().name if link.exists() else None
        # Intel's integrated graphics has this address on every machine; a guest sees real cards on bus 0 too.
        integrated = _PCI_VENDORS[vendor] == "Intel" and folder.name == "0000:00:02.0"
        found.append({"vendor": _PCI_VENDORS[vendor], "driver": driver, "integrated": integrated})
    return found


def _hexadecimal(text: str | None) -> int | None:
    return int(text, 16) if text and re.fullmatch(r"0x[0-9a-fA-F]+", text) else None


def _amd() -> tuple[list[Gpu], str]:
    text = read.output(["amd-smi", "static", "--asic", "--vram", "--driver", "--json"])
    found = parse_amd_smi(text or "")
    if found:
        return found, "amd-smi"
    text = read.output(
        ["rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showdriverversion", "--json"]
    )
    return parse_rocm_smi(text or ""), "rocm-smi"


def parse_amd_smi(text: str) -> list[Gpu]:
    """`amd-smi static --asic --vram --driver --json` → facts."""
    data = _json(text)
    rows = data.get("gpu_data") if isinstance(data, dict) else data
    found = []
    for row in rows if isinstance(rows, list) else []:
        name = _dig(row, "asic", "market_name")
        if not name:
            continue
        size, unit = _dig(row, "vram", "size", "value"), _dig(row, "vram", "size", "unit")
        megabytes = read.to_float(size) if unit in ("MB", "MiB", None) else None
        found.append(
            _gpu(
                index=read.to_integer(_dig(row, "gpu")),
                name=str(name),
                memory_bytes=None if megabytes is None else round(megabytes * (1 << 20)),
                driver=_dig(row, "driver", "version"),
                architecture=_dig(row, "asic", "target_graphics_version"),
            )
        )
    return found


def parse_rocm_smi(text: str) -> list[Gpu]:
    """`rocm-smi --showproductname --showmeminfo vram --showdriverversion --json` → facts."""
    data = _json(text)
    if not isinstance(data, dict):
        return []
    found = []
    for card, row in data.items():
        number = re.fullmatch(r"card(\d+)", str(card))
        if number and isinstance(row, dict):
            fields = {str(name).lower(): value for name, value in row.items()}
            found.append(
                _gpu(
                    index=int(number[1]),
                    name=str(fields.get("card series") or fields.get("card model") or "AMD GPU"),
                    memory_bytes=read.to_integer(fields.get("vram total memory (b)")),
                    memory_used_bytes=read.to_integer(fields.get("vram total used memory (b)")),
                    driver=_dig(data, "system", "Driver version"),
                    architecture=fields.get("gfx version"),
                )
            )
    return found


def _gpu(**facts: Any) -> Gpu:
    return {"vendor": "AMD", **{name: value for name, value in facts.items() if value is not None}}


def _apple() -> tuple[list[Gpu], str]:
    text = (
        read.output(["system_profiler", "SPDisplaysDataType", "-json"]) if sys.platform == "darwin" else None
    )
    return parse_system_profiler(text or "", read.sysctl_integer("hw.memsize")), "system_profiler"


def parse_system_profiler(text: str, memory_bytes: int | None) -> list[Gpu]:
    """`system_profiler SPDisplaysDataType -json` → Apple's own GPUs; their memory is the machine's."""
    rows = _dig(_json(text), "SPDisplaysDataType")
    found: list[Gpu] = []
    for row in rows if isinstance(rows, list) else []:
        name = _dig(row, "sppci_model")
        if name and "apple" in f"{name} {_dig(row, 'spdisplays_vendor')}".lower():
            metal = _dig(row, "spdisplays_mtlgpufamilysupport") or _dig(row, "spdisplays_metalfamily")
            facts = {
                "index": len(found),
                "name": str(name),
                "memory_bytes": memory_bytes,
                "cores": read.to_integer(_dig(row, "sppci_cores")),
                "metal": str(metal).removeprefix("spdisplays_") if metal else None,
            }
            found.append(
                {"vendor": "Apple", **{key: value for key, value in facts.items() if value is not None}}
            )
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _dig(data: Any, *names: str) -> Any:
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return data
