"""XLA: results that nobody computes, are computed once, are not waited for, or are compiled each time.

Truth is a chain of products until a number of the last is on the host. Each wrong way is held to the counters too.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from statistics import median
from typing import Any, Final

import torch

from accel_micro.devices.base import Call, Device
from accel_micro.doctor.sync import ways as others
from accel_micro.doctor.sync.workload import Workload, product
from accel_micro.measure.blocks import Blocks, Rejected
from accel_micro.measure.plausibility import not_the_op_alone
from accel_micro.measure.sampling import Sampler, opened
from accel_micro.report.units import quantity
from benchmarks.harness.reports import naive
from benchmarks.harness.reports.row import Attempt, DoesNotApply, Finding, within

_SIDE: Final = 512
_CALLS: Final = 30
_TURNS: Final = 9
_SAMPLES: Final = 10
_WHERE: Final = "XLA, PJRT's CPU client"


@contextmanager
def _opened() -> Iterator[tuple[Device, Workload]]:
    """PJRT's CPU client, and a product whose length is known by a chain."""
    with opened("xla") as device:
        if not device.on_cpu:
            raise DoesNotApply("these figures are called those of the CPU client; set PJRT_DEVICE=CPU")
        yield device, product(device, _SIDE, "large")


Wrong = Callable[[Device, Call, int], float]


def _wrong_way(wrong: Wrong, what: str, how: str, calls: int = _CALLS) -> Finding:
    with _opened() as (device, work):
        problems: list[str | None] = []

        def held_to_counters() -> float:
            with device.block() as counted:
                seconds = wrong(device, work.call, calls)
            problems.append(not_the_op_alone(counted, calls, device.name))
            return seconds

        work.witness(1)  # compiles what fetches the number
        ours_block = naive.block_of_ours(Sampler(device, work.call, 2.0))
        device.synchronize()
        wrong(device, work.call, calls)  # compiles what only this way asks for
        device.synchronize()
        ways = {"ours": ours_block, "truth": lambda: work.witness(_CALLS), "naive": held_to_counters}
        turns = naive.Turns.read(device, ways, _TURNS)
    truth, read, ours = turns.median("truth"), turns.median("naive"), turns.median("ours")
    problem = problems[-1] if all(problems) else None
    word, right = within(turns.ratio("ours", "truth"))
    rejects = f"; the other is rejected: {problem}" if problem else "; THE OTHER IS NOT REJECTED"
    return Finding(
        tried=f"mm {_SIDE}³ float32, {calls} calls, {what}; truth by a chain of products: {quantity(truth, 's')}",
        naive=f"{quantity(read, 's')} {how}",
        ours=quantity(ours, "s"),
        does=word + rejects,
        good=right and problem is not None,
        figures={"truth_seconds": truth, "naive_seconds": read, "ours_seconds": ours},
    )


def immediate_matmul() -> Finding:
    """Report 9."""
    return _wrong_way(others.unsynchronised, "results dropped, nothing marked", "without a mark and a wait")


def executed_once() -> Finding:
    """Report 10: the results replace each other, one step is marked, and it is waited for."""

    def overwritten(device: Device, call: Call, calls: int) -> float:
        start = device.now()
        for _ in range(calls):
            result = call()
        device.mark_step(result)
        device.synchronize()
        return (device.now() - start) / calls

    return _wrong_way(overwritten, "each result replaced by the next, one mark, one wait", "a call", 100)


def not_waited_for() -> Finding:
    """Report 11."""
    return _wrong_way(others.marked, "each step marked, none waited for", "without a wait")


def compiled_each_step() -> Finding:
    """Report 12: one more row in each call."""
    calls = 3
    with _opened() as (device, work):
        a = torch.randn(_SIDE, _SIDE).to("xla")
        rows = count(2)

        def growing() -> torch.Tensor:
            return a[: next(rows)] @ a

        ours = Sampler(device, work.call, 2.0).read("throughput", _SAMPLES).median_seconds
        read = median(others.synchronised_each(device, growing, calls) for _ in range(_TURNS))
        rejected = _refusal(lambda: Blocks(device, growing).seconds_of(calls))
    return Finding(
        tried=f"products of 2, 3, 4 … rows with {_SIDE}² numbers; all rows, of one shape, take {quantity(ours, 's')}",
        naive=f"{quantity(read, 's')} a call",
        ours="no time" if rejected else "A TIME",
        does=f"rejected: {rejected}" if rejected else "NOT REJECTED",
        good=rejected is not None,
        figures={"naive_seconds": read, "same_shape_seconds": ours},
    )


def op_on_the_host() -> Finding:
    """Report 8 on XLA: an op without a kernel there runs on the CPU."""
    calls = 3
    with opened("xla") as device:
        numbers = torch.arange(64).to("xla")

        def call() -> Any:
            return torch.bincount(numbers)

        read = median(others.synchronised_each(device, call, calls) for _ in range(_TURNS))
        rejected = _refusal(lambda: Blocks(device, call).seconds_of(calls))
    return Finding(
        tried="bincount, for which XLA has no kernel",
        naive=f"{quantity(read, 's')}, without a word",
        ours="no time" if rejected else "A TIME",
        does=f"rejected: {rejected}" if rejected else "NOT REJECTED",
        good=rejected is not None,
        figures={"naive_seconds": read},
    )


def _refusal(read: Callable[[], float]) -> str | None:
    try:
        read()
    except Rejected as reason:
        return str(reason)
    return None


ATTEMPTS: Final = (
    Attempt(8, "xla", _WHERE, op_on_the_host),
    Attempt(9, "xla", _WHERE, immediate_matmul),
    Attempt(10, "xla", _WHERE, executed_once),
    Attempt(11, "xla", _WHERE, not_waited_for),
    Attempt(12, "xla", _WHERE, compiled_each_step),
)
