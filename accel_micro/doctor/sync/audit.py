"""Each way is read in turns with ours and with a witness of the truth, and judged by the ratio within a turn.

Turns lie within a fraction of a second, so a machine that changes its speed changes both sides of a ratio; the median
over turns is what counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from accel_micro.devices.base import Device
from accel_micro.doctor.diagnosis import CANNOT_MEASURE
from accel_micro.doctor.sync import ways
from accel_micro.doctor.sync.ways import DoesNotApply, Way
from accel_micro.doctor.sync.workload import Workload, workloads
from accel_micro.measure.blocks import Implausible, Rejected
from accel_micro.measure.plausibility import MARGIN
from accel_micro.measure.sampling import Sampler, collector_paused

AGREEMENT: Final = 0.15
"""A way is right when it is within 15 % of the witness: how far two clocks of one process may lie apart."""

OURS: Final = "ours"
FIRST_CALL: Final = "no warm-up"
RIGHT: Final = "right"
_OURS_DONE: Final = (
    "calls without a pause, then one wait; on a device that works on its own, by the slope over n and 3n"
)
TURNS: Final = 9
_TRIES: Final = 3
_BLOCK_SECONDS: Final = 10e-3
_FEWEST_CALLS: Final = 10
_MOST_CALLS: Final = 300
"""A launch queue holds about a thousand, and 3n are queued at once."""

_BUDGET_SECONDS: Final = 0.3


@dataclass(frozen=True)
class Row:
    """What a way read of a workload.

    Attributes:
        way: its name, `ours` for that of accel_micro. done: what was done, in words.
        seconds: per call, the median over the turns; None where the way refused to give a time.
        factor: over the witness of the same turn, the median over the turns.
        word: the verdict on it.
        right: it is.
    """

    way: str
    done: str
    seconds: float | None
    factor: float | None
    word: str
    right: bool


@dataclass(frozen=True)
class Audit:
    """A workload on a device, and what each way read of it.

    Attributes:
        device, model: where. workload, what: which work, by name and in words.
        synchronous: the device works while it is called, so that nothing needs to be waited for.
        calls: calls that a reading is over. known_by: who the witness is.
        true_seconds: per call, by the witness.
        least_seconds: per call by the peak of the machine; None: no such bound.
        rows: ours first. left_out: ways that make no sense here, each with the reason.
        problem: why nothing can be judged; empty when it can.
    """

    device: str
    model: str
    workload: str
    what: str
    synchronous: bool
    calls: int
    known_by: str
    true_seconds: float
    least_seconds: float | None
    rows: tuple[Row, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    problem: str = ""

    @property
    def ours(self) -> Row:
        """What accel_micro reads."""
        return next(row for row in self.rows if row.way == OURS)

    @property
    def right(self) -> bool:
        """The truth is known, and ours is it."""
        return not self.problem and self.ours.right

    @property
    def unlike(self) -> tuple[Row, ...]:
        """Rows that must read alike, since the device is synchronous, and do not."""
        return tuple(row for row in self.rows if self.synchronous and not row.right and row.way != FIRST_CALL)


def exit_code(audits: Sequence[Audit]) -> int:
    """0 where ours is right everywhere, else 3."""
    return 0 if audits and all(one.right for one in audits) else CANNOT_MEASURE


def audit(device: Device) -> list[Audit]:
    """Audit every workload on a device, inside its session.

    Host threads are set to one meanwhile, as the Timer of torch.utils.benchmark does by itself: the audit is about
    waiting, and threads that other programs keep from their cores would only blur it.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [audited(device, workload) for workload in workloads(device)]
    finally:
        torch.set_num_threads(threads)


def audited(device: Device, workload: Workload) -> Audit:
    """Audit one workload. When ours is not right it is read again, twice at most: the machine may have been busy."""
    sampler = Sampler(device, workload.call, _BUDGET_SECONDS)
    sampler.first_call()
    for _ in range(_TRIES):
        found = _read(device, workload, sampler)
        if found.right:
            break
    return found


