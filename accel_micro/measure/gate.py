"""The speed gate: blocks that ran at the machine's full speed are preferred, others corrected and flagged.

On shared and throttling machines the speed itself changes, by a factor of two within seconds. Each block is bracketed
by two probes of known work. The samples of a process are the blocks with the highest probe speed, not the fastest
blocks: choosing by the probe does not look at what is measured, so it cannot hide a regression.

Before speed comes having a core at all. Where the thread that makes the calls is the only one that waited for one,
because another program had it, that time is taken off the block. A block in which other threads waited too is taken
only when there is no other. Measured on two cores with other programs running: a small parallel product took 9 to 35 µs
in blocks without waiting and 130 to 15,000 µs in blocks with it.

A block below full speed is corrected by its share of full speed `** sensitivity`. Ops do not slow in step with the
probe (measured slopes of log time on log probe speed: 0.3 to 0.7, and a correction by the whole ratio overshoots), so
the sensitivity is fitted over all blocks of the process, drawn towards a prior where the speed hardly varied.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from accel_micro.devices import waiting

FULL_SPEED: Final = 0.88
"""A block whose slower probe is at least this share of the reference ran at full speed: boost clocks and the probe's
own jitter spread by some 7 % on a machine with nothing else to do, and a block has two probes."""

PRIOR_SENSITIVITY: Final = 0.6
_PRIOR_WEIGHT: Final = 0.5
"""Of the sum of squared log speeds: that of 60 blocks whose speed varies by 9 %. Below that the probe's own noise
flattens the fit; a machine that changes its mode gives ten times as much."""

TYPICAL_FULL_SPEED: Final = 0.94
"""Speed of a typical block at full speed, to which slower ones are corrected. The reference is a fast percentile."""


LITTLE_WAITING: Final = waiting.LITTLE_WAITING
MOST_TAKEN_OFF: Final = waiting.MOST_TAKEN_OFF


@dataclass(frozen=True)
class Block:
    """Calls timed together.

    Attributes:
        seconds: per call.
        before, after: the probe's rate relative to full speed.
        waiting: seconds that threads of this process waited for a core, per second of the block.
        throttled: why the device's driver held its clock down meanwhile, see `throttling`.
        own_waiting: seconds of `waiting` for which the thread that makes the calls had no core, where no other thread
            waited: then that time is known not to be the op's, and is taken off.
    """

    seconds: float
    before: float
    after: float
    waiting: float = 0.0
    throttled: tuple[str, ...] = ()
    own_waiting: float = 0.0

    @property
    def own_seconds(self) -> float:
        """Seconds per call for which the thread that makes the calls had a core."""
        return self.seconds * (1.0 - min(self.own_waiting, MOST_TAKEN_OFF))

    @property
    def speed(self) -> float:
        """Mean speed of the core during the block: the harmonic mean of the two probes, since times add up."""
        return 2.0 / (1.0 / self.before + 1.0 / self.after)

    @property
    def slowest(self) -> float:
        """The slower of the two probes."""
        return min(self.before, self.after)

    @property
    def waiting_left(self) -> float:
        """Of `waiting` what is not taken off."""
        return self.waiting - min(self.own_waiting, MOST_TAKEN_OFF)

    @property
    def is_disturbed(self) -> bool:
        """Threads waited for a core that another program had, and by how much that made the block longer is unknown."""
        return self.waiting_left > LITTLE_WAITING

    @property
    def at_full_speed(self) -> bool:
        """Neither probe saw the machine slow, no thread waited long for a core, and the driver held no clock down."""
        return self.slowest >= FULL_SPEED and not self.is_disturbed and not self.throttled


@dataclass(frozen=True)
class Chosen:
    """The blocks chosen as samples, in order of time, and their values corrected to full speed.

    Attributes:
        corrected: samples below full speed. disturbed: samples in which threads waited for a core.
    """

    blocks: tuple[Block, ...]
    samples: tuple[float, ...]
    sensitivity: float
    corrected: int
    disturbed: int


def fit_sensitivity(blocks: Sequence[Block]) -> float:
    """Exponent in [0, 1] with which seconds fall as speed rises, by least squares on logs with a prior.

    Blocks in which threads waited are left out where others are there: waiting at a barrier has no exponent.
    """
    blocks = [block for block in blocks if not block.is_disturbed] or blocks
    speeds = [math.log(block.speed) for block in blocks]
    times = [math.log(block.own_seconds) for block in blocks]
    mean_speed, mean_time = math.fsum(speeds) / len(speeds), math.fsum(times) / len(times)
    slow = math.fsum((mean_speed - x) * (y - mean_time) for x, y in zip(speeds, times, strict=True))
    spread = math.fsum((x - mean_speed) ** 2 for x in speeds)
    fitted = (slow + _PRIOR_WEIGHT * PRIOR_SENSITIVITY) / (spread + _PRIOR_WEIGHT)
    return min(1.0, max(0.0, fitted))


def choose(blocks: Sequence[Block], samples: int, *, correct: bool = True, floor: float = 0.0) -> Chosen:
    """The `samples` blocks that were disturbed least and ran at the highest speed, slow ones corrected if asked.

    Args:
        floor: seconds per call below which no correction goes: what a faster host would not change.

    Raises:
        ValueError: there are fewer blocks than samples.
    """
    if len(blocks) < samples:
        raise ValueError(f"{len(blocks)} blocks cannot give {samples} samples")
    sensitivity = fit_sensitivity(blocks)
    order = sorted(range(len(blocks)), key=lambda i: (*_preference(blocks[i]), i))
    chosen = tuple(blocks[i] for i in sorted(order[:samples]))
    corrected = [correct and block.slowest < FULL_SPEED for block in chosen]
    values = tuple(
        _value(block, floor, _share(block) ** sensitivity if slow else 1.0)
        for block, slow in zip(chosen, corrected, strict=True)
    )
    return Chosen(chosen, values, sensitivity, sum(corrected), sum(block.is_disturbed for block in chosen))


def correction(before: float, after: float) -> float:
    """Factor on a time for the speed of the host meanwhile, by the rates of probes ÷ that at full speed; at most 1.

    For times too few to fit a sensitivity.
    """
    speed = 2.0 / (1.0 / before + 1.0 / after)
    return 1.0 if speed >= FULL_SPEED else min(1.0, speed / TYPICAL_FULL_SPEED) ** PRIOR_SENSITIVITY


def _share(block: Block) -> float:
    return min(1.0, block.speed / TYPICAL_FULL_SPEED)


def _value(block: Block, floor: float, factor: float) -> float:
    """Seconds per call with a core, times a factor: no less than the floor, and no more than was read."""
    return min(block.seconds, max(floor, block.own_seconds * factor))


def _preference(block: Block) -> tuple[float, bool, float]:
    """Smaller is better. Among blocks at full speed all are equal: a finer order would follow the probe's noise."""
    return max(block.waiting_left, LITTLE_WAITING), bool(block.throttled), -min(block.slowest, FULL_SPEED)
