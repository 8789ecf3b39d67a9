"""Stopwatches of other harnesses, as the reports describe them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from time import sleep
from typing import Final

from accel_micro.devices.base import Call, Device
from accel_micro.measure.sampling import Sampler, collector_paused

Witness = Callable[[int], float]
"""True seconds per call, over about that many calls."""

WARM_SECONDS: Final = 25e-3
MEASURED_SECONDS: Final = 100e-3
"""Of triton's do_bench, as it comes."""


def synchronised(device: Device, call: Call, calls: int) -> float:
    """Seconds per call: so many calls, then one synchronisation."""
    device.synchronize()
    start = device.now()
    for _ in range(calls):
        device.mark_step(call())
    device.synchronize()
    return (device.now() - start) / calls


def fixed_warm_up(device: Device, call: Call) -> float:
    """Seconds per call as do_bench takes them, by the host clock: estimate, 25 ms of warm-up, mean over 100 ms."""
    synchronised(device, call, 1)
    estimate = synchronised(device, call, 5)
    for _ in range(max(1, int(WARM_SECONDS / estimate))):
        call()
    device.synchronize()
    return mean(synchronised(device, call, 1) for _ in range(max(1, int(MEASURED_SECONDS / estimate))))


@dataclass(frozen=True)
class Turns:
    """What several ways read, turn by turn: a machine that changes its speed changes both sides of a ratio."""

    seconds: Mapping[str, Sequence[float]]

    @classmethod
    def read(cls, device: Device, ways: Mapping[str, Callable[[], float]], turns: int) -> "Turns":
        """Each way once a turn, on a device that has nothing else to do."""
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        with collector_paused():
            for _ in range(turns):
                for name, way in ways.items():
                    device.synchronize()
                    seconds[name].append(way())
                    device.synchronize()
        return cls(seconds)

    def median(self, name: str) -> float:
        """Seconds per call by that way."""
        return median(self.seconds[name])

    def ratio(self, name: str, to: str) -> float:
        """Of two ways, the median over the turns."""
        return median(one / other for one, other in zip(self.seconds[name], self.seconds[to], strict=True))


def block_of_ours(sampler: Sampler) -> Callable[[], float]:
    """What times a block of a case by throughput, warmed up: seconds per call. Raises as `Sampler.block_of`."""
    sampler.warm_up()
    return sampler.block_of("throughput")[1]


def after_pauses(device: Device, call: Call, pause_seconds: float, calls: int) -> float:
    """Median seconds of single calls, each waited for, with a pause before each."""
    times = []
    for _ in range(calls):
        device.synchronize()
        sleep(pause_seconds)
        times.append(synchronised(device, call, 1))
    return median(times)
