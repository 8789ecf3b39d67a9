"""The rows of two captures that are to be held against each other, as groups.

An operator of a phase is a group, where in each module both sides call it equally often. Where they do not (a GPU's
batch normalisation has another name, a foreach optimizer other operators), calls are compared at the lowest level at
which both sides do the same: all that differ of a kind of module, or of the optimizer.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from accel_micro.explain.capture import PHASES, Capture, Reading, Row

Kind = Literal["op", "framework", "transfer", "loader", "unexplained"]

OPTIMIZER: Final = "the optimizer's step"
SPLIT_SHARE: Final = 0.05
"""Share of the baseline's step from which on the framework's time in a module is a group of its own."""


@dataclass(frozen=True)
class Group:
    """What is compared as one.

    Attributes:
        label: for people, such as `convolution_backward`.
        rows: numbers of the rows of either side that belong to it.
        tail: what comes after a step's last call is part of it.
    """

    kind: Kind
    label: str
    phase: str = ""
    rows: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    tail: bool = False


def op_groups(one: Capture, other: Capture) -> list[Group]:
    """The groups of ops, in the order of the first side's step."""
    labels = _Labels(one, other)
    found: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
    for side, capture in enumerate((one, other)):
        for number, row in enumerate(capture.rows):
            found.setdefault((row.phase, labels.of(side, number)), ([], []))[side].append(number)
    return [
        Group("op", label, phase, (tuple(numbers[0]), tuple(numbers[1])))
        for (phase, label), numbers in found.items()
    ]


class _Labels:
    """As what each row is compared."""

    def __init__(self, one: Capture, other: Capture) -> None:
        self._sides = (one, other)
        self._counts: list[Counter[tuple[str, str, str]]] = [Counter(), Counter()]
        # What takes no time is left out: a `detach` of what autograd keeps, which a mode alone sees, goes with many an
        # operator that a side calls more often.
        timed = [
            (side, row)
            for side, capture in enumerate(self._sides)
            for number, row in enumerate(capture.rows)
            if _takes_time(capture, number)
        ]
        for side, row in timed:
            self._counts[side][row.phase, row.module, row.operator] += row.count
        # Operators that differ, of each side, by phase and what they are put to.
        self._apart: defaultdict[tuple[str, str], tuple[set[str], set[str]]] = defaultdict(
            lambda: (set(), set())
        )
        self._alike: set[str] = set()
        for side, row in timed:
            if self._differs(row):
                self._apart[row.phase, _together(row)][side].add(row.operator)
            else:
                self._alike.add(row.phase)

    def _differs(self, row: Row) -> bool:
        place = (row.phase, row.module, row.operator)
        return self._counts[0][place] != self._counts[1][place]

    def of(self, side: int, number: int) -> str:
        """The label of the group that a row of a side belongs to."""
        row = self._sides[side].rows[number]
        if not _takes_time(self._sides[side], number):
            return row.operator
        together = _together(row)
        ones, others = self._apart[row.phase, together]
        if row.phase == "optimizer" and bool(ones) != bool(others):
            return together  # calls that only one side has can be held against nothing less than the step
        if not self._differs(row) or (ones == others and len(ones) == 1):
            return row.operator  # one operator alone that a side calls more often is still that operator
        if row.phase == "optimizer" and row.phase in self._alike:
            return "other calls of the optimizer"
        return together


def _takes_time(capture: Capture, number: int) -> bool:
    return any(reading.ops and reading.ops[number] for reading in capture.readings)


def _together(row: Row) -> str:
    """What calls that have no counterpart on the other side are put to."""
    if row.phase == "optimizer":
        return OPTIMIZER
    return f"other ops of {row.module_class}" if row.module_class else "ops of one side"


def framework_groups(one: Capture, other: Capture) -> tuple[list[Group], list[Group]]:
    """Groups of the framework's time, which add up to all of it, and the modules that were looked at for that.

    A module whose own time differs by `SPLIT_SHARE` of the first side's step is a group; the rest of each phase is
    another. The last one has the tail of the step.
    """
    modules: dict[tuple[str, str, str], tuple[list[int], list[int]]] = {}
    for side, capture in enumerate((one, other)):
        for number, row in enumerate(capture.rows):
            key = (row.phase, row.module, row.module_class)
            modules.setdefault(key, ([], []))[side].append(number)
    limit = SPLIT_SHARE * one.step_seconds / one.batch
    rest: dict[str, tuple[list[int], list[int]]] = {}
    split, candidates = [], []
    for (phase, module, name), numbers in modules.items():
        where = f"{name} {module}".strip() if name else ""
        label = f"Python in {where}" if where else "Python and autograd"
        group = Group("framework", label, phase, (tuple(numbers[0]), tuple(numbers[1])))
        means = [_mean_gap(capture, rows) for capture, rows in zip((one, other), group.rows, strict=True)]
        candidates.append(group)
        if name and abs(means[0] - means[1]) > limit:
            split.append(group)
        else:
            sides = rest.setdefault(phase, ([], []))
            for side in (0, 1):
                sides[side].extend(numbers[side])
    rest.setdefault(PHASES[0], ([], []))
    last = max(rest, key=PHASES.index)
    merged = [
        Group(
            "framework",
            "Python and autograd",
            phase,
            (tuple(rest[phase][0]), tuple(rest[phase][1])),
            phase == last,
        )
        for phase in sorted(rest, key=PHASES.index)
    ]
    return [*split, *merged], candidates


def _mean_gap(capture: Capture, rows: Iterable[int]) -> float:
    numbers = tuple(rows)
    sums = [sum(reading.gaps[n] for n in numbers) for reading in capture.readings]
    return sum(sums) / len(sums) / capture.batch


def values(group: Group, side: int, capture: Capture) -> list[float]:
    """Of each process the seconds of a group, an example."""
    return [_value(group, side, reading) / capture.batch for reading in capture.readings]


def _value(group: Group, side: int, reading: Reading) -> float:
    rows = group.rows[side]
    if group.kind == "op":
        return sum(reading.ops[n] for n in rows)
    if group.kind == "framework":
        return sum(reading.gaps[n] for n in rows) + (reading.tail_seconds if group.tail else 0.0)
    fed = reading.fed
    if fed is None:
        return 0.0
    if group.kind == "transfer":
        return fed.transfer_seconds
    if group.kind == "loader":
        return max(
            0.0, fed.loader_seconds - (reading.step_seconds + fed.transfer_seconds if fed.prefetches else 0.0)
        )
    raise ValueError(f"no value of its own: {group.kind}")


def noise(group: Group, side: int, capture: Capture) -> float:
    """Variance that such a value has from the scatter of steps alone, the mean over processes."""
    if group.kind != "op":
        return 0.0
    squares = [sum(reading.ops_errors[n] ** 2 for n in group.rows[side]) for reading in capture.readings]
    return sum(squares) / len(squares) / capture.batch**2


def rows_of(group: Group, side: int, capture: Capture) -> Iterator[Row]:
    """The rows of a group."""
    return (capture.rows[n] for n in group.rows[side])