@dataclass
class _Readings:
    """What one way read, turn by turn."""

    way: Way
    seconds: list[float] = field(default_factory=list)
    factors: list[float] = field(default_factory=list)
    refused: str = ""
    absent: str = ""

    def turn(self, device: Device, workload: Workload, calls: int, truth: float) -> None:
        if self.refused or self.absent:
            return
        device.synchronize()
        try:
            read = self.way.read(device, workload.call, calls)
        except DoesNotApply as reason:
            self.absent = str(reason)
        except (Implausible, Rejected) as reason:
            self.refused = str(reason)
        else:
            self.seconds.append(read)
            self.factors.append(read / truth)
        device.synchronize()


def _read(device: Device, workload: Workload, sampler: Sampler) -> Audit:
    block = _block_of_ours(sampler)
    workload.witness(1)  # compiles what fetches the number
    calls = max(_FEWEST_CALLS, min(_MOST_CALLS, round(_BLOCK_SECONDS / workload.witness(_FEWEST_CALLS))))
    ours = Way(OURS, _OURS_DONE, lambda device, call, calls: block())
    readings = [_Readings(way) for way in (ours, *ways.ways(device))]
    truths = []
    with collector_paused():
        for _ in range(TURNS):
            truths.append(workload.witness(calls))
            for reading in readings:
                reading.turn(device, workload, calls, truths[-1])
    truth = median(truths)
    least = workload.least(False)
    if least is not None and truth * MARGIN < least:
        least = workload.least(True)  # the peak may be that of a busy moment
    rows = [_row(reading, least) for reading in readings if not reading.absent]
    if workload.name == "small" and sampler.first_call_seconds is not None:
        rows.append(_first_call(sampler.first_call_seconds, truth))
    return Audit(
        device=device.name,
        model=str(device.describe().get("model", "")),
        workload=workload.name,
        what=workload.what,
        synchronous=not device.asynchronous,
        calls=calls,
        known_by=workload.known_by,
        true_seconds=truth,
        least_seconds=least,
        rows=tuple(rows),
        left_out=tuple((reading.way.name, reading.absent) for reading in readings if reading.absent),
        problem=_problem(truth, least),
    )


def _block_of_ours(sampler: Sampler) -> Callable[[], float]:
    """What times a block as every case is timed, or raises why it cannot."""
    try:
        sampler.warm_up()
        _, block, _ = sampler.block_of("throughput")
    except (Implausible, Rejected) as reason:
        refusal = reason

        def refuse() -> float:
            raise refusal

        return refuse
    return block


def _problem(truth: float, least: float | None) -> str:
    if least is None or truth * MARGIN >= least:
        return ""
    return (
        f"the witness itself is {least / truth:.3g} times as fast as the peak that was measured here, "
        "so nothing can be judged"
    )


def _row(readings: _Readings, least: float | None) -> Row:
    way = readings.way
    if not readings.seconds:
        return Row(way.name, way.done, None, None, f"no time: {readings.refused}", False)
    seconds, factor = median(readings.seconds), median(readings.factors)
    word = judged(seconds, factor, least)
    return Row(way.name, way.done, seconds, factor, word, word == RIGHT)


def _first_call(seconds: float, truth: float) -> Row:
    word = judged(seconds, seconds / truth, None)
    done = "the first call alone, with the initialisation that it causes"
    return Row(FIRST_CALL, done, seconds, seconds / truth, word, word == RIGHT)


def judged(seconds: float, factor: float, least: float | None) -> str:
    """`right`, or how wrong a time is that is `factor` times the truth.

    >>> judged(2e-3, 1.02, 1e-3), judged(2e-3, 1.9, 1e-3), judged(1e-3, 0.5, 0.9e-3), judged(1e-6, 0.001, 0.5e-3)
    ('right', 'too large, 1.9 times', 'too small, 2 times', 'impossible, 500 times the measured peak')
    """
    if least is not None and seconds * MARGIN < least:
        return f"impossible, {_short(least / seconds)} times the measured peak"
    if factor > 1 + AGREEMENT:
        return f"too large, {_short(factor)} times"
    return RIGHT if factor * (1 + AGREEMENT) >= 1 else f"too small, {_short(1 / factor)} times"


def _short(factor: float) -> str:
    """At most two digits after the point, and none of a large number."""
    return f"{factor:.3g}" if factor < 1000 else f"{factor:.0f}"
