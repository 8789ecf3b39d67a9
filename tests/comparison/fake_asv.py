"""Stands in for asv where builds are measured by turns."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accel_micro.asv_plugin.opening import Where
from accel_micro.measure import Process
from accel_micro.measure.records import Case, Failure, Record


@dataclass
class Asv:
    """Stands in for `interleaved`: a process takes no time, and reads what `seconds` says.

    `lacking` says of a build, by its id, why it cannot be run.
    """

    seconds: Callable[[Where, Case, int], float]
    failure: Failure | None = None
    lacking: dict[str, str] = field(default_factory=dict)
    interrupts_at: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    turns: list[tuple[Where, Case]] = field(default_factory=list)
    renewed: list[tuple[int, list[str]]] = field(default_factory=list)

    def renew(self, places: list[Where]) -> None:
        self.renewed.append((len(self.turns), [place.build for place in places]))

    @contextlib.contextmanager
    def interleaved(self, config: Path | None, **options: Any) -> Iterator["Asv"]:
        self.options = options
        yield self

    def __call__(self, place: Where, case: Case) -> Record:
        if len(self.turns) == self.interrupts_at:
            raise KeyboardInterrupt
        if place.build in self.lacking:
            return Record(case, skipped=self.lacking[place.build])
        number = self.turns.count((place, case))
        self.turns.append((place, case))
        record = Record(case, build=place.build, session="fresh", round=number + 1, started=f"{number:02}")
        if self.failure is not None:
            return replace(record, failure=self.failure)
        values = (self.seconds(place, case, number),) * 3
        read = {
            clock: Process(case.device, clock, values, values, (1.0,) * 3, 7)
            for clock in self.options["clocks"]
        }
        return replace(record, clocks=read)


def jitter(number: int) -> float:
    return float(1 + 0.002 * (-1) ** number * (1 + number % 3))
