"""The host's speed probe: a fixed pure-Python spin.

It needs no memory and no vector unit, and shares nothing with what is measured but the core it runs on. Neighbours on
a shared machine and thermal throttling slow it as they slow dispatch. Time in which it had no core is not counted: that
is what `waiting` is about.
"""

from collections.abc import Callable
from typing import Final

from accel_micro.devices.waiting import thread_waited_seconds

VERSION: Final = 4
"""Changes with the probe, whose rates cannot be compared with those of another."""

_LEAST_OWN: Final = 0.05
"""Share of its time for which a probe ran at least. With a half, a probe of a millisecond that was put aside for three
read half the speed, and times were corrected for a core that was never slow."""

SPINS: Final = 30_000
"""Iterations of one probe, about a millisecond."""


def spin_rate(now: Callable[[], float], waited: Callable[[], float] = thread_waited_seconds) -> float:
    """Iterations per second of one probe, timed by `now` less what `waited` says (both seconds)."""
    total = 0
    start = now()
    waited_before = waited()  # inside the time that is taken: a wait outside it must not be subtracted
    for i in range(SPINS):
        total += i & 7
    waiting = waited() - waited_before
    seconds = now() - start
    return SPINS / max(seconds - waiting, _LEAST_OWN * seconds)
