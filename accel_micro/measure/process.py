"""A process: the samples that one fresh interpreter took of one case with one clock."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from accel_micro.measure.flags import Flag

CLOCKS: Final = ("throughput", "latency", "dispatch", "device")
"""The four clocks. See `docs/design.md` for what each one times."""

SAMPLES: Final = 20
"""Samples a process takes, always: asv stores those of all processes in one list, twenty by twenty."""


@dataclass(frozen=True)
class Process:
    """What one interpreter measured with one clock.

    Attributes:
        device: name of the device, `"cpu"` or `"cuda:1"`.
        clock: one of `CLOCKS`.
        samples: seconds per call, one a block; corrected to full speed where `speeds` is below it, and by the
            device clock without the gaps between kernels.
        raw_samples: the same blocks uncorrected, in the same order.
        speeds: speed of the machine during each block relative to its full speed, less what threads waited for a
            core; 1.0 is full speed.
        calls_per_block: calls timed together in one block.
        flags: what a reader must know before trusting the numbers.
        first_call_seconds: the very first call, with its initialisation; None when it was not timed.
        compile_seconds: of those the compiler's, where the backend counts them, else None.
        warmup_seconds: how long the warm-up lasted.
        blocks_taken: blocks timed in all; the samples are those that ran at the highest speed.
        sensitivity: exponent with which this call slows as the machine does, fitted over all blocks.
        probe: facts of the speed probe, such as its reference rate.
        throttled: why the device's clock was held down, and in how many of the samples.
    """

    device: str
    clock: str
    samples: tuple[float, ...]
    raw_samples: tuple[float, ...]
    speeds: tuple[float, ...]
    calls_per_block: int
    flags: tuple[Flag, ...] = ()
    first_call_seconds: float | None = None
    compile_seconds: float | None = None
    warmup_seconds: float = 0.0
    blocks_taken: int = 0
    sensitivity: float = 0.0
    probe: Mapping[str, float] = field(default_factory=dict)
    throttled: Mapping[str, int] = field(default_factory=dict)

    @property
    def median_seconds(self) -> float:
        """Median of the samples, seconds per call."""
        return statistics.median(self.samples)

    @property
    def raw_median_seconds(self) -> float:
        """Median of the uncorrected samples, seconds per call."""
        return statistics.median(self.raw_samples)

    def to_json(self) -> dict[str, Any]:
        """Plain data, for a record."""
        return {
            "device": self.device,
            "clock": self.clock,
            "samples": list(self.samples),
            "raw_samples": list(self.raw_samples),
            "speeds": list(self.speeds),
            "calls_per_block": self.calls_per_block,
            "flags": [{"name": flag.name, "detail": flag.detail} for flag in self.flags],
            "first_call_seconds": self.first_call_seconds,
            "compile_seconds": self.compile_seconds,
            "warmup_seconds": self.warmup_seconds,
            "blocks_taken": self.blocks_taken,
            "sensitivity": self.sensitivity,
            "probe": dict(self.probe),
            "throttled": dict(self.throttled),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Process":
        """The inverse of `to_json`.

        Raises:
            KeyError, TypeError, ValueError: the data is not a process.
        """
        return cls(
            device=str(data["device"]),
            clock=str(data["clock"]),
            samples=tuple(float(x) for x in data["samples"]),
            raw_samples=tuple(float(x) for x in data["raw_samples"]),
            speeds=tuple(float(x) for x in data["speeds"]),
            calls_per_block=int(data["calls_per_block"]),
            flags=tuple(Flag.stored(str(f["name"]), str(f["detail"])) for f in data["flags"]),
            first_call_seconds=data["first_call_seconds"],
            compile_seconds=data.get("compile_seconds"),
            warmup_seconds=float(data["warmup_seconds"]),
            blocks_taken=int(data["blocks_taken"]),
            sensitivity=float(data["sensitivity"]),
            probe=dict(data["probe"]),
            throttled=dict(data.get("throttled", {})),
        )
