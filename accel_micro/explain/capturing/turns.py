"""Blocks of plain steps and of watched ones, and what is made of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from accel_micro.devices.waiting import LITTLE_WAITING, MOST_TAKEN_OFF
from accel_micro.explain.capturing.watching import Watched
from accel_micro.measure import gate
from accel_micro.measure.gate import PRIOR_SENSITIVITY

TURNS: Final = (5, 20)
"""Fewest and most blocks of each kind in a process."""

FEWEST_OF_LONG: Final = 3
"""Fewest of steps that take long, each of which is a block."""


class Block:
    """Steps timed together, with the machine's speed; seconds are those of a step.

    Attributes:
        alone: one thread does all the work, so what it waited for a core is known not to be the step's. Threads that
            wait for each other lose more than that, by an amount that nobody knows.
        hertz: clock of the device after it. held: why its driver held that down meanwhile.
    """

    hertz: float | None = None
    held: tuple[str, ...] = ()

    def __init__(
        self, seconds: float, before: float, after: float, waiting: float, alone: bool = False
    ) -> None:
        self.seconds, self.before, self.after, self.waiting = seconds, before, after, waiting
        self.alone = alone

    @property
    def share(self) -> float:
        """Of the seconds, that the step had a core."""
        return 1.0 - min(self.waiting, MOST_TAKEN_OFF) if self.alone else 1.0

    @property
    def speed(self) -> float:
        return 2.0 / (1.0 / self.before + 1.0 / self.after)


@dataclass(frozen=True)
class Turn:
    """A block of plain steps, and one of watched steps behind it with the machine's speed meanwhile."""

    plain: Block
    watched: Watched
    block: Block

    @property
    def disturbed(self) -> tuple[float, float]:
        """Rises with what came between."""
        return max(self.plain.waiting, self.block.waiting), -min(self.plain.speed, self.block.speed)

    @property
    def longer(self) -> float:
        """Seconds by which watching made a step longer, at the speed of the watched ones."""
        import numpy as np

        whole = np.array(self.watched.ops).sum(axis=1) + np.array(self.watched.gaps).sum(axis=1)
        slower = (self.plain.speed / self.block.speed) ** PRIOR_SENSITIVITY
        return float(_typical(whole, self.block) - slower * self.plain.seconds * self.plain.share)

    def scale(self, step_seconds: float) -> float:
        """From the speed of the watched steps to that of the plain ones beside them, and on to `step_seconds`."""
        speed = (self.block.speed / self.plain.speed) ** PRIOR_SENSITIVITY
        return float(speed * step_seconds / (self.plain.seconds * self.plain.share))


def chosen(blocks: Sequence[Block], floor: float = 0.0) -> tuple[list[Block], list[float]]:
    """The half of the blocks that was disturbed least, and their seconds corrected to full speed, not below `floor`."""
    gated = [
        gate.Block(block.seconds * block.share, block.before, block.after, block.waiting) for block in blocks
    ]
    count = max(min(TURNS[0], len(blocks)), math.ceil(len(blocks) / 2))
    found = gate.choose(gated, count, floor=floor)
    places = {id(block): number for number, block in enumerate(gated)}
    return [blocks[places[id(block)]] for block in found.blocks], list(found.samples)


