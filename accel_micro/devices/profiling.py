"""What torch's profiler reports of an event, in any version of torch."""

from typing import Any


def interval(event: Any) -> tuple[int, int]:
    """When an event of Kineto's began and ended, nanoseconds by one clock for all of a session."""
    if hasattr(event, "duration_ns"):
        start, duration = event.start_ns(), event.duration_ns()
    else:  # before torch 2.4
        start, duration = 1000 * event.start_us(), 1000 * event.duration_us()
    return int(start), int(start) + int(duration)
