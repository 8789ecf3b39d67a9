"""Which cases a calibration runs: a spread over families, directions and sizes, the same each time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from accel_micro import profiles
from accel_micro.measure.records import Case

MOST: Final = 8
FEWEST: Final = 3
_SECONDS_A_CASE: Final = 12.0
"""Eight processes of a second and a half: one comparison of a case with itself."""


@dataclass(frozen=True)
class Definition:
    """An op of the suite.

    Attributes:
        op: its name, `family.op`.
        shapes: its shapes in the profile quick, else in standard, from launch-bound to compute-bound.
        dtypes: those to run on the device.
        backward: whether it has a backward.
        quick: its shapes are those of the profile quick.
    """

    op: str
    shapes: tuple[str, ...]
    dtypes: tuple[str, ...]
    backward: bool
    quick: bool = True

    @property
    def family(self) -> str:
        """The file under benchmarks/ that defines it."""
        return self.op.split(".")[0]


def definitions(facts: Iterable[Mapping[str, Any]], device: str) -> list[Definition]:
    """The ops of a suite, of which every clock and direction has its own facts.

    Args:
        facts: what `suite` attaches to a benchmark: `op`, `direction`, `shapes` (profile → shapes), `dtypes`.
    """
    profile = profiles.get("quick")
    wanted = profile.dtypes(device)
    found: dict[str, Definition] = {}
    for each in facts:
        op, shapes = str(each["op"]), each["shapes"]
        known = found.get(op)
        found[op] = Definition(
            op=op,
            shapes=tuple(shapes.get("quick") or shapes.get("standard") or ()),
            quick=bool(shapes.get("quick")),
            dtypes=tuple(dtype for dtype in wanted if dtype in each["dtypes"]),
            backward=each["direction"] == "backward" or (known is not None and known.backward),
        )
    return list(found.values())


def how_many(seconds: float) -> int:
    """Cases for a run of that long: fewer in a short one, so that each is compared with itself at least once."""
    return max(FEWEST, min(MOST, int(seconds / _SECONDS_A_CASE)))


def spread(definitions: Iterable[Definition], device: str) -> list[Case]:
    """All candidates, those to take first at the front; those after them stand in for what does not exist here.

    The four families with most shapes in quick take turns, and after them the others. In each, its smallest shape
    comes first and the largest of the op with most shapes second; in every other family the small one is run
    backward. What is left follows in the order of the suite.
    """
    by_family: dict[str, list[Definition]] = {}
    for definition in sorted(definitions, key=lambda each: each.op):
        if definition.shapes and definition.dtypes:
            by_family.setdefault(definition.family, []).append(definition)
    shapes = {n: sum(len(each.shapes) for each in f if each.quick) for n, f in by_family.items()}
    first = sorted(sorted(by_family, key=lambda name: -shapes[name])[: MOST // 2])
    cases = []
    for names in (first, [name for name in by_family if name not in first]):
        queues = [_of_family(by_family[name], device, turn % 2 == 1) for turn, name in enumerate(names)]
        cases += [case for turn in zip_longest(*queues) for case in turn if case is not None]
    return list(dict.fromkeys(cases))


def _of_family(definitions: Sequence[Definition], device: str, backward_first: bool) -> list[Case]:
    richest = max(definitions, key=lambda each: (each.quick, len(each.shapes), each.backward))
    first = _case(richest, device, richest.shapes[0], 0, backward_first)
    second = _case(richest, device, richest.shapes[-1], -1, False)
    rest = [
        _case(each, device, shape, 0, backward)
        for backward in (False, True)
        for each in sorted(definitions, key=lambda each: not each.quick)
        for shape in each.shapes
        if each.backward or not backward
    ]
    return [first, second, *rest]


def _case(definition: Definition, device: str, shape: str, dtype: int, backward: bool) -> Case:
    direction = "backward" if backward and definition.backward else "forward"
    return Case(definition.op, direction, device, definition.dtypes[dtype], shape)
