"""What it costs to watch: seconds that a mode which brackets each op adds to a step, outside of the brackets."""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any, Final

import torch

from accel_micro.explain.capturing.recording import Call, Timing

_BYTES: Final = (1 << 12, 1 << 16, 1 << 20, 1 << 24)
_CALLS: Final = (60, 60, 60, 20)
_LIST: Final = 64
_READINGS: Final = 5


@dataclass(frozen=True)
class Watching:
    """Seconds that watching adds to a call, by how much memory was touched since the last one.

    A mode costs nothing of a call's own time but what leads there and back: arguments and results become objects of
    Python. So it is read off calls that do nothing, each with and without a mode. What a step does between two calls
    drives torch and Python out of the cache, and the way is then longer: measured on two cores of an AMD EPYC, 3.7 µs
    after nothing, 6 µs after 64 kB, 9 µs after 1 MB and 15 µs after 16 MB, and 4 to 30 µs more where a tensor is made.

    Attributes:
        call, maker: of a call that makes no tensors, and of one that makes some, after each of `_BYTES`.
        tensor: of each further tensor of a list.
    """

    call: tuple[float, ...]
    maker: tuple[float, ...]
    tensor: float

    def of(self, call: Call | None, before: Call | None) -> float:
        """Of such a call after another; None is one that only marks a place."""
        touched = max(call.bytes if call else 0.0, before.bytes if before else 0.0)
        if call is None:
            return _between(touched, self.call)
        further = max(0, call.tensors - 1)
        return _between(touched, self.maker if call.makes_tensors else self.call) + further * self.tensor

    @classmethod
    def measured(cls) -> "Watching":
        """On this machine now; takes half a second."""
        few = torch.zeros(8)
        graph = torch.zeros(8, requires_grad=True)
        many = [torch.zeros(8) for _ in range(_LIST)]
        call, maker = [], []
        for size, calls in zip(_BYTES, _CALLS, strict=True):
            with torch.no_grad():
                call.append(_added(few.relu_, calls, size))
            maker.append(_added(lambda: graph.mul(2.0), calls, size))
        with torch.no_grad():
            long = _added(lambda: torch._foreach_add(many, 1.0), 30, _BYTES[1])
            short = _added(lambda: torch._foreach_add(many[:1], 1.0), 30, _BYTES[1])
        return cls(_rising(call), _rising(maker), max(0.0, (long - short) / (2 * _LIST - 2)))


def _rising(costs: Sequence[float]) -> tuple[float, ...]:
    """None less than the one before: more memory is not faster."""
    found: list[float] = []
    for cost in costs:
        found.append(max([0.0, cost, *found[-1:]]))
    return tuple(found)


def _between(size: float, costs: Sequence[float]) -> float:
    """The cost after that many bytes, a straight line over the logarithm between two of `_BYTES`."""
    if size <= _BYTES[0]:
        return costs[0]
    if size >= _BYTES[-1]:
        return costs[-1]
    above = bisect_right(_BYTES, size)
    low, high = _BYTES[above - 1], _BYTES[above]
    share = math.log(size / low) / math.log(high / low)
    return costs[above - 1] + share * (costs[above] - costs[above - 1])


def _added(call: Callable[[], Any], calls: int, touched: int) -> float:
    """Seconds that a mode adds to a call, the median over some readings in turns."""
    import numpy as np

    memory = np.zeros(touched // 4, dtype=np.float32)
    added = []
    for _ in range(_READINGS):
        bare = _seconds(call, calls // _READINGS, memory)
        with Timing():
            watched = _seconds(call, calls // _READINGS, memory)
        added.append(watched - bare)
    return median(added)


def _seconds(call: Callable[[], Any], calls: int, memory: Any) -> float:
    times = []
    for _ in range(calls + 1):
        memory += 1.0
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return median(times[1:])
