"""Which variants of torch a machine can run, the best first: what `auto` means.

CUDA's drivers run programs made for any older CUDA (NVIDIA, "CUDA Compatibility"), and builds for CUDA 13
left out GPUs older than compute capability 7.5 (NVIDIA, "CUDA Toolkit 13.0 Release Notes").
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from accel_micro.host import accelerators
from accel_micro.host.gather import Gathered

AUTO: Final = "auto"

_OLDEST_CUDA: Final = (11, 8)
_NEWEST_MINOR: Final = {11: 8, 12: 9}
_TURING: Final = (7, 5)
# Every ROCm that torch was published for since 2.2, from its index.
_ROCM: Final = (
    "7.14", "7.2", "7.1", "7.0", "6.4", "6.3", "6.2.4", "6.2", "6.1", "6.0", "5.7", "5.6",
)  # fmt: skip


@dataclass(frozen=True)
class Variants:
    """Variants to look for, the best first, and why these."""

    names: tuple[str, ...]
    reason: str


def variants_for(
    devices: Sequence[dict[str, Any]],
    pci: Sequence[dict[str, Any]] = (),
    platform: str = sys.platform,
    rocm_version: str | None = None,
) -> Variants:
    """Variants for the accelerators of a machine.

    Args:
        devices, pci: the facts `gpu.devices` and `gpu.pci` of `accel_micro.host`.
        platform: as `sys.platform`.
        rocm_version: of the ROCm installed beside the driver, when known.
    """
    if platform == "darwin":
        return Variants(("cpu",), "macOS, whose wheels have MPS and lie among those for cpu")
    nvidia = [gpu for gpu in devices if gpu.get("vendor") == "NVIDIA"]
    drivers = [found for gpu in nvidia if (found := _pair(gpu.get("cuda_driver")))]
    if drivers:
        driver = min(drivers)
        abilities = [found for gpu in nvidia if (found := _pair(gpu.get("compute_capability")))]
        newest, reason = driver, f"NVIDIA driver for CUDA {driver[0]}.{driver[1]}"
        if abilities and min(abilities) < _TURING and driver[0] >= 13:
            newest = (12, _NEWEST_MINOR[12])
            reason += ", GPU older than CUDA 13 wants"
        names = _cuda_names(newest)
        if names:
            return Variants(names, reason)
        return Variants(("cpu",), f"{reason}, too old for any wheel of torch 2")
    if any(gpu.get("vendor") == "AMD" for gpu in devices):
        known = _numbers(rocm_version)
        names = tuple(f"rocm{name}" for name in _ROCM if known is None or _numbers(name)[:2] <= known[:2])
        return Variants(names, f"AMD GPU with ROCm {rocm_version or 'of unknown version'}")
    if any(row.get("vendor") == "Intel" and not row.get("integrated") and row.get("driver") for row in pci):
        return Variants(("xpu",), "Intel GPU")
    return Variants(("cpu",), "no GPU with a driver")


def machine_variants() -> Variants:
    """Variants for this machine."""
    gathered = Gathered()
    gathered.run("gpu", accelerators.gather)
    facts = gathered.values
    return variants_for(facts.get("gpu.devices", ()), facts.get("gpu.pci", ()), rocm_version=_rocm_version())


def chosen(variant: str) -> Variants:
    """The variants that a configuration's word stands for: `auto`, or one or several by name."""
    if variant == AUTO:
        return machine_variants()
    names = tuple(re.split(r"[\s,]+", variant.strip()))
    return Variants(names, "as configured")


def _cuda_names(newest: tuple[int, int]) -> tuple[str, ...]:
    names = []
    for major in range(newest[0], _OLDEST_CUDA[0] - 1, -1):
        top = newest[1] if major == newest[0] else _NEWEST_MINOR.get(major, 9)
        bottom = _OLDEST_CUDA[1] if major == _OLDEST_CUDA[0] else 0
        names += [f"cu{major}{minor}" for minor in range(top, bottom - 1, -1)]
    return tuple(names)


def _rocm_version(root: Path = Path("/")) -> str | None:
    try:
        text = (root / "opt/rocm/.info/version").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    match = re.match(r"\d+\.\d+(\.\d+)?", text)
    return match[0] if match else None


def _pair(text: object) -> tuple[int, int] | None:
    match = re.match(r"(\d+)\.(\d+)", str(text or ""))
    return (int(match[1]), int(match[2])) if match else None


def _numbers(version: str | None) -> Any:
    return tuple(map(int, version.split("."))) if version else None
