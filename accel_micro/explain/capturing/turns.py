"""Blocks of plain steps and of watched ones, and what is made of them."""

import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Final

from accel_micro.devices.waiting import LITTLE_WAITING, MOST_TAKEN_OFF
from accel_micro.measure import gate
from accel_micro.measure.gate import PRIOR_SENSITIVITY

TURNS: Final = (5, 20)
"""Fewest and most blocks of each kind in a process."""


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


class Watched:
    """Steps under a mode that brackets each op.

    Attributes:
        costs: seconds that watching adds to the gap before each row, and to the tail, at full speed.
        ops, gaps: of each step the seconds of each row, and before it with what watching costs; the tail comes last.
        changed: a step called other ops than the structure has.
    """

    def __init__(self, structure: Any, watching: Any) -> None:
        self._funcs = structure.funcs
        self._numbers = structure.sequence
        self.rows = len(structure.calls)
        self.costs = [0.0] * (self.rows + 1)
        pending, before = 0.0, None
        for number in structure.sequence:
            call = structure.calls[number] if number >= 0 else None
            pending += watching.of(call, before)
            before = call
            if number >= 0:
                self.costs[number] += pending
                pending = 0.0
        self.costs[-1] = pending
        self.changed = False
        self.ops: list[list[float]] = []
        self.gaps: list[list[float]] = []
        self.block = Block(1.0, 1.0, 1.0, 0.0)

    def step(self, run: Callable[[], Any]) -> None:
        """Run a step and add what it took."""
        from accel_micro.explain.capturing.recording import Timing

        mode = Timing()
        with mode:
            start = perf_counter()
            run()
            end = perf_counter()
        if self.changed or mode.funcs != self._funcs:
            self.changed = True
            return
        ops, gaps = [0.0] * self.rows, [0.0] * (self.rows + 1)
        before = start
        stamps = iter(mode.stamps)
        for number, begun, ended in zip(self._numbers, stamps, stamps, strict=True):
            if number < 0:  # what marks a place belongs to the gap
                continue
            ops[number] += ended - begun
            gaps[number] += begun - before
            before = ended
        gaps[-1] = end - before
        self.ops.append(ops)
        self.gaps.append(gaps)

    @property
    def seconds(self) -> float:
        """Mean over the steps of what the ops took together."""
        if not self.ops:
            return 1e-9
        return max(1e-9, sum(map(sum, self.ops)) / len(self.ops))


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
    plain: Sequence[Block],
    watched: Sequence[Watched],
    step_seconds: float,
    host_seconds: float | None = None,
) -> dict[str, Any]:
    """Seconds of each row and of the gap before it.

    Medians over the steps, of the half of the turns that was disturbed least. The sum of the ops, and that of the gaps,
    is their share of the plain steps of the same turn, in the median over turns: what makes the machine slow for
    minutes slows both blocks of a turn. Each row is scaled to that sum.

    Where a device works on its own, ops and gaps together are what the host needs for a step, and that is known:
    `host_seconds`, until an idle queue has been given one. Then what watching costs is corrected such that they are.
    """
    import numpy as np

    disturbed = [
        (max(p.waiting, w.block.waiting), -min(p.speed, w.block.speed))
        for p, w in zip(plain, watched, strict=True)
    ]
    order = sorted(range(len(plain)), key=disturbed.__getitem__)
    kept = order[: max(min(TURNS[0], len(order)), math.ceil(len(order) / 2))]
    # From the speed of the watched steps to that of the plain ones beside them, and from those to `step_seconds`.
    scales = []
    for t in kept:
        plain_block, block = plain[t], watched[t].block
        speed = (block.speed / plain_block.speed) ** PRIOR_SENSITIVITY
        scales.append(speed * step_seconds / (plain_block.seconds * plain_block.share))
    found: dict[str, Any] = {}
    for name in ("ops", "gaps"):
        blocks, totals = [], []
        for scale, t in zip(scales, kept, strict=True):
            read, block = np.array(getattr(watched[t], name)), watched[t].block
            watching = np.zeros(read.shape[1])
            if name == "gaps":  # watching is Python's work: it takes as much longer as the probe does
                watching = np.array(watched[t].costs) / block.speed
            blocks.append(scale * (read - watching))
            totals.append(scale * (_typical(read.sum(axis=1), block) - watching.sum()))
        steps = np.vstack(blocks)
        middle = np.median(steps, axis=0)
        total = float(np.median(totals))
        parts = float(middle.sum())
        found[name] = middle * (total / parts) if parts > 0 and total > 0 else middle
        if name == "ops":
            scatter = 1.4826 * np.median(np.abs(steps - middle), axis=0)
            found["ops_errors"] = 1.253 * scatter / math.sqrt(len(steps))
    costs = np.array(watched[0].costs)
    if host_seconds is not None and costs.sum() > 0:
        excess = found["ops"].sum() + found["gaps"].sum() - host_seconds
        found["gaps"] = found["gaps"] - excess * costs / costs.sum()
    return {
        "ops": [float(x) for x in found["ops"]],
        "ops_errors": [float(x) for x in found["ops_errors"]],
        "gaps": [float(x) for x in found["gaps"][:-1]],
        "tail_seconds": float(found["gaps"][-1]),
    }


def _typical(steps: Any, block: Block) -> float:
    """Seconds of a step in a block, as if nobody had waited for a core."""
    import numpy as np

    if block.share > 1.0 - LITTLE_WAITING:
        return float(np.median(steps))
    return block.share * float(np.mean(steps))
