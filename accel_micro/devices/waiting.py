"""How long threads waited for a core: the other tenant, as the kernel saw it.

The spin probe feels a slow core; it does not feel that a second thread of a parallel op was put aside while all others
spin at the barrier until it comes back. Linux keeps the time that a thread was ready to run and had no core, in
nanoseconds, as the second field of `schedstat` (Linux, Documentation/scheduler/sched-stats). Elsewhere it reads 0.
"""

import os
from typing import Final

LITTLE_WAITING: Final = 0.02
"""Share of a block in which some thread may have waited for a core before the block counts as disturbed."""

MOST_TAKEN_OFF: Final = 0.9
"""Share of a block that is taken off at most: of a thread that hardly ran, little is known."""

_TASKS: Final = "/proc/self/task"
_THIS_THREAD: Final = "/proc/thread-self/schedstat"
_MOST_THREADS: Final = 256


def share_taken_off(waiting: float, own_waiting: float) -> float:
    """Share of a block for which the thread that makes the calls had no core, where no other thread waited, else 0.

    Args:
        waiting: seconds that threads waited, per second of the block. own_waiting: of these, those of that thread.
    """
    alone = waiting - own_waiting <= LITTLE_WAITING
    return min(own_waiting, MOST_TAKEN_OFF) if alone else 0.0


def waited_seconds() -> float:
    """Seconds that the threads of this process have waited for a core, summed over those alive."""
    try:
        tasks = os.listdir(_TASKS)[:_MOST_THREADS]  # noqa: PTH208 - read twice a block
    except OSError:
        return 0.0
    return sum(_waited(f"{_TASKS}/{task}/schedstat") for task in tasks)


def thread_waited_seconds() -> float:
    """Seconds that this thread has waited for a core."""
    return _waited(_THIS_THREAD)


def _waited(path: str) -> float:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return 0.0  # the thread has ended, or this kernel keeps no such statistics
    try:
        return parse(os.read(descriptor, 100))
    except OSError:
        return 0.0
    finally:
        os.close(descriptor)


def parse(schedstat: bytes) -> float:
    """Seconds waited, from the text of a `schedstat` file; 0.0 when it is none."""
    fields = schedstat.split()
    return int(fields[1]) * 1e-9 if len(fields) == 3 and fields[1].isdigit() else 0.0
