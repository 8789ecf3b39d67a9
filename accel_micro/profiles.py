"""Profiles: which cases of the same parameter lists are run. Pure, and needs no torch."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

ENVIRONMENT_VARIABLE: Final = "ACCEL_MICRO_PROFILE"


@dataclass(frozen=True)
class Profile:
    """How much is run.

    Attributes:
        shapes: the shape lists of an op that are run.
        cpu_dtypes, accelerator_dtypes: dtypes that are run.
        rounds: processes a case.
        budget_seconds: most seconds a process spends on taking samples.
        clocks: clocks that are read.
    """

    name: str
    shapes: tuple[str, ...]
    cpu_dtypes: tuple[str, ...]
    accelerator_dtypes: tuple[str, ...]
    rounds: int
    budget_seconds: float
    clocks: tuple[str, ...]


_FLOATS = ("float32", "bfloat16", "float16", "float64")

PROFILES: Final[dict[str, Profile]] = {
    profile.name: profile
    for profile in (
        Profile("quick", ("quick",), ("float32",), ("float32", "bfloat16"), 1, 1.0,
                ("throughput", "dispatch", "device")),
        Profile("standard", ("quick", "standard"), ("float32", "bfloat16"),
                ("float32", "bfloat16", "float16"), 3, 3.0, ("throughput", "dispatch", "device")),
        Profile("full", ("quick", "standard", "full"), _FLOATS, _FLOATS, 5, 5.0,
                ("throughput", "latency", "dispatch", "device")),
    )
}  # fmt: skip


def get(name: str | None = None) -> Profile:
    """The profile of that name; without a name that of the environment variable, else `standard`.

    Raises:
        ValueError: no such profile; the message lists them.
    """
    name = name or os.environ.get(ENVIRONMENT_VARIABLE) or "standard"
    if name not in PROFILES:
        raise ValueError(f"unknown profile {name!r}; known: {', '.join(PROFILES)}")
    return PROFILES[name]


def why_skipped(
    profile: Profile,
    op: Mapping[str, Any],
    device: str,
    dtype: str,
    shape: str,
    devices: Mapping[str, Mapping[str, Any]],
) -> str | None:
    """None when the profile runs this case on this machine, else the reason, a sentence.

    Args:
        op: the facts the suite attaches to a benchmark: `shapes` (list name → shapes), `clock`, `dtypes`.
        devices: for each device name `unavailable` (a sentence or None) and `clocks`.
    """
    facts = devices.get(device)
    if facts is None:
        return f"{device} was not asked for"
    if facts["unavailable"] is not None:
        return str(facts["unavailable"])
    if op["clock"] not in facts["clocks"]:
        return f"{device} has no {op['clock']} clock"
    if op["clock"] not in profile.clocks:
        return f"profile {profile.name} does not read the {op['clock']} clock"
    dtypes: Sequence[str] = profile.cpu_dtypes if device == "cpu" else profile.accelerator_dtypes
    if dtype not in dtypes:
        return f"profile {profile.name} does not run {dtype} on {device}"
    if not any(shape in op["shapes"].get(name, ()) for name in profile.shapes):
        return f"profile {profile.name} does not run this shape"
    return None
