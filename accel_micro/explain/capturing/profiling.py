"""How long the device works for each call of a step, in place: kernels by the profiler, told apart by the calls.

Calls made again alone would need each call's arguments, which a large step has no memory for; and some cannot be made
again: the gradient of attention with dropout reads the seed of a forward that is not there.

A range around each call makes launches slower, and kernels run in other company: those of cuDNN's LSTM, on several
streams, took 7 % longer together (H200, torch 2.11). So ranges only tell which call launched what; how long it took is
read of plain steps, which launch the same in the same order.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from accel_micro.devices.cuda_profiler import device_events, launched, repeated, shared_nanoseconds
from accel_micro.devices.profiling import events_of, interval
from accel_micro.explain.capturing.recording import Structure

_STEPS: Final = 3
_MARK: Final = "accel_micro call "


@dataclass(frozen=True)
class Launch:
    """A kernel or copy.

    Attributes:
        name: of the kernel, or the kind of copy. seconds: of the time in which several ran its share. place: of the
            call that launched it, in the step; None where no call did, or the profiler does not tell.
    """

    name: str
    seconds: float
    place: int | None = None


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
    marked = _marked(step, structure)
    if marked is None:
        return None
    steps = undisturbed(marked, launches_of(device_events(repeated(step), _STEPS)))
    if steps is None:  # steps differ, or streams keep no order: what the marked ones took has to do
        more = [_marked(step, structure) for _ in range(_STEPS - 1)]
        steps = [one for one in (marked, *more) if one is not None]
    totals = [_by_row(launches, structure) for launches in steps]
    of_rows = zip(structure.calls, zip(*totals, strict=True), strict=True)
    return [median(seconds) / call.count for call, seconds in of_rows]


def _by_row(launches: Iterable[Launch], structure: Structure) -> list[float]:
    """Seconds of all calls of each row in one step."""
    totals = [0.0] * len(structure.calls)
    for launch in launches:
        if launch.place is not None and (row := structure.sequence[launch.place]) >= 0:
            totals[row] += launch.seconds
    return totals


def undisturbed(marked: Sequence[Launch], plain: Sequence[Launch]) -> list[list[Launch]] | None:
    """The launches of each plain step, with the places that their likes have in the marked one.

    Returns:
        None where the plain steps did not launch what the marked one did, in its order.
    """
    names = [launch.name for launch in marked]
    length = len(marked)
    if not marked or not plain or len(plain) % length:
        return None
    steps = [plain[first : first + length] for first in range(0, len(plain), length)]
    if any([launch.name for launch in one] != names for one in steps):
        return None
    return [
        [Launch(own.name, own.seconds, like.place) for own, like in zip(one, marked, strict=True)]
        for one in steps
    ]


def _marked(step: Callable[[], Any], structure: Structure) -> list[Launch] | None:
    """What a step launches, and where; None where it calls other ops than the structure has."""
    marking = Marking()
    launches = launches_of(_events(step, marking))
    return launches if marking.funcs == structure.funcs else None


def _events(step: Callable[[], Any], marking: Marking) -> list[Any]:
    """Kineto's events of a step with a range around each call."""
    from torch.profiler import ProfilerActivity

    def run() -> None:
        with marking:
            step()
        torch.cuda.synchronize()

    torch.cuda.synchronize()
    return events_of(run, ProfilerActivity.CPU, ProfilerActivity.CUDA)


def launches_of(events: Sequence[Any]) -> list[Launch]:
    """Kernels and copies among Kineto's events, as the host launched them, with the range in which it did.

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

    def place(launch: Any) -> int | None:
        if (host := hosts.get(launch.linked_correlation_id())) is None:
            return None
        thread, begin = host
        of_thread = ranges.get(thread, [])
        last = bisect_right(of_thread, begin, key=lambda one: one[0]) - 1
        return of_thread[last][2] if last >= 0 and begin <= of_thread[last][1] else None

    # An older profiler copies ranges to the device's timeline, where they look like kernels.
    found = [event for event in launched(events) if not str(event.name()).startswith(_MARK)]
    found.sort(key=lambda event: int(event.correlation_id()))
    shares = shared_nanoseconds([interval(event) for event in found])
    return [
        Launch(str(event.name()), 1e-9 * share, place(event))
        for event, share in zip(found, shares, strict=True)
    ]
