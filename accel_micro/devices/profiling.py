"""What torch's profiler notes while something runs, in any version of torch."""

import warnings
from collections.abc import Callable
from typing import Any

from accel_micro.devices.base import quiet_stderr


def events_of(run: Callable[[], None], *activities: Any) -> list[Any]:
    """Kineto's events of a run, of these of torch's `ProfilerActivity`.

    Raises:
        RuntimeError: the profiler cannot be used, or has no results.
    """
    from torch.profiler import profile

    with quiet_stderr(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch 2.11 warns of events of earlier cycles, and here is only one
        with profile(activities=list(activities)) as profiler:
            run()
    results: Any = profiler.profiler.kineto_results if profiler.profiler is not None else None
    if results is None:
        raise RuntimeError("it has no results")
    return list(results.events())


def interval(event: Any) -> tuple[int, int]:
    """When an event of Kineto's began and ended, nanoseconds by one clock for all of a session."""
    if hasattr(event, "duration_ns"):
        start, duration = event.start_ns(), event.duration_ns()
    else:  # before torch 2.4
        start, duration = 1000 * event.start_us(), 1000 * event.duration_us()
    return int(start), int(start) + int(duration)
