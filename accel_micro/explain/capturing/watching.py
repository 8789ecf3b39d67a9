"""What it costs to watch: seconds that a mode which brackets each op adds to a step, outside of the brackets."""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Any, Final

import torch

from accel_micro.explain.capturing.recording import Call, Timing, record

_BYTES: Final = (1 << 12, 1 << 16, 1 << 20, 1 << 24)
_CALLS: Final = (60, 60, 60, 20)
_LIST: Final = 64
_READINGS: Final = 5
_STEPS: Final = 50
_IN_A_STEP: Final = (1.0, 3.0)
_FEW: Final = 4
"""Tensors up to which each is an argument of its own; more come in lists."""


@dataclass(frozen=True)
class Watching:
    """Seconds that watching adds to a call, by how much memory was touched since the last one.

    A mode costs nothing of a call's own time but what leads there and back: arguments and results become objects of
    Python. So it is read off calls that do nothing, each with and without a mode. What a step does between two calls
    drives torch and Python out of the cache, and the way is then longer. Measured on two cores of an AMD EPYC: 3.6 µs
    after nothing, 5.3 µs after 1 MB and 15 µs after 16 MB; 0.6 µs for each further tensor, 1.8 µs for a number in
    place of one, 0.8 µs where autograd takes note, 0.1 µs for a tensor of a list. In a step, where no two calls in a
    row are alike, it is more than in a loop: all is scaled to what watching a small network's step really adds.

    Attributes:
        call: of a call with one tensor, after each of `_BYTES`.
        argument, number, graph, listed: what the others add, after nothing; they grow as `call` does.
    """

    call: tuple[float, ...]
    argument: float
    number: float
    graph: float
    listed: float

    def of(self, call: Call | None, before: Call | None) -> float:
        """Of such a call after another; None is one that only marks a place."""
        touched = max(call.bytes if call else 0.0, before.bytes if before else 0.0)
        bare = _between(touched, self.call)
        if call is None:
            return bare
        growth = bare / self.call[0] if self.call[0] else 1.0
        further = min(max(0, call.tensors - 1), _FEW) * self.argument
        further += max(0, call.tensors - 1 - _FEW) * self.listed
        further += call.numbers * self.number + call.noted * self.graph
        return bare + growth * further

    def scaled(self, factor: float) -> "Watching":
        """All of it by a factor, such as the share of full speed at which it was measured."""
        call = tuple(factor * each for each in self.call)
        return Watching(
            call, factor * self.argument, factor * self.number, factor * self.graph, factor * self.listed
        )

    def beside_a_device(self) -> "Watching":
        """Where ops run on a device of its own: what they touch is not in the host's cache anyway."""
        return replace(self, call=self.call[:1] * len(self.call))

    @classmethod
    def measured(cls) -> "Watching":
        """On this machine now; takes half a second."""
        one, two, three = (torch.ones(8) for _ in range(3))
        graph = torch.ones(8, requires_grad=True)
        many = [torch.zeros(8) for _ in range(_LIST)]
        noted = _added(lambda: graph.mul(2.0), _CALLS[0], _BYTES[0])
        with torch.no_grad():
            call = _rising([_added(one.relu_, n, size) for size, n in zip(_BYTES, _CALLS, strict=True)])
            # Each next to what it is held against: the machine may be slower a second later.
            pairs: tuple[tuple[Callable[[], Any], Callable[[], Any], int], ...] = (
                (lambda: one.addcmul_(two, three), one.relu_, 2),
                (lambda: one.mul_(1.0), one.relu_, 1),
                (
                    lambda: torch._foreach_add(many, 1.0),
                    lambda: torch._foreach_add(many[:1], 1.0),
                    2 * _LIST - 2,
                ),
            )
            further = [
                max(0.0, (_added(more, 30, _BYTES[0]) - _added(less, 30, _BYTES[0])) / count)
                for more, less, count in pairs
            ]
            unnoted = _added(lambda: graph.mul(2.0), _CALLS[0], _BYTES[0])
        argument, number, listed = further
        alone = cls(call, argument, number, max(0.0, noted - unnoted), listed)
        return alone.scaled(_in_a_step(alone))


def _in_a_step(alone: Watching) -> float:
    """What watching adds to the step of a tiny network ÷ what it should add by single calls."""
    width = 16
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        layers = [torch.nn.Linear(width, width) for _ in range(4)]
        net = torch.nn.Sequential(*(each for layer in layers for each in (layer, torch.nn.Tanh())))
        x = torch.randn(2, width)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-6, foreach=False)

    def step() -> None:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    step()
    structure = record(step, net)
    calls = [structure.calls[n] if n >= 0 else None for n in structure.sequence]
    expected = sum(alone.of(call, before) for before, call in zip([None, *calls], calls, strict=False))
    added = _added(step, _STEPS, _BYTES[0])
    low, high = _IN_A_STEP
    return min(high, max(low, added / expected)) if expected > 0 else low


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
    """Seconds that a mode adds to a call: the least readings of both, since whatever disturbs one makes it longer."""
    import numpy as np

    memory = np.zeros(touched // 4, dtype=np.float32)
    bare = watched = math.inf
    for _ in range(_READINGS):
        bare = min(bare, _seconds(call, calls // _READINGS, memory))
        with Timing():
            watched = min(watched, _seconds(call, calls // _READINGS, memory))
    return watched - bare


def _seconds(call: Callable[[], Any], calls: int, memory: Any) -> float:
    times = []
    for _ in range(calls + 1):
        memory += 1.0
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return median(times[1:])
