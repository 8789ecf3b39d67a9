"""How far stopwatches are from a witness that knows how long the work takes, and from themselves when read again."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final


@dataclass(frozen=True)
class Band:
    """Cases whose work is at least `least` and less than `below` seconds long. `name` is in words."""

    name: str
    least: float
    below: float = math.inf

    def has(self, seconds: float) -> bool:
        """Whether work of that length belongs to it."""
        return self.least <= seconds < self.below


KERNELS: Final = (
    Band("kernels of 10 µs or more", 10e-6),
    Band("kernels of 3 to 10 µs", 3e-6, 10e-6),
    Band("shorter kernels", 0.0, 3e-6),
)


MOVED: Final = 0.03
"""Relative change of the witness around a reading from which on it does not know what the work took meanwhile."""


@dataclass(frozen=True)
class Reading:
    """What a harness read of a call.

    Attributes:
        seconds: per call, as it reports them. truth: per call by the witness, beside the reading.
        regime: the same by the witness in the state in which the harness calls (cache flushed, or calls queued); 0
            where that is no other.
        spent: seconds that the reading took. moved: relative change of the witness from before it to after it.
    """

    seconds: float
    truth: float
    regime: float = 0.0
    spent: float = 0.0
    moved: float = 0.0

    @property
    def is_steady(self) -> bool:
        """The witness agreed with itself around it."""
        return abs(self.moved) <= MOVED

    @property
    def error(self) -> float:
        """Relative, against the witness."""
        return self.seconds / self.truth - 1 if self.truth > 0 else math.nan

    @property
    def error_in_regime(self) -> float:
        """Relative, against the witness in the harness's own state."""
        return self.seconds / self.regime - 1 if self.regime > 0 else self.error


@dataclass
class Timed:
    """A case, and what each harness read of it: its readings by name, or why there is none.

    Attributes:
        unit_seconds: what decides its band: seconds of a kernel on average, or of a call.
        again: readings of runs of their own, for the spread.
    """

    name: str
    unit_seconds: float = 0.0
    readings: dict[str, Reading] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    again: dict[str, list[float]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """The part of the name before the first dot."""
        return self.name.partition(".")[0]

    def to_json(self) -> dict[str, Any]:
        """As a file keeps it."""
        return {
            **vars(self),
            "readings": {name: {**vars(one), "error": one.error} for name, one in self.readings.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Timed":
        """The inverse of `to_json`. Raises KeyError or TypeError where it is none."""
        readings = {
            name: Reading(one["seconds"], one["truth"], one["regime"], one["spent"], one.get("moved", 0.0))
            for name, one in data["readings"].items()
        }
        return cls(**{**data, "readings": readings})


@dataclass(frozen=True)
class Error:
    """A harness over the cases of a band.

    Attributes:
        cases: that it read. refused: that it could not. unsteady: that it read while the work itself became faster or
            slower; they are not among the cases. middle: median of the sizes of its relative errors.
        worst: the largest of them in size, with its sign, and `worst_case` whose it is.
        middle_in_regime, worst_in_regime: as `middle` and `worst`, against the witness in the harness's own state.
        spent: median seconds of a reading.
    """

    harness: str
    band: str
    cases: int
    refused: int
    middle: float
    worst: float
    worst_case: str
    middle_in_regime: float
    spent: float
    unsteady: int = 0
    worst_in_regime: float = math.nan


def errors(timed: Sequence[Timed], bands: Iterable[Band], harnesses: Sequence[str]) -> list[Error]:
    """Each harness over each band that has a case, in this order."""
    found = []
    for band in bands:
        among = [case for case in timed if band.has(case.unit_seconds)]
        for harness in harnesses:
            finite = [
                (one, case.name)
                for case in among
                if (one := case.readings.get(harness)) is not None and math.isfinite(one.error)
            ]
            read = [(one, name) for one, name in finite if one.is_steady]
            refused = sum(harness in case.refused for case in among)
            if not read:
                if refused or finite:
                    nothing = (math.nan, math.nan, "", math.nan, 0.0)
                    found.append(Error(harness, band.name, 0, refused, *nothing, unsteady=len(finite)))
                continue
            worst, worst_case = max(((one.error, name) for one, name in read), key=lambda pair: abs(pair[0]))
            found.append(
                Error(
                    harness,
                    band.name,
                    len(read),
                    refused,
                    median(abs(one.error) for one, _ in read),
                    worst,
                    worst_case,
                    median(abs(one.error_in_regime) for one, _ in read),
                    median(one.spent for one, _ in read),
                    len(finite) - len(read),
                    max((one.error_in_regime for one, _ in read), key=abs),
                )
            )
    return found


@dataclass(frozen=True)
class Difference:
    """How far a harness's readings of one case in several processes are apart, over the cases of a band.

    What the work itself took may differ between processes, so it is the ratios to the witness, in the harness's own
    state, that are held against each other.

    Attributes:
        cases: that it read in two processes or more, with the work steady. middle: median over them of their spread.
        worst: the largest of these, and `worst_case` whose it is.
    """

    harness: str
    band: str
    cases: int
    middle: float
    worst: float
    worst_case: str


def differences(timed: Sequence[Timed], bands: Iterable[Band], harnesses: Sequence[str]) -> list[Difference]:
    """Each harness over each band that has a case of several processes. A case is in `timed` once for each process."""
    by_name: dict[str, list[Timed]] = {}
    for case in timed:
        by_name.setdefault(case.name, []).append(case)
    found = []
    for band in bands:
        among = {
            name: processes
            for name, processes in by_name.items()
            if band.has(median(one.unit_seconds for one in processes))
        }
        for harness in harnesses:
            spread = {
                name: apart
                for name, processes in among.items()
                if not math.isnan(apart := spread_of(_ratios(processes, harness)))
            }
            if spread:
                worst = max(spread, key=spread.__getitem__)
                middle = median(spread.values())
                found.append(Difference(harness, band.name, len(spread), middle, spread[worst], worst))
    return found


def _ratios(processes: Sequence[Timed], harness: str) -> list[float]:
    """Its steady readings ÷ the witness in its own state."""
    read = [one.readings[harness] for one in processes if harness in one.readings]
    return [1 + one.error_in_regime for one in read if one.is_steady and math.isfinite(one.error)]


def spread_of(values: Sequence[float]) -> float:
    """(Largest − smallest) ÷ median of repeated readings; NaN of fewer than two."""
    return (max(values) - min(values)) / median(values) if len(values) > 1 else math.nan


def spreads(timed: Sequence[Timed], harnesses: Sequence[str]) -> Mapping[str, list[tuple[str, float, int]]]:
    """For each case that was read again: harness, spread, and runs."""
    return {
        case.name: [
            (harness, spread_of(case.again[harness]), len(case.again[harness]))
            for harness in harnesses
            if len(case.again.get(harness, ())) > 1
        ]
        for case in timed
        if case.again
    }
