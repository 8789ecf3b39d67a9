"""Block size and blocks: from a call and a device to a process."""

import gc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from statistics import median
from typing import Any, Final

from accel_micro import devices
from accel_micro.devices import full_speed
from accel_micro.devices.base import Call, Device, DeviceUnavailable, Queue, QueueTooShort
from accel_micro.measure.flags import Flag
from accel_micro.measure.gate import choose
from accel_micro.measure.plausibility import not_growing
from accel_micro.measure.process import CLOCKS, SAMPLES, Process
from accel_micro.measure.turns import Reader, take_turns, throughput_over_larger
from accel_micro.measure.warmup import BLOCK_SECONDS, warm_up

_TIMER_CALLS_PER_BLOCK: Final = 1000
_NOISY: Final = 0.10
_LOW_CLOCK: Final = 0.9
_AGREEMENT: Final = 0.15
_SHARES_OF_BLOCK: Final = 16
_PATIENCE: Final = 4.0
_GROWTH_TRIES: Final = 7
_REPEATS: Final = 3
_MOSTLY_WORK: Final = 2.0
_LONGEST_TRY_SECONDS: Final = 0.5
_SLOPE_PAYS_BELOW_SECONDS: Final = 10e-3
"""One call that lasts longer hides the final synchronisation (some 10 µs) by itself."""


class Implausible(RuntimeError):
    """The time cannot be that of the whole work; the message says why."""


def measure(
    call: Call,
    *,
    device: str = "cpu",
    clock: str = "throughput",
    samples: int = SAMPLES,
    budget_seconds: float = 3.0,
) -> Process:
    """Time a call in this process.

    The call is warmed up until its time is stable, then timed in blocks of at least 10 ms. Blocks that ran at the
    machine's full speed become the samples; if the budget ends first, slower ones are corrected and flagged.

    Args:
        call: takes no arguments; whatever it returns is dropped. Its work must be on `device`.
        device: `"cpu"`, `"cuda"`, `"cuda:1"`, `"mps"` …
        clock: `throughput` (seconds per call, queued back to back), `latency` (synchronise, one call, synchronise),
            `dispatch` (host seconds to enqueue one call) or `device` (device-busy seconds per call).
        samples: blocks to keep, 20 unless you only want a look.
        budget_seconds: most seconds spent on blocks; as many blocks as samples are always taken.

    Raises:
        UnknownDevice, DeviceUnavailable: no such device, or not here.
        ValueError: no such clock, or the device does not offer it.
        Implausible: time does not grow with the number of calls.
    """
    if samples < 1:
        raise ValueError(f"samples must be at least 1, not {samples}")
    with opened(device) as opened_device:
        return Sampler(opened_device, call, budget_seconds).read(clock, samples)


@contextmanager
def opened(name: str) -> Iterator[Device]:
    """The device of that name inside its session.

    Raises:
        UnknownDevice, DeviceUnavailable: no such device, or not here.
    """
    device = devices.get(name)
    reason = device.unavailable()
    if reason is not None:
        raise DeviceUnavailable(reason)
    with device.session():
        yield device


