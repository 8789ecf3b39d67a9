"""The words of this room: a report, an attempt to bring its situation about, what was found, and a row of the table."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Report:
    """What somebody reported in public.

    Attributes:
        number: in the list. issues: as projects write them, `pytorch#152199`, with their addresses.
        said: what was reported there.
    """

    number: int
    issues: Mapping[str, str]
    said: str


@dataclass(frozen=True)
class Finding:
    """What an attempt found.

    Attributes:
        tried: what was done here, and how the truth is known.
        naive, ours: the figures that a naive harness and ours give, in words with units.
        does: what ours does: `right within 2 %`, `rejected: …`, `flagged …`.
        good: that is what a reader needs. False is a row to be ashamed of, not a failure of the attempt.
        figures: the same and more as numbers, SI units.
    """

    tried: str
    naive: str
    ours: str
    does: str
    good: bool
    figures: Mapping[str, Any] = field(default_factory=dict)


class DoesNotApply(Exception):
    """The situation cannot be brought about here; the message says why."""


@dataclass(frozen=True)
class Attempt:
    """A way to bring a report's situation about.

    Attributes:
        number: of the report.
        needs: `cpu`, `cuda` or `xla`: the device that this process must have.
        where: what is really timed, in words; a simulated device is called so.
        find: does it. Raises DoesNotApply.
        most_seconds: after which it is given up.
    """

    number: int
    needs: str
    where: str
    find: Callable[[], Finding]
    most_seconds: float = 90.0


@dataclass(frozen=True)
class Row:
    """What became of an attempt: a finding, or why there is none.

    Attributes:
        number, where: of the attempt. model: of the device that the process had.
        problem: `does not apply: …`, an error, `crashed`, `timed out`; empty when there is a finding.
        tries: how often it was tried; the finding is that of the last.
    """

    number: int
    where: str
    model: str
    finding: Finding | None
    problem: str
    seconds: float
    tries: int = 1

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Row":
        """The inverse of `to_json`.

        Raises:
            KeyError, TypeError: the data is not a row.
        """
        finding = data["finding"]
        return cls(**{**data, "finding": None if finding is None else Finding(**finding)})


def within(read: float, truth: float = 1.0, limit: float = 0.15) -> tuple[str, bool]:
    """`right within 3 %` and whether that is as it should be: 15 % is how far two clocks of one process may differ.

    >>> within(1.02, 1.0), within(2.0, 1.0)
    (('right within 2 %', True), ('WRONG, 2 times the truth', False))
    """
    off = abs(read / truth - 1)
    if off <= limit:
        return f"right within {max(1, round(100 * off))} %", True
    return f"WRONG, {read / truth:.3g} times the truth", False
