"""What may be wrong with a measurement, in words, each with its remedy."""

from dataclasses import dataclass
from typing import Final

REMEDIES: Final[dict[str, str]] = {
    "speed-corrected": "the machine ran slower than its full speed; quiet it, or raise the budget",
    "warm-up capped": "times were still drifting when the warm-up ended; raise the budget or quiet the machine",
    "waited for a core": "another program had the cores; end it, or use fewer threads, see `accel-micro doctor`",
    "noisy": "samples scatter widely; close other programs, see `accel-micro doctor`",
    "short block": "a block is too short for this timer; the call may be cached or empty",
    "clocks disagree": "throughput is not the larger of dispatch and device; work runs on another stream or syncs",
    "by profiler": "the call cannot be captured in a graph; device time is the profiler's sum of its kernels",
    "gaps counted": "the profiler cannot be used here, so device time counts the gaps between kernels too",
    "low clock": "the device ran below its usual clock; check power limit and temperature",
    "reference on device": "the float64 reference was computed on the device itself; it is too large for the CPU",
    "of another version": "another version of accel_micro raised it; its documentation has the remedy",
    "over budget": "one call is so slow that twenty samples outlast the budget",
    "not linear": "time does not grow in a straight line with the calls; let the device cool, end other programs",
    "throttled": "the device's clock fell; cool it, or fix its clock below the limit (nvidia-smi -lgc)",
    "cache assumed": "nothing tells how large the last-level cache is; if it is larger, the inputs are not all cold",
    "slow host": "the host ran slower than its full speed and nothing tells how much that matters; read `device` too",
}
"""Every flag's name and what its reader can do about it."""


@dataclass(frozen=True)
class Flag:
    """One thing a reader must know about a measurement before trusting it.

    `name` is a key of `REMEDIES`; `detail` gives the figures of this very measurement.
    """

    name: str
    detail: str = ""

    def __post_init__(self) -> None:
        if self.name not in REMEDIES:
            raise ValueError(f"unknown flag {self.name!r}; known: {', '.join(REMEDIES)}")

    @property
    def remedy(self) -> str:
        """What to do about it, one line."""
        return REMEDIES[self.name]

    @classmethod
    def stored(cls, name: str, detail: str) -> "Flag":
        """A flag as it was stored, perhaps by a version that knew others: its name is kept in the detail then."""
        if name in REMEDIES:
            return cls(name, detail)
        return cls("of another version", f"{name}: {detail}" if detail else name)

    def __str__(self) -> str:
        return f"{self.name} ({self.detail})" if self.detail else self.name
