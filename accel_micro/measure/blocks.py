"""The timing of blocks: n calls between two synchronisations, by themselves or as part of a slope."""

import math
from collections.abc import Sequence
from typing import Any, Final

from accel_micro.devices.base import Call, Counted, Device, repeat
from accel_micro.measure.plausibility import not_growing, not_the_op_alone
from accel_micro.measure.warmup import BLOCK_SECONDS

_TIMER_CALLS_PER_BLOCK: Final = 1000
_SHARES_OF_BLOCK: Final = 16
_PATIENCE: Final = 4.0
_GROWTH_TRIES: Final = 7
_REPEATS: Final = 3
_MOSTLY_WORK: Final = 2.0
_LONGEST_TRY_SECONDS: Final = 0.5
_COUNTED_TRIES: Final = 3
SLOPE_PAYS_BELOW_SECONDS: Final = 10e-3
"""One call that lasts longer hides the final synchronisation (some 10 µs) by itself."""


class Implausible(RuntimeError):
    """The time cannot be that of the whole work; the message says why."""


class Rejected(RuntimeError):
    """The backend's counters show that what was timed is not n runs of the op; the message says what else it is."""


class Blocks:
    """Times blocks of one call on one device.

    Attributes:
        seconds_per_call: what a call is expected to take, as the warm-up or a slope found it.
        most_calls: calls that a block may have, None when the device sets no limit.
        period: calls after which the same inputs come again; blocks that are long enough hold whole periods.
        bends: how far the inner points of slopes lay off the chord, where there are any; see `bend`.
        first: what the backend counted during the first call.
    """

    def __init__(self, device: Device, call: Call) -> None:
        self.device = device
        self.call = call
        self.seconds_per_call = 0.0
        self.most_calls: int | None = None
        self.period = 1
        self.first = Counted()
        self.bends: list[float] = []

    def first_call(self) -> tuple[Any, float]:
        """Make the first call; its result, and host seconds with the initialisation that it causes."""
        device = self.device
        device.synchronize()  # what making the inputs has queued is not counted
        with device.block() as self.first:
            start = device.now()
            result = self.call()
            device.mark_step(result)
            device.synchronize()
            seconds = device.now() - start
        self.most_calls = device.most_calls(result)
        return result, seconds

    def seconds_of(self, calls: int) -> float:
        """Host seconds of that many calls between two synchronisations.

        A block in which something was compiled, or which was not executed as often as called, is read again.

        Raises:
            Rejected: that was so three times.
        """
        device, call = self.device, self.call
        problem = None
        for _ in range(_COUNTED_TRIES):
            with device.block() as counted:
                device.synchronize()
                start = device.now()
                repeat(device, call, calls)
                device.synchronize()
                seconds = device.now() - start
            problem = not_the_op_alone(counted, calls, device.name)
            if problem is None:
                return seconds
        raise Rejected(problem)

    def latency(self, calls: int) -> float:
        """Seconds per call when each call is waited for, over `calls` calls. Raises Rejected."""
        device, call = self.device, self.call
        problem = None
        for _ in range(_COUNTED_TRIES):
            total = 0.0
            with device.block() as counted:
                for _ in range(calls):
                    device.synchronize()
                    start = device.now()
                    device.mark_step(call())
                    device.synchronize()
                    total += device.now() - start
            problem = not_the_op_alone(counted, calls, device.name)
            if problem is None:
                return total / calls
        raise Rejected(problem)

    def whole(self, calls: int) -> float:
        """Seconds per call of one block, cut short when it takes far longer than the warm-up let expect.

        While another program has the cores a small parallel call can take a thousand times as long; whole blocks of
        such calls would eat the budget in which the cores become free again.
        """
        share = max(1, calls // _SHARES_OF_BLOCK)
        limit = _PATIENCE * max(BLOCK_SECONDS, calls * self.seconds_per_call)
        seconds, done = 0.0, 0
        while done < calls and seconds < limit:
            count = min(share, calls - done)
            seconds += self.seconds_of(count)
            done += count
        return seconds / done

    def slope(self, calls: int) -> float:
        """Seconds per call from n and 3n calls: what the final synchronisation costs drops out.

        So does what the first calls take longer after a pause (a worker thread that sleeps, a device that is idle), if
        the pause is the same for all. After the probe it is not, so some calls that do not count come first.
        Where the device asks for more than these two points, how far they lie off a straight line goes to `bends`.
        """
        self.seconds_of(max(1, calls // 2))
        points = self.device.slope_points
        times = [self.seconds_of(point * calls) for point in points]
        slope = line(points, times) / calls
        if len(points) > 2:
            self.bends.append(bend(points, times))
        # A pause in a shorter block can make the slope absurd; then the longest block alone is the better answer.
        longest = times[-1] / (points[-1] * calls)
        return slope if slope > 0.5 * longest else longest

    def calls_for_block(self) -> int:
        """Calls that a block needs to be long enough for this timer."""
        device = self.device
        start = device.now()
        for _ in range(100):
            device.now()
        timer_seconds = (device.now() - start) / 101
        least = max(BLOCK_SECONDS, _TIMER_CALLS_PER_BLOCK * timer_seconds)
        return self._allowed(math.ceil(least / max(self.seconds_per_call, 1e-9)))

    def calls_that_grow(self, calls: int) -> int:
        """Calls per block such that the calls, and not the final synchronisation, make its time.

        Raises:
            Implausible: three times as many calls never take much longer.
        """
        calls = self._allowed(calls, times=3)
        for _ in range(_GROWTH_TRIES):
            once = thrice = math.inf
            for _ in range(
                _REPEATS
            ):  # the least of a few: a pause in one block must not look like a cached answer
                once, thrice = min(once, self.seconds_of(calls)), min(thrice, self.seconds_of(3 * calls))
                problem = not_growing(once, thrice)
                if thrice >= _MOSTLY_WORK * once or (problem is None and not self.device.asynchronous):
                    return self._calls_of_slope(calls, once, thrice)
            if thrice > _LONGEST_TRY_SECONDS or calls == self._allowed(4 * calls, times=3):
                break
            calls = self._allowed(4 * calls, times=3)
        if problem is not None:
            raise Implausible(problem)
        return calls

    def _calls_of_slope(self, calls: int, once: float, thrice: float) -> int:
        if not self.device.asynchronous:
            return calls
        self.seconds_per_call = (thrice - once) / (2 * calls)
        # n and 3n together make the block
        return self._allowed(round(BLOCK_SECONDS / (2 * self.seconds_per_call)), times=3)

    def _allowed(self, calls: int, times: int = 1) -> int:
        """That many calls, or as many as the device allows a block that has `times` as many; at least one.

        A block that holds more than a period holds whole ones, so that all blocks have the same calls.
        """
        if calls > self.period:
            calls = self.period * math.ceil(calls / self.period)
        return max(1, calls if self.most_calls is None else min(calls, self.most_calls // times))


def line(points: Sequence[float], times: Sequence[float]) -> float:
    """Slope of the least-squares line through times at points."""
    x, y = sum(points) / len(points), sum(times) / len(times)
    across = sum((a - x) ** 2 for a in points)
    return sum((a - x) * (b - y) for a, b in zip(points, times, strict=True)) / across


def bend(points: Sequence[float], times: Sequence[float]) -> float:
    """How far the inner points lie above the chord from the first to the last, on average, as a share of its rise.

    Times at n, 2n and 3n that grow with the square read -1/8. Signed, so noise cancels in the median over blocks.
    Infinite where times do not rise at all.
    """
    rise = times[-1] - times[0]
    if rise <= 0:
        return math.inf
    along = [(point - points[0]) / (points[-1] - points[0]) for point in points[1:-1]]
    off = [time - times[0] - share * rise for share, time in zip(along, times[1:-1], strict=True)]
    return sum(off) / len(off) / rise
