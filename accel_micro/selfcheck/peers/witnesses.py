"""Who knows how long work takes: on the CPU the work itself, which notes its length; on CUDA the profiler (CUPTI)."""

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Any, Final

from accel_micro.devices.base import Call, Device

PROFILED_SECONDS: Final = 5e-3
MOST_PROFILED: Final = 20
_COLD_CALLS: Final = 7
_FLUSHED_BYTES: Final = 256 * 1024**2
"""What `do_bench` writes before each call; more than twice the cache of any GPU today."""

_SPIN_CYCLES: Final = 1_000
_MOST_QUEUED: Final = 20
_MOST_LAUNCHES: Final = 500


class KnownSpin:
    """A call that does fixed work in Python and notes how long it took by the clock.

    What a harness adds, by calling it and by what it does around its calls, is outside what is noted.
    """

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.lengths: list[float] = []

    def __call__(self) -> int:
        start = perf_counter()
        total = 0
        for i in range(self.rounds):
            total += i & 7
        self.lengths.append(perf_counter() - start)
        return total

    def known(self) -> float:
        """Median length of the calls since the last question, seconds."""
        lengths, self.lengths = self.lengths, []
        return median(lengths)

    @classmethod
    def of(cls, seconds: float) -> "KnownSpin":
        """One that takes about so long here."""
        probe = cls(10_000)
        for _ in range(20):
            probe()
        return cls(max(1, round(10_000 * seconds / min(probe.lengths))))


class Cupti:
    """Kernel time of one call by CUPTI, in three states of the GPU. Inside the device's session."""

    def __init__(self, device: Device, call: Call) -> None:
        from accel_micro.devices.cuda_profiler import kernel_reading

        self._device = device
        self._call = call
        once, self.kernels = kernel_reading(call, 2)
        self._calls = max(2, min(MOST_PROFILED, round(PROFILED_SECONDS / max(once, 1e-6))))
        self._hertz = device.probe_device_speed() or 1e9

    def plain(self) -> float:
        """Calls as the host launches them, the cache warm."""
        from accel_micro.devices.cuda_profiler import kernel_seconds

        return kernel_seconds(self._call, self._calls)

    def queued(self, turns: int = 3) -> float:
        """Calls that were all enqueued before the first began: no kernel starts on an idle GPU."""
        import torch

        from accel_micro.devices.cuda_profiler import busy_nanoseconds, device_events, is_spin
        from accel_micro.devices.profiling import interval

        calls = max(1, min(_MOST_QUEUED, self._calls, round(_MOST_LAUNCHES / max(self.kernels, 1.0))))
        start = perf_counter()
        for _ in range(calls):
            self._call()
        enqueueing = perf_counter() - start
        self._device.synchronize()
        cuda: Any = torch.cuda
        cycles = int((4 * enqueueing + 2e-3) * self._hertz)  # launches are slower while a profiler looks on

        def repeat(count: int) -> None:
            for _ in range(turns):  # in one session of the profiler, which takes longer to start than they do
                cuda._sleep(cycles)
                for _ in range(count):
                    self._call()
                self._device.synchronize()

        groups = after(sorted(device_events(repeat, calls, spins=True), key=interval), is_spin)
        return median(busy_nanoseconds([interval(one) for one in group]) for group in groups) * 1e-9 / calls

    def cold(self) -> float:
        """Calls before each of which more is written than the cache holds."""
        import torch

        from accel_micro.devices.cuda_profiler import busy_nanoseconds, device_events, is_spin
        from accel_micro.devices.profiling import interval

        cuda: Any = torch.cuda
        buffer = torch.empty(_FLUSHED_BYTES // 4, dtype=torch.int32, device=self._device.name)

        def flushed(count: int) -> None:
            for _ in range(count):
                buffer.zero_()
                cuda._sleep(_SPIN_CYCLES)  # marks in the timeline where the flush ends and the call begins
                self._call()

        events = device_events(flushed, _COLD_CALLS, spins=True)
        events.sort(key=interval)
        groups = between(events, is_spin)
        return median(busy_nanoseconds([interval(event) for event in group]) * 1e-9 for group in groups)


def after(events: Sequence[Any], marks: Callable[[Any], bool]) -> list[list[Any]]:
    """Events of each turn, in order of time: from a mark to the next."""
    turns: list[list[Any]] = []
    for event in events:
        if marks(event):
            turns.append([])
        elif turns:
            turns[-1].append(event)
    return turns


def between(events: Sequence[Any], marks: Callable[[Any], bool]) -> list[list[Any]]:
    """Events of each call, in order of time: from a mark to the flush before the next mark, which is left out.

    The last call has no flush behind it.
    """
    turns = after(events, marks)
    return [turn[:-1] for turn in turns[:-1]] + turns[-1:]
