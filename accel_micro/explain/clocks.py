"""Two clocks: a host that enqueues, and a device that works off the queue. A step played on both; pure.

    host += h;  start = max(host, device);  device = start + d;  a synchronisation sets host = device

Where nothing runs on a device (a CPU) it is the sum of the host's times. Of steps that follow each other without a
wait what counts is how much later the next one ends.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from accel_micro.explain.capture import Capture, Reading

_ORDERS: Final = 64
_SEED: Final = 20_261_128


@dataclass(frozen=True)
class Timeline:
    """The calls of a step in order.

    Attributes:
        host, device: seconds of each call on either clock. The host's include the framework before the call.
        waits: numbers of the calls after which the host waits for the device.
        tail: the host's seconds after the last call.
    """

    host: Any
    device: Any
    waits: tuple[int, ...] = ()
    tail: float = 0.0

    def seconds(self) -> float:
        """Of a step among others that follow without a wait: how much later each ends than the one before, in the end.

        Where the host never waits, that is the busier of the two clocks; else so much later the third ends than the
        second, since a step does not depend on what was before its first wait.
        """
        if not self.waits:
            return max(self.host_seconds(), self.device_seconds())
        host = device = 0.0
        ends = []
        for _ in range(3):
            host, device = self._played(host, device)
            ends.append(max(host, device))
        return ends[2] - ends[1]

    def host_seconds(self) -> float:
        """Until all calls of a step are enqueued."""
        return float(self.host.sum()) + self.tail

    def device_seconds(self) -> float:
        """For which the device is busy."""
        return float(self.device.sum())

    def _played(self, host: float, device: float) -> tuple[float, float]:
        begin = 0
        for end in [*(number + 1 for number in self.waits), len(self.host)]:
            if end > begin:
                # device after call n is the largest of: (host at call k) + (device work of calls k to n), over k
                enqueued = host + np.cumsum(self.host[begin:end])
                work = np.cumsum(self.device[begin:end])
                busy = work > 0
                total = float(work[-1])
                starts = enqueued - (work - self.device[begin:end])
                launched = self.device[begin:end] > 0
                late = float(starts[launched].max()) if launched.any() else device
                device = max(device, late) + total if busy.any() else device
                host = float(enqueued[-1])
            if end < len(self.host) or (self.waits and self.waits[-1] + 1 == end):
                host = max(host, device)
            begin = end
        return host + self.tail, device


def slowness(capture: Capture, reading: Reading) -> float:
    """How much longer the device was busy in this process than in the first, which read the calls' device seconds."""
    first = capture.readings[0].device_seconds
    return reading.device_seconds / first if first and reading.device_seconds else 1.0


def of_reading(capture: Capture, reading: Reading) -> Timeline:
    """A step as one process saw it.

    The host's time of a call is that in place, see `Row.host_seconds`.
    """
    host, device, waits = [], [], []
    slower = slowness(capture, reading)
    for place, number in enumerate(capture.sequence):
        row = capture.rows[number]
        called = row.host_seconds(reading.ops[number] / row.count)
        host.append(called + reading.gaps[number] / row.count)
        device.append(slower * (row.device_seconds or 0.0))
        if row.waits:
            waits.append(place)
    return Timeline(np.array(host), np.array(device), tuple(waits), reading.tail_seconds)


@dataclass(frozen=True)
class Merged:
    """The calls of both sides in one order, each with the group that its call and its framework belong to.

    Attributes:
        places: of each call where in its own step it is, from 0 to 1; calls of both sides are sorted by it.
        op_group, gap_group: number of the group. called, gap, device: seconds. side: 0 or 1.
    """

    op_group: Any
    gap_group: Any
    side: Any
    called: Any
    gap: Any
    device: Any
    waits: Any
    tails: tuple[float, float]

    def seconds(self, chosen: Any) -> float:
        """Of a step in which of each group the calls of the chosen side (0 or 1) are made.

        The last number of `chosen` is the side whose tail is taken.
        """
        calls = chosen[self.op_group] == self.side
        host = self.called * calls + self.gap * (chosen[self.gap_group] == self.side)
        kept = np.flatnonzero(self.waits & calls)
        tail = self.tails[int(chosen[-1])]
        return Timeline(host, self.device * calls, tuple(int(n) for n in kept), tail).seconds()


def shapley(merged: Merged, groups: int, orders: int = _ORDERS) -> Any:
    """Contribution of each group to the seconds of side 0 less those of side 1; they add up to it exactly.

    What a group saves depends on which others were already changed, when host and device overlap. So it is the mean
    over orders in which groups change sides (Shapley, 1953; by sampling: Castro et al., Comput. Oper. Res. 36, 2009),
    each order with its reverse.
    """
    generator = np.random.default_rng(_SEED)
    found = np.zeros(groups)
    drawn: list[Any] = []
    for _ in range(max(1, orders // 2)):
        order = generator.permutation(groups)
        drawn += [order, order[::-1]]
    for order in drawn:
        chosen = np.zeros(groups, dtype=int)
        before = merged.seconds(chosen)
        for group in order:
            chosen[group] = 1
            after = merged.seconds(chosen)
            found[group] += before - after
            before = after
    return found / len(drawn)