def in_place(
    turns: Sequence[Turn],
    step_seconds: float,
    host_seconds: float | None = None,
    calls: Sequence[float] = (),
    event_seconds: float = 0.0,
) -> dict[str, Any]:
    """Seconds of each row and of the gap before it.

    Medians over the steps, of the half of the turns that was disturbed least. The sum of the ops, and that of the gaps,
    is their share of the plain steps of the same turn, in the median over turns: what makes the machine slow for
    minutes slows both blocks of a turn. Each row is scaled to that sum.

    What the profiler adds for an event at full speed, `event_seconds`, is taken off where the events lie; at most what
    makes a watched step longer than a plain one beside it, since events of a small network's step may cost more.

    Where a device works on its own, ops and gaps together are what the host needs for a step, and that is known:
    `host_seconds`, until an idle queue has been given one. What they are too long by is what a mode adds to `calls`,
    those of each row, and is taken off the gaps before them, as `without` does.
    """
    import numpy as np

    order = sorted(turns, key=lambda turn: turn.disturbed)
    kept = order[: max(min(TURNS[0], len(order)), math.ceil(len(order) / 2))]
    added = min(event_seconds, _most_added(kept))
    ops, steps = _rows(kept, "ops", step_seconds, added)
    gaps, _ = _rows(kept, "gaps", step_seconds, added)
    scatter = 1.4826 * np.median(np.abs(steps - np.median(steps, axis=0)), axis=0)
    if host_seconds is not None and sum(calls) > 0:
        gaps[:-1] = without(ops.sum() + gaps.sum() - host_seconds, gaps[:-1], calls)
    return {
        "ops": [float(x) for x in ops],
        "ops_errors": [float(x) for x in 1.253 * scatter / math.sqrt(len(steps))],
        "gaps": [float(x) for x in gaps[:-1]],
        "tail_seconds": float(gaps[-1]),
    }


def without(excess: float, gaps: Sequence[float], calls: Sequence[float]) -> Any:
    """Gaps of rows less an excess, of which each call has the same, but none more than the gap before it.

    What a mode adds differs from call to call; where calls follow each other at once, as in an optimizer's step, the
    mean would be more than there is. Of an excess of more than all gaps nothing is left; a negative one is added.
    """
    import numpy as np

    lengths, weights = np.asarray(gaps, dtype=float), np.asarray(calls, dtype=float)
    if excess <= 0:
        return lengths - excess * weights / weights.sum()
    order = np.argsort(lengths / weights)
    used_up = np.concatenate(
        ([0.0], np.cumsum(lengths[order])[:-1])
    )  # by the rows before, whose gaps are shorter
    left = np.cumsum(weights[order][::-1])[::-1]
    of_call = (excess - used_up) / left
    fits = np.flatnonzero(of_call <= lengths[order] / weights[order])
    return np.maximum(0.0, lengths - of_call[fits[0]] * weights) if len(fits) else np.zeros_like(lengths)


def _most_added(turns: Sequence[Turn]) -> float:
    """Seconds of an event at full speed, were they all that makes watched steps longer."""
    most = [
        turn.longer * turn.block.speed / (sum(events[0]) + sum(events[1]))
        for turn in turns
        if (events := turn.watched.events) is not None
    ]
    return max(0.0, median(most)) if most else 0.0


def _rows(turns: Sequence[Turn], name: str, step_seconds: float, added: float) -> tuple[Any, Any]:
    """Seconds of the ops, or of the gaps, of each row; and of each step, scaled."""
    import numpy as np

    blocks, totals = [], []
    for turn in turns:
        scale, seconds = turn.scale(step_seconds), np.array(getattr(turn.watched, name))
        if turn.watched.events is not None:
            events = np.array(turn.watched.events[0 if name == "ops" else 1])
            seconds = seconds - added / turn.block.speed * events
        blocks.append(scale * seconds)
        totals.append(scale * _typical(seconds.sum(axis=1), turn.block))
    steps = np.vstack(blocks)
    middle = np.median(steps, axis=0)
    total, parts = float(np.median(totals)), float(middle.sum())
    seconds = middle * (total / parts) if parts > 0 and total > 0 else middle
    # What the profiler adds is a mean over all events: of a view it may be more than the view took.
    return (np.maximum(0.0, seconds) if name == "ops" else seconds), steps


def _typical(steps: Any, block: Block) -> float:
    """Seconds of a step in a block, as if nobody had waited for a core."""
    import numpy as np

    if block.share > 1.0 - LITTLE_WAITING:
        return float(np.median(steps))
    return block.share * float(np.mean(steps))
