"""All attempts, in order of their reports."""

from typing import Final

from benchmarks.harness.reports import (
    itself,
    lazy,
    metal,
    precision,
    synchronising,
    throttling,
    values,
    warming,
    watchdog,
)

ATTEMPTS: Final = tuple(
    sorted(
        (
            attempt
            for room in (synchronising, metal, watchdog, lazy, warming, itself, throttling, values, precision)
            for attempt in room.ATTEMPTS
        ),
        key=lambda attempt: attempt.number,
    )
)
