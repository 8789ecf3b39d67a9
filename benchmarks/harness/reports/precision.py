"""A mode of arithmetic that changes between two runs and looks like a regression."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch

from accel_micro.comparison.differences import find_differences
from accel_micro.comparison.pairing import Pair
from accel_micro.measure.case import measure_case
from accel_micro.measure.inputs import Inputs
from accel_micro.measure.records import Case, Failure, Record
from accel_micro.report.units import quantity
from accel_micro.results import Key, Measured, Trial
from benchmarks.harness.reports.row import Attempt, DoesNotApply, Finding

_CLOCK: Final = "throughput"
_ROUNDS: Final = 2


@contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


@contextmanager
def _medium(allowed: bool) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium" if allowed else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def flipped(kind: str, side: int, mode: Callable[[bool], Any], name: str) -> Finding:
    """Report 20: the same case with the mode on and off, by turns, each recorded as a process of a side of its own."""
    case = Case("reports.precision", "forward", kind, "float32", f"side={side}")

    def build(t: Inputs) -> Callable[[], torch.Tensor]:
        a, b = t(side, side), t(side, side)
        return lambda: torch.mm(a, b)

    sides: dict[bool, list[Record]] = {True: [], False: []}
    for _ in range(_ROUNDS):
        for allowed in sides:
            with mode(allowed):
                record = measure_case(case, build, clocks=(_CLOCK,), samples=10, budget_seconds=0.7)
            if record.skipped is not None:
                raise DoesNotApply(record.skipped)
            if record.failure is not None:
                return _refused(side, f"with {name}" if allowed else f"without {name}", record.failure)
            sides[allowed].append(record)
    fast, full = (_trial(case, sides[allowed]) for allowed in (True, False))
    with tempfile.TemporaryDirectory() as folder:
        found = find_differences([Pair(fast, full, "interleaved")], "build", Path(folder)).found
    named = [each for each in found if each.group == "modes"]
    seconds = {allowed: _median(records) for allowed, records in sides.items()}
    errors = {allowed: _error(records) for allowed, records in sides.items()}
    ratio = seconds[False] / seconds[True]
    told = "; ".join(
        f"{each.name} {_values(each.baseline)} against {_values(each.contender)}" for each in named
    )
    return Finding(
        tried=f"mm {side}³ float32 with {name} and without, in turns",
        naive=f"without it {ratio:.2f} times the time with it, and nothing says why",
        ours=f"{quantity(seconds[True], 's')} with, {quantity(seconds[False], 's')} without; "
        f"error against float64 {errors[True]:.1e} and {errors[False]:.1e}",
        does=f"recorded with each process and named where the sides are compared: {told}"
        if named
        else "THE MODES ARE NOT TOLD APART",
        good=bool(named),
        figures={
            "with_seconds": seconds[True],
            "without_seconds": seconds[False],
            "with_error": errors[True],
            "without_error": errors[False],
            "named": [each.name for each in named],
        },
    )


def _refused(side: int, how: str, failure: Failure) -> Finding:
    """Ours gives an honest op no time: a row to be ashamed of."""
    return Finding(
        tried=f"mm {side}³ float32 with the mode and without, in turns",
        naive="not read",
        ours=f"no time {how}",
        does=f"REJECTS AN HONEST TIME: {failure.kind}: {failure.detail}",
        good=False,
    )


def _trial(case: Case, records: list[Record]) -> Trial:
    processes = tuple(
        Measured(record.clocks[_CLOCK].samples, precision=tuple(record.precision.items()))
        for record in records
    )
    return Trial(Key("machine", "build", "environment", case, _CLOCK), processes)


def _median(records: list[Record]) -> float:
    return min(record.clocks[_CLOCK].median_seconds for record in records)


def _error(records: list[Record]) -> float:
    return max(record.check.error for record in records if record.check is not None)


def _values(values: tuple[Any, ...]) -> str:
    return ", ".join(map(str, values))


ATTEMPTS: Final = (
    Attempt(20, "cuda", "CUDA", partial(flipped, "cuda", 4096, _tf32, "TF32")),
    Attempt(
        20,
        "cpu",
        "CPU",
        partial(flipped, "cpu", 512, _medium, "float32_matmul_precision = medium"),
    ),
)
