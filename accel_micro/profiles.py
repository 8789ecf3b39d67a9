"""Profiles: which cases of the same parameter lists are run. Pure, and needs no torch."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from accel_micro.dtypes import DTYPES, NARROW

ENVIRONMENT_VARIABLE: Final = "ACCEL_MICRO_PROFILE"


@dataclass(frozen=True)
class Profile:
    """How much is run.

    Attributes:
        cpu, accelerator: shape lists of an op that are run, each with the dtypes it is run in.
        rounds: processes a case.
        budget_seconds: most seconds a process spends on taking samples.
        clocks: clocks that are read.
    """

    name: str
    cpu: Mapping[str, tuple[str, ...]]
    accelerator: Mapping[str, tuple[str, ...]]
    rounds: int
    budget_seconds: float
    clocks: tuple[str, ...]

    @property
    def shapes(self) -> tuple[str, ...]:
        """The shape lists that are run somewhere."""
        return tuple(self.accelerator)

    def dtypes(self, device: str) -> tuple[str, ...]:
        """All dtypes that are run on a kind of device."""
        return tuple(dict.fromkeys(dtype for dtypes in self.on(device).values() for dtype in dtypes))

    def on(self, device: str) -> Mapping[str, tuple[str, ...]]:
        """Shape lists that are run on a kind of device, with their dtypes."""
        return self.cpu if device == "cpu" else self.accelerator

    def runs(
        self, device: str, shapes: Mapping[str, Sequence[str]], dtypes: Sequence[str]
    ) -> list[tuple[str, str]]:
        """(dtype, shape) of what is run of an op that has these shape lists and exists in these dtypes."""
        pairs = [
            (dtype, shape)
            for name, wanted in self.on(device).items()
            for shape in shapes.get(name, ())
            for dtype in wanted
            if dtype in dtypes
        ]
        return sorted(dict.fromkeys(pairs), key=lambda pair: self.dtypes(device).index(pair[0]))


_ALL = dict.fromkeys(("quick", "standard", "heavy", "full", "cold"), DTYPES)

PROFILES: Final[dict[str, Profile]] = {
    profile.name: profile
    for profile in (
        Profile(
            "quick",
            cpu={"quick": ("float32", "int8")},
            accelerator={"quick": ("float32", "bfloat16", *NARROW)},
            rounds=1,
            budget_seconds=1.0,
            clocks=("throughput", "dispatch", "device"),
        ),
        Profile(  # every shape in the dtypes that most people use, the shapes of quick in more; on CPUs none too heavy
            "standard",
            cpu={
                "quick": ("float32", "bfloat16", *NARROW),
                "standard": ("float32", "int8"),
                "cold": ("float32",),
            },
            accelerator={
                "quick": ("float32", "bfloat16", "float16", *NARROW),
                "standard": ("float32", "bfloat16", *NARROW),
                "heavy": ("float32", "bfloat16", *NARROW),
                "cold": ("float32", "bfloat16"),
            },
            rounds=3,
            budget_seconds=0.75,
            clocks=("throughput", "dispatch", "device"),
        ),
        Profile(
            "full",
            cpu=_ALL,
            accelerator=_ALL,
            rounds=5,
            budget_seconds=5.0,
            clocks=("throughput", "latency", "dispatch", "device"),
        ),
    )
}


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
        why = facts.get("lacks", {}).get(op["clock"])
        return f"{device} has no {op['clock']} clock" + (f": {why}" if why else "")
    if op["clock"] not in profile.clocks:
        return f"profile {profile.name} does not read the {op['clock']} clock"
    if dtype not in profile.dtypes(device):
        return f"profile {profile.name} does not run {dtype} on {device}"
    lists = [name for name in profile.on(device) if shape in op["shapes"].get(name, ())]
    if not lists:
        heavy = shape in op["shapes"].get("heavy", ()) and "heavy" in profile.shapes
        where = f" on {device}: too much work for it" if heavy else ""
        return f"profile {profile.name} does not run this shape{where}"
    if not any(dtype in profile.on(device)[name] for name in lists):
        return f"profile {profile.name} does not run this shape in {dtype} on {device}"
    return None
