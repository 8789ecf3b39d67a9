"""What a run tells whoever watches it."""

from collections.abc import Callable
from dataclasses import dataclass

from accel_micro.measure.records import Case, Record


@dataclass(frozen=True)
class CaseStarted:
    """A process is about to measure a case.

    Attributes:
        index, total: which process of how many, from 1.
        clocks: clocks it reads. round: which process of this case.
    """

    index: int
    total: int
    case: Case
    clocks: tuple[str, ...]
    round: int


@dataclass(frozen=True)
class CaseFinished:
    """A process has ended; `record` holds what it read, or why not. `seconds` is its whole life."""

    index: int
    total: int
    record: Record
    seconds: float


Event = CaseStarted | CaseFinished
Listener = Callable[[Event], None]
