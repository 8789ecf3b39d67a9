"""From a call and a device to a process: first call, warm-up, clocks in turns, samples with their flags."""

import gc
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from statistics import median
from typing import Any, Final

from accel_micro import devices
from accel_micro.devices import full_speed
from accel_micro.devices.base import Call, Device, DeviceUnavailable, Queue, QueueTooShort
from accel_micro.measure.blocks import SLOPE_PAYS_BELOW_SECONDS, Blocks
from accel_micro.measure.flags import Flag
from accel_micro.measure.gate import FULL_SPEED, Block, choose
from accel_micro.measure.process import CLOCKS, SAMPLES, Process
from accel_micro.measure.rotation import rotating
from accel_micro.measure.throttling import Seen
from accel_micro.measure.turns import Reader, take_turns, throughput_over_larger
from accel_micro.measure.warmup import BLOCK_SECONDS, warm_up

_NOISY: Final = 0.10
_LOW_CLOCK: Final = 0.9
_AGREEMENT: Final = 0.15
_BENT: Final = 0.05
_DEVICE_BOUND: Final = 0.8
"""Of a call's time the device's share from which on it is the device that sets it. Both are rough; see `_floor`."""


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
        Rejected: the backend's counters show that something else was timed.
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
        self._blocks = Blocks(device, call)
        self._warm = False
        self._flags: list[Flag] = []
        self._host_key = full_speed.host_key()
        self._host_reference = 0.0
        self.throughput_over_larger: float | None = None
        self.device_interval: tuple[float, float] | None = None
        self._queue: Queue | None = None
        self._device_at_most: float | None = None
        self._period = 1
        self._reads_its_clock = False
        self.seen = Seen()

    def first_call(self) -> Any:
        """Make the first call, timed with the initialisation it causes, and return its result."""
        result, self.first_call_seconds = self._blocks.first_call()
        return result

    def rotate(self, others: Sequence[Call]) -> None:
        """Let each call from now on be the next of several, this sampler's own the first. Before the warm-up."""
        if self._warm:
            raise RuntimeError("calls are made to rotate before the warm-up")
        self.call = self._blocks.call = rotating((self.call, *others))
        self._period = self._blocks.period = 1 + len(others)

    @property
    def hardware(self) -> dict[str, Any]:
        """Which card was measured, and what its driver said meanwhile, or why it was not asked."""
        device = self.device
        facts: dict[str, Any] = {"device": device.name, "card": device.card()} if device.card() else {}
        if device.unwatched is not None:
            return {**facts, "unwatched": device.unwatched}
        return facts if device.watch is None else {**facts, **device.watch.facts(), **self.seen.facts()}

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
            Rejected: the backend's counters show that something else was timed.
        """
        for clock in clocks:
            if clock not in CLOCKS:
                raise ValueError(f"unknown clock {clock!r}; known: {', '.join(CLOCKS)}")
            if clock not in self.device.clocks:
                offered = ", ".join(self.device.clocks)
                why = self.device.lacks.get(clock)
                reason = f", since {why}" if why else ""
                raise ValueError(f"{self.device.name} has no {clock} clock{reason}; it has {offered}")
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
        # Last: a profiler that was used once makes every launch a little slower.
        share = self._busy_share(readers)
        together = throughput_over_larger(readers, share or 1.0)
        if together is not None and abs(together - 1) > _AGREEMENT:
            flag = Flag(
                "clocks disagree", f"throughput is {together:.2f} of the larger of dispatch and device"
            )
            next(reader for reader in readers if reader.clock == "throughput").flags += (flag,)
        self.throughput_over_larger = together
        processes: dict[str, Process] = {}
        for reader in readers:  # dispatch and device come before what is held against them
            process = self._process(reader, samples, self._floor(reader, processes))
            processes[reader.clock] = self._busy(process, share) if reader.clock == "device" else process
        self.device_interval = self._interval(processes)
        return processes, unreadable

    def _floor(self, reader: Reader, read: Mapping[str, Process]) -> float:
        """Seconds per call that a faster host would not change: those of the device. Infinite where nothing tells them.

        A time that the device set was once corrected for a slow host: a product of 4096³ on an H200, of which nothing
        but throughput was read, came out at 1.4 times what the card can do.
        """
        device = self.device
        if reader.clock == "dispatch" or device.on_cpu or not device.asynchronous:
            return 0.0
        if "device" in read:  # with the gaps between kernels too: they are none of the host's
            return max(read["device"].median_seconds, read["device"].raw_median_seconds)
        if self._device_at_most is not None:
            return self._device_at_most
        if "dispatch" in read and device.serial:
            return max(0.0, median(reader.seconds()) - read["dispatch"].raw_median_seconds)
        return math.inf

    def _interval(self, read: Mapping[str, Process]) -> tuple[float, float] | None:
        """Bounds of the device's seconds per call where it has no clock and hardly works while calls are enqueued."""
        if not self.device.serial or not {"throughput", "dispatch"} <= read.keys():
            return None
        throughput = read["throughput"].median_seconds
        return max(0.0, throughput - read["dispatch"].median_seconds), throughput

    def _busy_share(self, readers: Sequence[Reader]) -> float | None:
        """What the device clock is multiplied by; None where it was not read, or nothing tells."""
        if not any(reader.clock == "device" for reader in readers):
            return None
        assert self._queue is not None
        return self._queue.busy_share()

    def _busy(self, process: Process, share: float | None) -> Process:
        """Device time without the gaps between kernels."""
        assert self._queue is not None
        if share is None:
            return replace(process, flags=(*process.flags, Flag("gaps counted")))
        samples = tuple(share * sample for sample in process.samples)
        found = (Flag(*flag) for flag in self._queue.device_flags)
        flags = (*process.flags, *(flag for flag in found if flag not in process.flags))
        return replace(process, samples=samples, flags=flags, probe={**process.probe, "busy_share": share})

    # Warm-up

    def warm_up(self) -> None:
        """Make the first call, know the full speed of this machine, and call until times are stable."""
        device, blocks = self.device, self._blocks
        if self.first_call_seconds is None:
            self.first_call()
        self._host_reference = full_speed.establish(self._host_key, device.probe_host_speed, device.now)
        warm = warm_up(
            device, blocks.seconds_of, self.budget_seconds, self._host_reference, blocks.most_calls
        )
        blocks.seconds_per_call, self.warmup_seconds = warm.seconds_per_call, warm.seconds
        self._flags += warm.flags
        self._warm = True

    # Readers

    def _readers(self, clocks: Sequence[str]) -> tuple[list[Reader], dict[str, str]]:
        """A reader for each clock; dispatch and device first, since they tell what throughput is made of."""
        readers: list[Reader] = []
        unreadable: dict[str, str] = {}
        tried: dict[str, float] = {}
        if "device" in self.device.clocks and "device" not in clocks:
            with suppress(QueueTooShort):
                self._device_at_most = self._queue_of_call().device_at_most()
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
        if clock != "throughput":
            return False
        if {"dispatch", "device"} <= tried.keys():
            return tried["device"] >= tried["dispatch"]
        return (self._device_at_most or 0.0) >= _DEVICE_BOUND * self._blocks.seconds_per_call

    def _reader(self, clock: str, by_device: bool) -> Reader:
        device = self.device
        calls, block, notes = self.block_of(clock)
        if by_device:
            # The clock of a device follows its load, so its reference is the fast percentile of this very process.
            watch = self.device.watch
            reads = None if watch is None else watch.read
            return Reader(
                clock,
                calls,
                block,
                self._probe_device,
                None,
                True,
                notes,
                now=device.now,
                watch=reads,
                seen=self.seen,
            )
        return Reader(
            clock,
            calls,
            block,
            device.probe_host_speed,
            self._host_reference,
            False,
            notes,
            waited=device.waited_seconds,
            own_waited=None if device.asynchronous else device.own_waited_seconds,
            now=device.now,
        )

    def _probe_device(self) -> float:
        hertz = self.device.probe_device_speed()
        self._reads_its_clock = hertz is not None
        return hertz or self.device.probe_host_speed()

    def block_of(self, clock: str) -> tuple[int, Callable[[], float], tuple[Flag, ...]]:
        """Calls per block, a function that times one block (seconds per call), and flags of the method. After warm-up.

        Raises Implausible, QueueTooShort and Rejected.
        """
        blocks = self._blocks
        if clock == "latency":
            calls = blocks.calls_for_block()
            return calls, lambda: blocks.latency(calls), ()
        if clock == "throughput":
            calls = blocks.calls_that_grow(blocks.calls_for_block())
            if not self.device.asynchronous or blocks.seconds_per_call >= SLOPE_PAYS_BELOW_SECONDS:
                return calls, lambda: blocks.whole(calls), ()
            return calls, lambda: blocks.slope(calls), ()
        queue = self._queue_of_call()
        if clock == "dispatch":
            calls = queue.dispatch_calls()
            return calls, lambda: queue.dispatch(calls), ()
        calls = queue.device_calls(BLOCK_SECONDS)
        return calls, lambda: queue.device(calls), tuple(Flag(*flag) for flag in queue.device_flags)

    def _queue_of_call(self) -> Queue:
        if self._queue is None:
            self._queue = self.device.queue(self.call, self._period)
        return self._queue

    # From blocks to a process

    def _process(self, reader: Reader, samples: int, floor: float) -> Process:
        """The samples of a reader. A host at full speed would not make the device faster: none falls below `floor`."""
        blocks = reader.blocks()
        known = floor < math.inf
        chosen = choose(blocks, samples, correct=known and not reader.by_device, floor=floor)
        flags = [*self._flags, *reader.flags]
        if not known and not reader.by_device:
            flags += self._uncorrected_flags(chosen.blocks)
        if 2 * chosen.corrected > samples:  # else the median is that of blocks at full speed
            slowest = min(block.speed for block in chosen.blocks)
            detail = f"{chosen.corrected} of {samples} samples, down to {100 * slowest:.0f} % speed"
            flags.append(Flag("speed-corrected", detail))
        if 4 * chosen.disturbed > samples:  # their times are so much longer that they pull the median up
            waiting = median(block.waiting for block in chosen.blocks)
            flags.append(Flag("waited for a core", f"threads waited {waiting:.2g} s per second"))
        flags += self._spread_flags(chosen.samples, reader.calls)
        if reader.clock == "throughput" and self._blocks.bends:
            bend = median(self._blocks.bends)
            if abs(bend) > _BENT:
                flags.append(Flag("not linear", f"2n calls are {100 * bend:+.0f} % off the line of n and 3n"))
        held = Counter(reason for block in chosen.blocks for reason in block.throttled)
        if reader.by_device and self._reads_its_clock:  # else a slow host would be called a slow device
            flags += self._throttled_flags(chosen.blocks, held)
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
            compile_seconds=self._blocks.first.compile_seconds,
            warmup_seconds=self.warmup_seconds,
            blocks_taken=len(blocks),
            sensitivity=chosen.sensitivity,
            probe={"reference": reader.reference, "median": median(reader.rates)},
            throttled=dict(held),
        )

    def _uncorrected_flags(self, blocks: Sequence[Block]) -> Iterator[Flag]:
        """Of times whose host was slow, and of which nobody knows how much is the host's."""
        slow = [block.speed for block in blocks if block.slowest < FULL_SPEED]
        if 2 * len(slow) > len(blocks):
            detail = f"{len(slow)} of {len(blocks)} samples, down to {100 * min(slow):.0f} % speed"
            yield Flag("slow host", detail)

    def _spread_flags(self, samples: tuple[float, ...], calls: int) -> Iterator[Flag]:
        centre = median(samples)
        spread = 1.4826 * median(abs(x - centre) for x in samples) / centre
        if spread > _NOISY:
            yield Flag("noisy", f"samples scatter by {100 * spread:.0f} %")
        if centre * calls < 0.3 * BLOCK_SECONDS and calls >= 1000:
            yield Flag("short block", f"{calls} calls take {1e3 * centre * calls:.2g} ms")
        if centre * len(samples) > self.budget_seconds:
            yield Flag("over budget", f"{centre:.2g} s a call")

    def _throttled_flags(self, blocks: Sequence[Block], held: Mapping[str, int]) -> Iterator[Flag]:
        """Of a device that was held down in more than a quarter of the samples: these are not corrected."""
        fallen = [block for block in blocks if block.throttled or block.slowest < FULL_SPEED]
        if 4 * len(fallen) <= len(blocks):
            return
        slowest = min(block.slowest for block in fallen)
        why = ", ".join(sorted(held, key=lambda reason: (-held[reason], reason))) or "no reason is known"
        yield Flag(
            "throttled",
            f"{why}; {len(fallen)} of {len(blocks)} samples, down to {100 * slowest:.0f} % of the clock",
        )

    def _clock_flags(self, reference: float) -> Iterator[Flag]:
        facts = self.device.describe()
        key = f"device clock of {facts.get('model', self.device.kind)} {self.device.card()}".rstrip()
        usual = full_speed.known(key)  # by earlier processes; this one must not speak for itself
        full_speed.contribute(key, [reference] * 10)
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
