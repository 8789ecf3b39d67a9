"""What `accel-micro crossover` answers: for each op its sizes, who is faster where, and what bounds a side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from accel_micro.comparison.compared import Tolerance
from accel_micro.comparison.sides import Kind, Side
from accel_micro.comparison.sweeping import Swept, Which, middle
from accel_micro.measure.records import Case
from accel_micro.stats.crossover import Faster

INTERRUPTED: Final = 130
NOTHING_TIMED: Final = 3
INCONCLUSIVE: Final = 4

Answer = Literal["crosses", "throughout", "partly equal", "equal", "open", "no time", "not measured"]
"""One side overtakes the other; one is faster at all sizes, or at some while the other never is; neither is at any; not
decided; no size has a time; the run ended before one had."""


@dataclass(frozen=True)
class Subject:
    """An op in one direction."""

    op: str
    direction: str


@dataclass(frozen=True)
class Crossed:
    """All rows, and under which conditions they were measured.

    Attributes:
        sides: baseline and contender, two devices or two dtypes.
        held: what both sides have: the dtype of two devices, the device of two dtypes.
        rows: one for each op. absent: ops that a side does not have, each with the reason.
        alpha: how often, at most, any size of a row is called for the wrong side.
        factor: width of an interval that is narrow enough. budget_seconds: that measuring might take.
    """

    sides: tuple[Side, Side]
    held: str
    machine: str
    torch_version: str
    session: str
    rows: tuple[Swept[Subject], ...]
    absent: tuple[tuple[Subject, str], ...]
    tolerance: Tolerance
    alpha: float
    factor: float
    budget_seconds: float

    @property
    def kind(self) -> Kind:
        """What the sides differ in."""
        return self.sides[0].kind

    def side(self, faster: Faster) -> str:
        """A side's name; `equal` and `open` as they are."""
        names = {"baseline": self.sides[0].value, "contender": self.sides[1].value}
        return names.get(faster, faster)

    def case(self, subject: Subject, which: Which, shape: str) -> Case:
        """The case of a side at a shape."""
        return case_of(self.sides, self.held, subject, which, shape)

    @property
    def interrupted(self) -> bool:
        """Somebody pressed Ctrl-C before all was done."""
        return any(row.stopped == "interrupted" for row in self.rows)

    @property
    def exit_code(self) -> int:
        """130: interrupted. 3: nothing has a time. 4: no row is answered. Else 0."""
        answers = {answer(row) for row in self.rows}
        if self.interrupted:
            return INTERRUPTED
        if answers <= {"no time", "not measured"}:
            return NOTHING_TIMED
        return INCONCLUSIVE if answers <= {"no time", "not measured", "open"} else 0


def case_of(sides: tuple[Side, Side], held: str, subject: Subject, which: Which, shape: str) -> Case:
    """The case of a side at a shape; `held` is as in `Crossed`."""
    value = sides[0 if which == "baseline" else 1].value
    device, dtype = (value, held) if sides[0].kind == "device" else (held, value)
    return Case(subject.op, subject.direction, device, dtype, shape)


def answer(row: Swept[Subject]) -> Answer:
    """What a row says."""
    if not row.calls:
        return "no time" if row.sizes else "not measured"
    if row.crossings:
        return "crosses"
    if row.open:
        return "open"
    sides = {run.faster for run in runs(row)}
    return "equal" if sides == {"equal"} else "partly equal" if "equal" in sides else "throughout"


class Run(NamedTuple):
    """Neighbouring decided sizes at which the same side is faster, or neither."""

    faster: Faster
    first: int
    last: int


def runs(row: Swept[Subject]) -> list[Run]:
    """From the smallest size to the largest; sizes that are not decided are left out."""
    found: list[Run] = []
    for size, call in row.calls.items():
        if call.faster == "open":
            continue
        if found and found[-1].faster == call.faster:
            found[-1] = found[-1]._replace(last=size)
        else:
            found.append(Run(call.faster, size, size))
    return found


class Launch(NamedTuple):
    """Where enqueueing a call takes longer than running it.

    Attributes:
        up_to: largest size up to which all are launch-bound; None: not even the smallest is.
        beyond: smallest size that is not; None: all are.
    """

    up_to: int | None
    beyond: int | None


def launch(row: Swept[Subject], which: Which) -> Launch | None:
    """Where a side is launch-bound; None where it has no such clocks, as a CPU."""
    found = [(size.size, _is_launch_bound(getattr(size, which))) for size in row.sizes if size.call]
    known = [(size, bound) for size, bound in found if bound is not None]
    if not known:
        return None
    beyond = next((size for size, bound in known if not bound), None)
    below = [size for size, _ in known if beyond is None or size < beyond]
    return Launch(below[-1] if below else None, beyond)


def _is_launch_bound(records: Sequence[object]) -> bool | None:
    dispatch, device = (middle(records, clock) for clock in ("dispatch", "device"))  # type: ignore[arg-type]
    return None if dispatch is None or device is None else dispatch > device
