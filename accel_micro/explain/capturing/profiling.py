"""How long the device works for each call of a step, in place: kernels by the profiler, told apart by the calls.

Calls made again alone would need each call's arguments, which a large step has no memory for; and some cannot be made
again: the gradient of attention with dropout reads the seed of a forward that is not there.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from accel_micro.devices.cuda_profiler import launched, shared_nanoseconds
from accel_micro.devices.profiling import events_of, interval
from accel_micro.explain.capturing.recording import Structure

_STEPS: Final = 3
_MARK: Final = "accel_micro call "


class Marking(TorchDispatchMode):
    """Puts each op's own call under its number, for the profiler.

    Attributes:
        funcs: what was called.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.funcs: list[Any] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        with torch.profiler.record_function(f"{_MARK}{len(self.funcs)}"):
            out = func(*args, **(kwargs or {}))
        self.funcs.append(func)
        return out


def device_seconds(step: Callable[[], Any], structure: Structure) -> list[float] | None:
    """Of one call of each row, the median over some steps; None where a step called other ops than the structure has.

    Kernels that run beside each other on several streams share the time, so that all calls together take what the
    device is busy for.

    Raises:
        RuntimeError: the profiler cannot be used here.
    """
    steps: list[list[float]] = []
    for _ in range(_STEPS):
        marking = Marking()
        seconds = seconds_by_mark(_events(step, marking))
        if marking.funcs != structure.funcs:
            return None
        totals = [0.0] * len(structure.calls)
        for place, number in enumerate(structure.sequence):
            if number >= 0:
                totals[number] += seconds.get(place, 0.0)
        steps.append(totals)
    of_rows = zip(structure.calls, zip(*steps, strict=True), strict=True)
    return [median(totals) / call.count for call, totals in of_rows]


def _events(step: Callable[[], Any], marking: Marking) -> list[Any]:
    """Kineto's events of a step with a range around each call."""
    from torch.profiler import ProfilerActivity

    def run() -> None:
        with marking:
            step()
        torch.cuda.synchronize()

    torch.cuda.synchronize()
    return events_of(run, ProfilerActivity.CPU, ProfilerActivity.CUDA)


def seconds_by_mark(events: Sequence[Any]) -> dict[int, float]:
    """Seconds for which kernels and copies ran that a call launched, by the number of its range.

    The profiler links a kernel with the innermost of the host's events around its launch, an op or a range; that one
    began within a range of `Marking` on its thread. (Torch's own sums over a range count the kernels of a step's first
    call twice: found with torch 2.11 on an H200.)
    """
    hosts: dict[int, tuple[int, int]] = {}
    ranges: dict[int, list[tuple[int, int, int]]] = {}
    for event in events:
        if event.device_type().name != "CPU":
            continue
        (begin, end), thread = interval(event), event.start_thread_id()
        hosts[event.correlation_id()] = thread, begin
        name = str(event.name())
        if name.startswith(_MARK):
            ranges.setdefault(thread, []).append((begin, end, int(name[len(_MARK) :])))
    for of_thread in ranges.values():
        of_thread.sort()

    def mark(launch: Any) -> int | None:
        if (host := hosts.get(launch.linked_correlation_id())) is None:
            return None
        thread, begin = host
        of_thread = ranges.get(thread, [])
        last = bisect_right(of_thread, begin, key=lambda one: one[0]) - 1
        return of_thread[last][2] if last >= 0 and begin <= of_thread[last][1] else None

    # An older profiler copies ranges to the device's timeline, where they look like kernels.
    launches = [event for event in launched(events) if not str(event.name()).startswith(_MARK)]
    found: dict[int, float] = {}
    for launch, nanoseconds in zip(
        launches, shared_nanoseconds([interval(one) for one in launches]), strict=True
    ):
        if (number := mark(launch)) is not None:
            found[number] = found.get(number, 0.0) + 1e-9 * nanoseconds
    return found
