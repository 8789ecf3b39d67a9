"""What a Mac says of its power, its heat and its chip, from programs that macOS brings along."""

import re
from typing import Final

from accel_micro.host import read

THERMAL_PRESSURES: Final = ("nominal", "moderate", "heavy", "trapping", "sleeping")
"""Levels of OSThermalNotificationLevel on macOS, in order (its header, OSThermalNotification.h)."""


def power_source() -> str | None:
    """`AC Power`, `Battery Power` or `UPS Power`; None where nobody tells."""
    return parse_power_source(read.output(["pmset", "-g", "batt"]) or "")


def low_power_mode() -> bool | None:
    """Whether low power mode is on; None where there is no such mode."""
    return parse_low_power(read.output(["pmset", "-g"]) or "")


def thermal_pressure() -> str | None:
    """One of `THERMAL_PRESSURES`; None where nobody tells."""
    text = read.output(["notifyutil", "-g", "com.apple.system.thermalpressurelevel"])
    return parse_thermal_pressure(text or "")


def is_translated() -> bool:
    """This process is built for x86-64 and runs on Apple silicon through Rosetta."""
    return read.sysctl_integer("sysctl.proc_translated") == 1


def chip() -> str | None:
    """Such as `Apple M2 Pro`."""
    return read.sysctl_text("machdep.cpu.brand_string")


def parse_power_source(text: str) -> str | None:
    """`pmset -g batt` → what the machine draws from."""
    match = re.search(r"^Now drawing from '([^'\n]{1,40})'", text, re.MULTILINE)
    return match[1] if match else None


def parse_low_power(text: str) -> bool | None:
    """`pmset -g` → whether low power mode is on; None where there is no such mode."""
    match = re.search(r"^\s*lowpowermode\s+(\d)", text, re.MULTILINE)
    return match[1] == "1" if match else None


def parse_thermal_pressure(text: str) -> str | None:
    """`notifyutil -g com.apple.system.thermalpressurelevel` → the level's name."""
    match = re.search(r"^com\.apple\.system\.thermalpressurelevel (\d{1,3})\s*$", text, re.MULTILINE)
    if match is None:
        return None
    level = int(match[1])
    return THERMAL_PRESSURES[level] if level < len(THERMAL_PRESSURES) else f"level {level}"
