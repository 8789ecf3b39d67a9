"""Clocks take turns: one block each, bracketed by probes of the speed that the clock depends on."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Final

from accel_micro.devices.base import QueueTooShort, WatchState
from accel_micro.measure.flags import Flag
from accel_micro.measure.gate import LITTLE_WAITING, Block
from accel_micro.measure.throttling import Seen, reasons

OVERTIME: Final = 3.0


@dataclass
class Reader:
    """One clock of one call, and the blocks it has read.

    Attributes:
        clock: its name.
        calls: calls per block.
        block: times one block and returns seconds per call.
        probe: reads the speed that this clock depends on.
        known_reference: rate of the probe at full speed; None takes the fast percentile of the reader's own rates.
        by_device: the probe reads the device, not the host.
        flags: what the way of reading deserves.
        waited: seconds that threads of this process waited for a core so far. own_waited: of these, those of the
            thread that makes the calls; None where the calls' work goes on without it. now: the host clock.
        rates: all the probe's rates, two a block.
        watch: asks the device's driver, before and after each turn; None where the clock does not depend on it.
        seen: what it said.
        lost: why no further block can be read, or None.
    """

    clock: str
    calls: int
    block: Callable[[], float]
    probe: Callable[[], float]
    known_reference: float | None
    by_device: bool
    flags: tuple[Flag, ...] = ()
    waited: Callable[[], float] = float
    own_waited: Callable[[], float] | None = None
    now: Callable[[], float] = perf_counter
    watch: Callable[[], WatchState] | None = None
    seen: Seen = field(default_factory=Seen)
    rates: list[float] = field(default_factory=list)
    lost: str | None = None
    _timed: list[tuple[float, float, float, float, tuple[str, ...], float]] = field(default_factory=list)

    def turn(self) -> None:
        """Ask the driver, probe, time one block, probe, ask the driver.

        How long threads waited for a core within the block is noted. A block that cannot be read costs the clock, and
        not the other clocks of the case.
        """
        if self.lost is not None:
            return
        state = self.watch() if self.watch is not None else None
        before = self.probe()
        waited, own, start = self.waited(), self._own_waited(), self.now()
        try:
            seconds = self.block()
        except QueueTooShort as reason:
            self.lost = str(reason)
            return
        lasted = max(self.now() - start, 1e-9)
        own_waiting = max(0.0, self._own_waited() - own) / lasted
        waiting = max(0.0, self.waited() - waited) / lasted
        after = self.probe()
        throttled = self._held_down(state, lasted)
        alone = waiting - own_waiting <= LITTLE_WAITING
        self._timed.append(
            (seconds, before, after, waiting, throttled, min(waiting, own_waiting) if alone else 0.0)
        )
        self.rates += (before, after)

    def _own_waited(self) -> float:
        return 0.0 if self.own_waited is None else self.own_waited()

    def _held_down(self, before: WatchState | None, seconds: float) -> tuple[str, ...]:
        """Why the device's clock was held down since a state, during a block of that many seconds."""
        if before is None or self.watch is None:
            return ()
        after = self.watch()
        why = reasons(before, after, seconds)
        self.seen.note(before, after, why)
        return why

    def seconds(self) -> list[float]:
        """Seconds per call of each block, as they were read."""
        return [timed[0] for timed in self._timed]

    @property
    def reference(self) -> float:
        """Rate of the probe at full speed."""
        if self.known_reference is not None:
            return self.known_reference
        ordered = sorted(self.rates)
        return ordered[math.ceil(0.9 * (len(ordered) - 1))]

    def blocks(self) -> list[Block]:
        """The blocks read so far, their speeds relative to full speed."""
        reference = self.reference
        return [
            Block(seconds, before / reference, after / reference, waiting, throttled, own_waiting)
            for seconds, before, after, waiting, throttled, own_waiting in self._timed
        ]

    def is_disturbed(self, samples: int) -> bool:
        """Some samples would be blocks in which threads waited for a core."""
        return sum(not block.is_disturbed for block in self.blocks()) < samples

    def is_done(self, samples: int) -> bool:
        """Enough blocks ran at full speed, or more would not help, or none can be read."""
        if self.lost is not None:
            return True
        if len(self._timed) < samples:
            return False
        # A call that draws more power than the card may is held down in every block, however many are taken.
        always_held = all(throttled for *_, throttled, _ in self._timed)
        return always_held or sum(b.at_full_speed for b in self.blocks()) >= samples


def take_turns(
    readers: Sequence[Reader], samples: int, budget_seconds: float, now: Callable[[], float]
) -> None:
    """Read block after block, clock by clock, until each has enough at full speed or the budget ends.

    However short the budget, every reader reads as many blocks as samples are wanted; and one that found the cores
    taken too often goes on for up to three times the budget, since its values are worth little.
    """
    start = now()
    for _ in range(samples):
        for reader in readers:
            reader.turn()
    waiting = [reader for reader in readers if not reader.is_done(samples)]
    while waiting and now() < start + OVERTIME * budget_seconds:
        for reader in waiting:
            reader.turn()
        waiting = [reader for reader in waiting if not reader.is_done(samples)]
        if now() >= start + budget_seconds:
            waiting = [reader for reader in waiting if reader.is_disturbed(samples)]


def throughput_over_larger(readers: Sequence[Reader], busy_share: float = 1.0) -> float | None:
    """Throughput over the larger of dispatch and device, the median over turns; None without these three clocks.

    The device is taken as its blocks read it, and times `busy_share`, as it is published: the gaps between kernels are
    in throughput, and what a graph does in another way than the calls is not. The ratio nearer to 1 counts.

    The three blocks of one turn lie within a fraction of a second, so they saw the same machine. A value far from 1
    means that the call waits inside, works on another stream, or that one of the clocks is wrong.
    """
    by_clock = {reader.clock: reader.seconds() for reader in readers}
    if not {"throughput", "dispatch", "device"} <= by_clock.keys():
        return None
    turns = list(zip(by_clock["throughput"], by_clock["dispatch"], by_clock["device"], strict=False))
    ratios = (
        median(throughput / max(dispatch, share * device) for throughput, dispatch, device in turns)
        for share in (1.0, busy_share)
    )
    return min(ratios, key=lambda ratio: abs(math.log(ratio)))
