"""What torch.profiler (CUPTI) reads of kernels and copies on CUDA, without what it reads of itself."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from accel_micro.devices.base import Call
from accel_micro.devices.profiling import events_of, interval


def kernel_seconds(call: Call, calls: int) -> float:
    """Seconds per call in which at least one kernel or copy ran, read by torch.profiler (CUPTI).

    Kernels that run beside each other on several streams, as cuDNN's grouped convolutions do, count once.
    """
    return kernel_reading(call, calls)[0]


def kernel_reading(call: Call, calls: int) -> tuple[float, float]:
    """`kernel_seconds` and the kernels and copies that one call launches, from one reading."""
    intervals = device_intervals(repeated(call), calls)
    return busy_nanoseconds(intervals) * 1e-9 / calls, len(intervals) / calls


def kernels_per_call(call: Call) -> int:
    """Kernels and copies that one call launches."""
    return len(device_intervals(repeated(call), 1))


def busy_seconds(repeat: Callable[[int], None], calls: int) -> float:
    """Seconds per call in which at least one kernel or copy of `repeat(calls)` ran; spins do not count."""
    return busy_nanoseconds(device_intervals(repeat, calls)) * 1e-9 / calls


def repeated(call: Call) -> Callable[[int], None]:
    """Makes a number of calls, one behind the other."""

    def repeat(calls: int) -> None:
        for _ in range(calls):
            call()

    return repeat


def busy_nanoseconds(intervals: list[tuple[int, int]]) -> int:
    """Length of the union of intervals."""
    busy = end = 0
    for start, stop in sorted(intervals):
        if stop > end:
            busy += stop - max(start, end)
            end = stop
    return busy


def shared_nanoseconds(intervals: Sequence[tuple[int, int]]) -> list[float]:
    """Of each interval, what lies in several shared evenly among them; together as long as their union."""
    changes: Counter[int] = Counter()
    for start, stop in intervals:
        changes[start] += 1
        changes[stop] -= 1
    shares: dict[int, float] = {}  # what an interval has had until then that was there from the first
    so_far, running, before = 0.0, 0, 0
    for time in sorted(changes):
        if running:
            so_far += (time - before) / running
        shares[time] = so_far
        running += changes[time]
        before = time
    return [shares[stop] - shares[start] for start, stop in intervals]


def device_intervals(repeat: Callable[[int], None], calls: int) -> list[tuple[int, int]]:
    """When each kernel and copy of these calls began and ended, nanoseconds."""
    return [interval(event) for event in device_events(repeat, calls)]


def device_events(repeat: Callable[[int], None], calls: int, *, spins: bool = False) -> list[Any]:
    """The profiler's events of the device, without annotations and, unless asked for, spins."""
    import torch
    from torch.profiler import ProfilerActivity

    def run() -> None:
        repeat(calls)
        torch.cuda.synchronize()

    torch.cuda.synchronize()
    return [event for event in launched(events_of(run, ProfilerActivity.CUDA)) if spins or not is_spin(event)]


def launched(events: Iterable[Any]) -> list[Any]:
    """Kernels and copies among a profiler's events."""
    from torch.autograd import DeviceType  # type: ignore[attr-defined]

    return [event for event in events if event.device_type() == DeviceType.CUDA and not _is_annotation(event)]


def is_spin(event: Any) -> bool:
    """True for torch's `_sleep`."""
    return "spin_kernel" in str(event.name())


def _is_annotation(event: Any) -> bool:
    """True for ranges that the profiler copies from the host to the device's timeline; they are no work."""
    kind = getattr(event, "activity_type", None)
    if kind is not None:
        return bool(kind() == "gpu_user_annotation")
    name = str(event.name())
    return name.startswith(("Optimizer.", "ProfilerStep")) or "##" in name
