"""Ways to hold a stopwatch to a call: that of other harnesses, and what goes wrong with each."""

import timeit
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from accel_micro.devices.base import Call, Device

_MOST_EVENT_PAIRS: Final = 50


class DoesNotApply(Exception):
    """The way makes no sense on this device; the message says why."""


@dataclass(frozen=True)
class Way:
    """A way to time.

    Attributes:
        name: short and stable. done: what is done, in words.
        read: seconds per call that it reads, over that many calls. Raises DoesNotApply.
    """

    name: str
    done: str
    read: Callable[[Device, Call, int], float]


def ways(device: Device) -> Iterator[Way]:
    """Those that apply to the device; `read` of the others raises DoesNotApply."""
    yield Way("no sync", "the calls, and the clock is stopped: nothing is waited for", unsynchronised)
    if device.lazy:
        yield Way(
            "dropped", "each result is dropped, then its step is marked; waited for at the end", dropped
        )
        yield Way("marked", "each step is marked with its result, and the last is not waited for", marked)
    yield Way("torch.utils.benchmark", f"its Timer as it comes with torch {_version()}", by_timer)
    yield Way("sync each call", "each call is waited for, inside of what is timed", synchronised_each)
    yield Way("event pair", "one pair of events around each call, on an idle device", by_event_pairs)
    yield Way("asv time_", "as asv times a method with a setup: one call a sample, no wait", as_asv_does)


def unsynchronised(device: Device, call: Call, calls: int) -> float:
    """A loop between two looks at the clock. On a lazy device the calls are traced and their results dropped."""
    return _timed(device, lambda: _loop(call, calls)) / calls


def dropped(device: Device, call: Call, calls: int) -> float:
    """Nothing is alive when the step is marked, so nothing is computed."""

    def run() -> None:
        for _ in range(calls):
            call()
            device.mark_step(None)
        device.synchronize()

    return _timed(device, run) / calls


def marked(device: Device, call: Call, calls: int) -> float:
    """Each step is queued and goes on while the clock is stopped."""

    def run() -> None:
        for _ in range(calls):
            device.mark_step(call())

    return _timed(device, run) / calls


def synchronised_each(device: Device, call: Call, calls: int) -> float:
    """What a wait costs is counted to each call, and nothing is queued behind another."""

    def run() -> None:
        for _ in range(calls):
            device.mark_step(call())
            device.synchronize()

    return _timed(device, run) / calls


def by_timer(device: Device, call: Call, calls: int) -> float:
    """`torch.utils.benchmark.Timer`, with what it synchronises in this version of torch."""
    try:
        from torch.utils.benchmark import Timer
    except ImportError as error:  # it wants setuptools, for code that is written in C++
        raise DoesNotApply(f"it cannot be imported: {error}") from None
    timer = Timer("call()", globals={"call": call}, timer=shipped_clock())
    return float(timer.timeit(calls).mean)


def shipped_clock() -> Callable[[], float]:
    """The clock that the Timer takes by itself."""
    from torch.utils.benchmark.utils.timer import timer

    return timer


def by_event_pairs(device: Device, call: Call, calls: int) -> float:
    """The device stamps the first event at once, and then waits for the host to launch."""
    pairs = min(calls, _MOST_EVENT_PAIRS)
    try:
        return sum(device.event_pair(call) for _ in range(pairs)) / pairs
    except NotImplementedError as reason:
        raise DoesNotApply(str(reason)) from None


def as_asv_does(device: Device, call: Call, calls: int) -> float:
    """asv_runner 0.3 makes one call a sample, by `timeit`, of a benchmark that has a setup. The mean of the samples."""
    timer = timeit.Timer(call, timer=device.now)
    return sum(timer.timeit(1) for _ in range(calls)) / calls


def _timed(device: Device, run: Callable[[], Any]) -> float:
    start = device.now()
    run()
    return device.now() - start


def _loop(call: Call, calls: int) -> None:
    for _ in range(calls):
        call()


def _version() -> str:
    import torch

    return str(torch.__version__)
