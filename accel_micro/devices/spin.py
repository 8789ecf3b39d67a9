"""The host's speed probe: a fixed pure-Python spin.

It needs no memory and no vector unit, and shares nothing with what is measured but the core it runs on. Neighbours on
a shared machine and thermal throttling slow it as they slow dispatch.
"""

from collections.abc import Callable
from typing import Final

SPINS: Final = 30_000
"""Iterations of one probe, about a millisecond."""


def spin_rate(now: Callable[[], float]) -> float:
    """Iterations per second of one probe, timed by `now` (seconds)."""
    total = 0
    start = now()
    for i in range(SPINS):
        total += i & 7
    return SPINS / (now() - start)
