"""Calls of a step made again, alone: with their inputs in the cache, without, and by the device's own clocks."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any, Final

import torch

from accel_micro.devices.base import Device, QueueTooShort
from accel_micro.explain.capturing.keeping import Arguments, mapped, spanned, written
from accel_micro.measure.gate import correction

_HOT_SECONDS: Final = 20e-3
_HOT_CALLS: Final = (5, 200)
_COLD_CALLS: Final = 5
_SKIPPED: Final = 2
_DEVICE_BLOCK_SECONDS: Final = 5e-3
_READINGS: Final = 5


@dataclass(frozen=True)
class Replayed:
    """Seconds of one call, see `capture.Row`; None where the device has no such clock."""

    hot_seconds: float | None = None
    cold_seconds: float | None = None
    dispatch_seconds: float | None = None
    device_seconds: float | None = None


class Replayer:
    """Makes calls again on one device.

    Args:
        reference: rate of the host's probe at full speed; slower moments are corrected for.
        cache_bytes: size of the last level of cache. More than twice that is written between cold calls.
    """

    def __init__(self, device: Device, reference: float, cache_bytes: int) -> None:
        self._device, self._reference = device, reference
        self._flush = torch.zeros(max(1 << 20, cache_bytes // 2), device=device.name)  # twice the cache

    def replay(self, func: Any, arguments: Arguments) -> Replayed:
        """All clocks of one call. Whatever it raises passes."""
        args, kwargs = arguments
        changed = [(each, spanned(each)) for value in written(func, args, kwargs) for each in _list(value)]

        def restore() -> None:
            for tensor, before in changed:
                tensor.copy_(before)

        def call() -> Any:
            return func(*args, **kwargs)

        with torch.no_grad():
            if self._device.asynchronous:
                return self._by_device(call)
            before = self._device.probe_host_speed()
            hot, cold = self._hot(call, restore), self._cold(call, restore)
            speed = self._speed(before, self._device.probe_host_speed())
            return Replayed(hot * speed, cold * speed)

    def _hot(self, call: Callable[[], Any], restore: Callable[[], None]) -> float:
        times: list[float] = []
        least, most = _HOT_CALLS
        while len(times) < most + _SKIPPED and (len(times) < least + _SKIPPED or sum(times) < _HOT_SECONDS):
            restore()
            start = perf_counter()
            call()
            times.append(perf_counter() - start)
        return median(times[_SKIPPED:])

    def _cold(self, call: Callable[[], Any], restore: Callable[[], None]) -> float:
        times: list[float] = []
        for _ in range(_COLD_CALLS):
            restore()
            self._flush.add_(1.0)
            start = perf_counter()
            call()
            times.append(perf_counter() - start)
        return median(times)

    def _by_device(self, call: Callable[[], Any]) -> Replayed:
        """Dispatch and device clocks. In-place ops are not restored: no kernel of a GPU is slower for some values."""
        if not {"dispatch", "device"} <= set(self._device.clocks):
            return Replayed()
        call()
        self._device.synchronize()
        queue = self._device.queue(call)
        try:
            calls = queue.dispatch_calls()
            before = self._device.probe_host_speed()
            dispatch = median(queue.dispatch(calls) for _ in range(_READINGS))
            dispatch *= self._speed(before, self._device.probe_host_speed())
        except QueueTooShort:  # it waits for the device, so what it takes alone is the host's
            return Replayed(dispatch_seconds=self._alone(call), device_seconds=0.0)
        try:
            calls = queue.device_calls(_DEVICE_BLOCK_SECONDS)
            busy = median(queue.device(calls) for _ in range(_READINGS)) * (queue.busy_share() or 1.0)
        except QueueTooShort:  # it launches no kernel
            busy = 0.0
        return Replayed(dispatch_seconds=dispatch, device_seconds=busy)

    def _alone(self, call: Callable[[], Any]) -> float:
        """Host seconds of a call that finds the device idle."""
        times = []
        before = self._device.probe_host_speed()
        for _ in range(_READINGS + _SKIPPED):
            self._device.synchronize()
            start = perf_counter()
            call()
            times.append(perf_counter() - start)
        self._device.synchronize()
        return median(times[_SKIPPED:]) * self._speed(before, self._device.probe_host_speed())

    def _speed(self, before: float, after: float) -> float:
        return correction(before / self._reference, after / self._reference)


def _list(value: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    mapped(value, found.append)
    return found
