"""What a profile runs of each op on a device, and about how long that takes."""

import inspect
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from accel_micro.measure.records import Case, Record
from accel_micro.profiles import Profile
from accel_micro.suite import OpBenchmark

USUAL_SECONDS: Final = 1.5
"""A process of a case of which nothing is known: between half a second and a second of warming up and sampling on two
cores, the rest for inputs and the check. Only until something was measured here."""


@dataclass(frozen=True)
class Listed:
    """An op of the suite, as one device runs it.

    Attributes:
        text: the first line of its description. directions: `forward`, and `backward` where it has one.
        dtypes: those the op exists in. shapes: profile → shapes.
        cases: those that the profile runs. skipped: reason → how many it would run, but for that.
        seconds: of all its processes, about. known: cases of which a process ran here before.
        aten: operators of ATen that a call runs; empty when nobody asked.
    """

    op: str
    text: str
    device: str
    directions: tuple[str, ...]
    dtypes: tuple[str, ...]
    shapes: Mapping[str, tuple[str, ...]]
    cases: tuple[Case, ...]
    skipped: Mapping[str, int]
    seconds: float
    known: int
    aten: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The file that defines it."""
        return self.op.partition(".")[0]


@dataclass(frozen=True)
class Listing:
    """The ops of a suite on some devices.

    Attributes:
        rounds: processes a case.
    """

    profile: str
    rounds: int
    rows: tuple[Listed, ...]

    @cached_property
    def families(self) -> tuple[str, ...]:
        """In order, each once."""
        return tuple(dict.fromkeys(row.family for row in self.rows))

    def of(self, device: str) -> tuple[Listed, ...]:
        """The rows of a device."""
        return tuple(row for row in self.rows if row.device == device)

    @property
    def devices(self) -> tuple[str, ...]:
        """In order, each once."""
        return tuple(dict.fromkeys(row.device for row in self.rows))


def list_ops(
    ops: Sequence[type[OpBenchmark]],
    profile: Profile,
    devices: Sequence[str],
    records: Iterable[Record] = (),
    *,
    rounds: int | None = None,
) -> Listing:
    """The ops, with what a profile runs of each.

    Args:
        devices: kinds of devices, such as `cpu`.
        records: of processes that ran on this machine; the time of a case is the median of its processes, else that
            of the processes of its family on the device, of the device, and `USUAL_SECONDS` without any.
        rounds: processes a case, else the profile's.
    """
    costs = _Costs(records)
    count = profile.rounds if rounds is None else rounds
    rows = [_listed(cls, profile, device, costs, count) for device in devices for cls in ops]
    return Listing(profile.name, count, tuple(rows))


def _listed(cls: type[OpBenchmark], profile: Profile, device: str, costs: "_Costs", rounds: int) -> Listed:
    op = cls.op
    directions = ("forward", "backward") if op.backward else ("forward",)
    cases: list[Case] = []
    skipped: dict[str, int] = {}
    for dtype, shape in profile.runs(device, op.lists, op.dtypes):
        reason = op.why_unsupported(device, dtype, shape)
        if reason is None:
            cases += [cls.case(direction, device, dtype, shape) for direction in directions]
        else:
            skipped[reason] = skipped.get(reason, 0) + len(directions)
    doc = inspect.getdoc(cls) or ""
    return Listed(
        op=op.name,
        text=doc.partition("\n")[0],
        device=device,
        directions=directions,
        dtypes=op.dtypes,
        shapes=op.shapes,
        cases=tuple(cases),
        skipped=skipped,
        seconds=rounds * sum(map(costs.of, cases)),
        known=sum(case in costs.by_case for case in cases),
    )


class _Costs:
    """Seconds of a process of a case."""

    def __init__(self, records: Iterable[Record]) -> None:
        cases: dict[Case, list[float]] = {}
        for record in records:
            if record.seconds:
                cases.setdefault(record.case, []).append(sum(record.seconds.values()))
        self.by_case = {case: statistics.median(seconds) for case, seconds in cases.items()}
        groups: dict[tuple[str, str], list[float]] = {}
        for case, seconds in self.by_case.items():
            for family in (case.family, ""):
                groups.setdefault((case.device, family), []).append(seconds)
        self._by_group = {group: statistics.median(each) for group, each in groups.items()}

    def of(self, case: Case) -> float:
        if case in self.by_case:
            return self.by_case[case]
        groups = ((case.device, case.family), (case.device, ""))
        return next((self._by_group[group] for group in groups if group in self._by_group), USUAL_SECONDS)