class Sampler:
    """Times one call on one device; several clocks share its warm-up."""

    def __init__(self, device: Device, call: Call, budget_seconds: float) -> None:
        self.device = device
        self.call = call
        self.budget_seconds = budget_seconds
        self.first_call_seconds: float | None = None
        self.warmup_seconds = 0.0
        self._warm = False
        self._seconds_per_call = 0.0
        self._flags: list[Flag] = []
        self._host_key = full_speed.host_key()
        self._host_reference = 0.0
        self.throughput_over_larger: float | None = None
        self._queue: Queue | None = None

    def first_call(self) -> Any:
        """Make the first call, timed with the initialisation it causes, and return its result."""
        device = self.device
        device.synchronize()
        start = device.now()
        result = self.call()
        device.mark_step(result)
        device.synchronize()
        self.first_call_seconds = device.now() - start
        return result

    def read(self, clock: str, samples: int = SAMPLES) -> Process:
        """One process of samples by one clock. Raises what `read_together` raises, and QueueTooShort."""
        processes, unreadable = self.read_together((clock,), samples)
        if clock in unreadable:
            raise QueueTooShort(unreadable[clock])
        return processes[clock]

    def read_together(
        self, clocks: Sequence[str], samples: int = SAMPLES
    ) -> tuple[dict[str, Process], dict[str, str]]:
        """A process of samples for each clock, and for clocks that this call does not allow the reason.

        The clocks take turns, block by block, so that all see the same machine and can be held against each other.

        Raises:
            ValueError: no such clock, or the device does not offer it.
            Implausible: time does not grow with the number of calls.
        """
        for clock in clocks:
            if clock not in CLOCKS:
                raise ValueError(f"unknown clock {clock!r}; known: {', '.join(CLOCKS)}")
            if clock not in self.device.clocks:
                offered = ", ".join(self.device.clocks)
                raise ValueError(f"{self.device.name} has no {clock} clock; it has {offered}")
        if not self._warm:
            self.warm_up()
        with collector_paused():
            readers, unreadable = self._readers(clocks)
            take_turns(readers, samples, self.budget_seconds, self.device.now)
        unreadable |= {reader.clock: reader.lost for reader in readers if reader.lost is not None}
        readers = [reader for reader in readers if reader.lost is None]
        full_speed.contribute(
            self._host_key, [r for reader in readers if not reader.by_device for r in reader.rates]
        )
        together = throughput_over_larger(readers)
        if together is not None and abs(together - 1) > _AGREEMENT:
            flag = Flag(
                "clocks disagree", f"throughput is {together:.2f} of the larger of dispatch and device"
            )
            next(reader for reader in readers if reader.clock == "throughput").flags += (flag,)
        self.throughput_over_larger = together
        processes: dict[str, Process] = {}
        for reader in readers:  # the device comes before what is held against it
            busy = processes.get("device")
            floor = busy.median_seconds if busy is not None and reader.clock != "dispatch" else 0.0
            processes[reader.clock] = self._process(reader, samples, floor)
        if "device" in processes:  # last: a profiler that was used once makes every launch a little slower
            processes["device"] = self._busy(processes["device"])
        return processes, unreadable

    def _busy(self, process: Process) -> Process:
        """Device time without the gaps between kernels."""
        assert self._queue is not None
        share = self._queue.busy_share()
        if share is None:
            return replace(process, flags=(*process.flags, Flag("gaps counted")))
        samples = tuple(share * sample for sample in process.samples)
        return replace(process, samples=samples, probe={**process.probe, "busy_share": share})

    # Warm-up

    def warm_up(self) -> None:
        """Make the first call, know the full speed of this machine, and call until times are stable."""
        device = self.device
        if self.first_call_seconds is None:
            self.first_call()
        self._host_reference = full_speed.establish(self._host_key, device.probe_host_speed, device.now)
        warm = warm_up(device, self._seconds_of, self.budget_seconds, self._host_reference)
        self._seconds_per_call, self.warmup_seconds = warm.seconds_per_call, warm.seconds
        self._flags += warm.flags
        self._warm = True

    def _seconds_of(self, calls: int) -> float:
        """Host seconds of that many calls between two synchronisations."""
        device, call = self.device, self.call
        marks = type(device).mark_step is not Device.mark_step
        device.synchronize()
        start = device.now()
        if marks:
            for _ in range(calls):
                device.mark_step(call())
        else:
            for _ in range(calls):
                call()
        device.synchronize()
        return device.now() - start

    # Readers

    def _readers(self, clocks: Sequence[str]) -> tuple[list[Reader], dict[str, str]]:
        """A reader for each clock; dispatch and device first, since they tell what throughput is made of."""
        readers: list[Reader] = []
        unreadable: dict[str, str] = {}
        tried: dict[str, float] = {}
        for clock in sorted(clocks, key=("dispatch", "device", "throughput", "latency").index):
            try:
                reader = self._reader(clock, by_device=self._device_bound(clock, tried))
                if self.device.asynchronous:
                    tried[clock] = reader.block()
            except QueueTooShort as reason:
                unreadable[clock] = str(reason)
            else:
                readers.append(reader)
        return readers, unreadable

    def _device_bound(self, clock: str, tried: Mapping[str, float]) -> bool:
        """Device work is gated by the clock of the device, host work by the speed of the host."""
        if clock == "device":
            return True
        if clock != "throughput" or not {"dispatch", "device"} <= tried.keys():
            return False
        return tried["device"] >= tried["dispatch"]

    def _reader(self, clock: str, by_device: bool) -> Reader:
        device = self.device
        calls, block, notes = self._block_of(clock)
        if by_device:
            # The clock of a device follows its load, so its reference is the fast percentile of this very process.
            return Reader(clock, calls, block, self._probe_device, None, True, notes)
        return Reader(
            clock,
            calls,
            block,
            device.probe_host_speed,
            self._host_reference,
            False,
            notes,
            waited=device.waited_seconds,
            now=device.now,
        )

    def _probe_device(self) -> float:
        return self.device.probe_device_speed() or self.device.probe_host_speed()

    def _block_of(self, clock: str) -> tuple[int, Callable[[], float], tuple[Flag, ...]]:
        """Calls per block, a function that times one block (seconds per call), and flags of the method."""
        if clock == "latency":
            calls = self._calls_for_block()
            return calls, lambda: self._latency(calls), ()
        if clock == "throughput":
            calls = self._calls_that_grow(self._calls_for_block())
            if not self.device.asynchronous or self._seconds_per_call >= _SLOPE_PAYS_BELOW_SECONDS:
                return calls, lambda: self._block(calls), ()
            return calls, lambda: self._slope(calls), ()
        if self._queue is None:
            self._queue = self.device.queue(self.call)
        queue = self._queue
        if clock == "dispatch":
            calls = queue.dispatch_calls()
            return calls, lambda: queue.dispatch(calls), ()
        calls = queue.device_calls(BLOCK_SECONDS)
        return calls, lambda: queue.device(calls), tuple(Flag(*flag) for flag in queue.device_flags)

    def _calls_for_block(self) -> int:
        device = self.device
        start = device.now()
        for _ in range(100):
            device.now()
        timer_seconds = (device.now() - start) / 101
        least = max(BLOCK_SECONDS, _TIMER_CALLS_PER_BLOCK * timer_seconds)
        return max(1, math.ceil(least / max(self._seconds_per_call, 1e-9)))

    def _latency(self, calls: int) -> float:
        device, call = self.device, self.call
        total = 0.0
        for _ in range(calls):
            device.synchronize()
            start = device.now()
            device.mark_step(call())
            device.synchronize()
            total += device.now() - start
        return total / calls

    def _block(self, calls: int) -> float:
        """Seconds per call of one block, cut short when it takes far longer than the warm-up let expect.

        While another program has the cores a small parallel call can take a thousand times as long; whole blocks of
        such calls would eat the budget in which the cores become free again.
        """
        share = max(1, calls // _SHARES_OF_BLOCK)
        limit = _PATIENCE * max(BLOCK_SECONDS, calls * self._seconds_per_call)
        seconds, done = 0.0, 0
        while done < calls and seconds < limit:
            count = min(share, calls - done)
            seconds += self._seconds_of(count)
            done += count
        return seconds / done

    def _slope(self, calls: int) -> float:
        """Seconds per call from n and 3n calls: what the final synchronisation costs drops out.

        So does what the first calls take longer after a pause (a worker thread that sleeps, a device that is idle), if
        the pause is the same for both. After the probe it is not, so some calls that do not count come first.
        """
        self._seconds_of(max(1, calls // 2))
        once, thrice = self._seconds_of(calls), self._seconds_of(3 * calls)
        slope = (thrice - once) / (2 * calls)
        # A pause in the shorter block can make the slope absurd; then the longer block alone is the better answer.
        return slope if slope > 0.5 * thrice / (3 * calls) else thrice / (3 * calls)

    def _calls_that_grow(self, calls: int) -> int:
        """Calls per block such that the calls, and not the final synchronisation, make its time.

        Raises:
            Implausible: three times as many calls never take much longer.
        """
        for _ in range(_GROWTH_TRIES):
            once = thrice = math.inf
            for _ in range(
                _REPEATS
            ):  # the least of a few: a pause in one block must not look like a cached answer
                once, thrice = min(once, self._seconds_of(calls)), min(thrice, self._seconds_of(3 * calls))
                problem = not_growing(once, thrice)
                if thrice >= _MOSTLY_WORK * once or (problem is None and not self.device.asynchronous):
                    return self._calls_of_slope(calls, once, thrice)
            if thrice > _LONGEST_TRY_SECONDS:
                break
            calls *= 4
        if problem is not None:
            raise Implausible(problem)
        return calls

    def _calls_of_slope(self, calls: int, once: float, thrice: float) -> int:
        if not self.device.asynchronous:
            return calls
        self._seconds_per_call = (thrice - once) / (2 * calls)
        return max(1, round(BLOCK_SECONDS / (2 * self._seconds_per_call)))  # n and 3n together make the block

    # From blocks to a process

    def _process(self, reader: Reader, samples: int, floor: float) -> Process:
        """The samples of a reader. A host at full speed would not make the device faster: none falls below `floor`."""
        blocks = reader.blocks()
        chosen = choose(blocks, samples, correct=not reader.by_device, floor=floor)
        flags = [*self._flags, *reader.flags]
        if 2 * chosen.corrected > samples:  # else the median is that of blocks at full speed
            slowest = min(block.speed for block in chosen.blocks)
            detail = f"{chosen.corrected} of {samples} samples, down to {100 * slowest:.0f} % speed"
            flags.append(Flag("speed-corrected", detail))
        if 4 * chosen.disturbed > samples:  # their times are so much longer that they pull the median up
            waiting = median(block.waiting for block in chosen.blocks)
            flags.append(Flag("waited for a core", f"threads waited {waiting:.2g} s per second"))
        flags += self._spread_flags(chosen.samples, reader.calls)
        if reader.by_device:
            flags += self._clock_flags(reader.reference)
        return Process(
            device=self.device.name,
            clock=reader.clock,
            samples=chosen.samples,
            raw_samples=tuple(block.seconds for block in chosen.blocks),
            speeds=tuple(block.speed / (1.0 + block.waiting) for block in chosen.blocks),
            calls_per_block=reader.calls,
            flags=tuple(flags),
            first_call_seconds=self.first_call_seconds,
            warmup_seconds=self.warmup_seconds,
            blocks_taken=len(blocks),
            sensitivity=chosen.sensitivity,
            probe={"reference": reader.reference, "median": median(reader.rates)},
        )

    def _spread_flags(self, samples: tuple[float, ...], calls: int) -> Iterator[Flag]:
        centre = median(samples)
        spread = 1.4826 * median(abs(x - centre) for x in samples) / centre
        if spread > _NOISY:
            yield Flag("noisy", f"samples scatter by {100 * spread:.0f} %")
        if centre * calls < 0.3 * BLOCK_SECONDS and calls >= 1000:
            yield Flag("short block", f"{calls} calls take {1e3 * centre * calls:.2g} ms")
        if centre * len(samples) > self.budget_seconds:
            yield Flag("over budget", f"{centre:.2g} s a call")

    def _clock_flags(self, reference: float) -> Iterator[Flag]:
        facts = self.device.describe()
        key = f"device clock of {facts.get('model', self.device.kind)}"
        full_speed.contribute(key, [reference] * 10)
        usual = full_speed.known(key)
        if usual and reference < _LOW_CLOCK * usual:
            yield Flag("low clock", f"{reference / 1e6:.0f} of {usual / 1e6:.0f} MHz")


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from running inside a block."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
