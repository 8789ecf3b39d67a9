"""What published epochs tell: speedups, lines, bounds of the loader and of the optimizer. Pure; nothing is measured."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal

from accel_micro.explain.published.data import Losses, Model, Published, Report
from accel_micro.explain.published.fitting import Epoch, Line, fit

LARGE_SHARE: Final = 1 / 3
"""Of an epoch: b·steps above it are worth a name."""

MEMORY_SHARE: Final = 0.1
"""Of the memory's speed: where the optimizer at least needs it to end within b, it may be what takes b."""

ALIKE: Final = 0.1
"""Two devices whose epochs are closer than this count as equally fast."""

Kind = Literal["impossible", "too short", "small", "launches", "launches or optimizer", "optimizer or Python"]


@dataclass(frozen=True)
class Speedup:
    """Epoch on a host's CPU ÷ epoch on its accelerator, at one batch.

    `loader` is the share of the accelerator's epoch that loading may take at most; None where it is not in it.
    `steps` are the bounds of the speedup of steps alone. They are no confidence interval: noise is not in them.
    """

    model: str
    batch: int
    baseline: str
    contender: str
    seconds: tuple[float, float]
    value: float
    loader: float | None
    steps: tuple[float, float]


@dataclass(frozen=True)
class Overhead:
    """The line of a model on a device, and what its b may be.

    `call_seconds` is b ÷ calls of a step; `bytes_per_second` is what the optimizer needs at least to be done within b.
    """

    model: str
    device: str
    line: Line
    kind: Kind
    call_seconds: float | None
    bytes_per_second: float | None


@dataclass(frozen=True)
class Floor:
    """Loading takes a host no longer than the fastest epoch at that batch, if all models load the same."""

    host: str
    batch: int
    seconds: float
    model: str
    device: str


@dataclass(frozen=True)
class Alike:
    """Accelerators of two hosts that take as long as each other."""

    model: str
    batch: int
    devices: tuple[str, str]
    seconds: tuple[float, float]
    ratio: float


@dataclass(frozen=True)
class Broken:
    """A loss that grows or ends.

    Attributes:
        grew: epoch, from 1, from which on it only grows. One that rises now and then is training as usual.
        ended: the first epoch without a number.
    """

    losses: Losses
    grew: int | None
    ended: int | None


@dataclass(frozen=True)
class Findings:
    """All of a report."""

    report: Report
    speedups: tuple[Speedup, ...]
    overheads: tuple[Overhead, ...]
    floors: tuple[Floor, ...]
    alike: tuple[Alike, ...]
    broken: tuple[Broken, ...]
    per_image: tuple[float, float] | None
    """Seconds of an image, the fastest epoch over `most_examples`, and over `examples`; None without the range."""


def findings(published: Published) -> list[Findings]:
    """What each report tells, in the file's order."""
    return [_of(report, published.models) for report in published.reports]


def _of(report: Report, models: dict[str, Model]) -> Findings:
    floors = tuple(_floors(report)) if report.loader_inside else ()
    fastest = min((row.seconds for row in report.rows), default=None)
    spread = None
    if fastest is not None and report.examples and report.most_examples:
        spread = (fastest / report.most_examples, fastest / report.examples)
    return Findings(
        report,
        tuple(_speedups(report, floors)),
        tuple(_overheads(report, models)),
        floors,
        tuple(_alike(report)),
        tuple(_broken(losses) for losses in report.losses),
        spread,
    )


def means(report: Report) -> dict[tuple[str, str, int], float]:
    """(model, device, batch) → seconds of an epoch, the mean over repeats, in the order of the rows."""
    rows: dict[tuple[str, str, int], list[float]] = {}
    for row in report.rows:
        rows.setdefault((row.model, row.device, row.batch), []).append(row.seconds)
    return {key: fmean(values) for key, values in rows.items()}


def _speedups(report: Report, floors: tuple[Floor, ...]) -> Iterator[Speedup]:
    found = means(report)
    for (model, device, batch), seconds in found.items():
        contender = report.devices[device]
        if contender.kind == "cpu":
            continue
        floor = next((f for f in floors if (f.host, f.batch) == (contender.host, batch)), None)
        load = floor.seconds if floor is not None else 0.0
        bound = load / seconds if floor is not None else None
        for name, baseline in report.devices.items():
            if (baseline.kind, baseline.host) != ("cpu", contender.host) or (model, name, batch) not in found:
                continue
            pair = (found[model, name, batch], seconds)
            steps = bounds(*pair, load, None if report.synchronised else report.steps(batch))
            yield Speedup(model, batch, name, device, pair, pair[0] / pair[1], bound, steps)


def bounds(baseline: float, contender: float, loading: float, steps: int | None) -> tuple[float, float]:
    """The least and the most that steps alone may be faster.

    An epoch takes no longer than loading and steps after each other, and no less than steps; so steps take between
    the epoch less loading and the epoch, on each side. A clock that did not wait may lack a step of the contender.

    Args:
        baseline, contender: seconds of an epoch. loading: seconds that it takes at most, on either side.
        steps: of an epoch; None where the clock waited.
    """
    longest = contender * (1 + 1 / steps) if steps else contender
    shortest = contender - loading
    return max(0.0, baseline - loading) / longest, baseline / shortest if shortest > 0 else math.inf


def _overheads(report: Report, models: dict[str, Model]) -> Iterator[Overhead]:
    for model, device in dict.fromkeys((row.model, row.device) for row in report.rows):
        rows = [row for row in report.rows if (row.model, row.device) == (model, device)]
        line = fit(
            [Epoch(row.batch, report.examples or 0, report.steps(row.batch), row.seconds) for row in rows]
        )
        if line is None:
            continue
        known = models.get(model, Model())
        called = line.per_step / known.calls if known.calls and line.per_step > 0 else None
        moved = None
        if known.parameters and report.optimizer_bytes and line.per_step > 0:
            moved = known.parameters * report.optimizer_bytes / line.per_step
        yield Overhead(model, device, line, _kind(report, device, line, moved), called, moved)


def _kind(report: Report, device: str, line: Line, moved: float | None) -> Kind:
    if not line.is_possible:
        return "impossible"
    memory = report.devices[device].bytes_per_second
    if moved is not None and memory is not None and moved > memory:
        return "too short"
    if max(line.shares) < LARGE_SHARE:
        return "small"
    if report.devices[device].kind == "cpu":
        return "optimizer or Python"
    if moved is not None and memory is not None and moved > MEMORY_SHARE * memory:
        return "launches or optimizer"
    return "launches"


def _floors(report: Report) -> Iterator[Floor]:
    found = means(report)
    for batch in sorted({batch for _, _, batch in found}):
        for host in dict.fromkeys(device.host for device in report.devices.values()):
            here = [
                (seconds, model, device)
                for (model, device, size), seconds in found.items()
                if size == batch and report.devices[device].host == host
            ]
            if here:
                seconds, model, device = min(here)
                yield Floor(host, batch, seconds, model, device)


def _alike(report: Report) -> Iterator[Alike]:
    found = [each for each in means(report).items() if report.devices[each[0][1]].kind == "accelerator"]
    for number, ((model, device, batch), seconds) in enumerate(found):
        for (other, second, size), others in found[number + 1 :]:
            ratio = max(seconds, others) / min(seconds, others)
            if (
                (other, size) == (model, batch)
                and report.devices[device].host != report.devices[second].host
                and ratio <= 1 + ALIKE
            ):
                yield Alike(model, batch, (device, second), (seconds, others), ratio)


def _broken(losses: Losses) -> Broken:
    values = losses.values
    ended = next((n + 1 for n, value in enumerate(values) if not math.isfinite(value)), None)
    numbers = values if ended is None else values[: ended - 1]
    least = len(numbers)
    while least > 1 and numbers[least - 1] > numbers[least - 2]:
        least -= 1
    return Broken(losses, least + 1 if least < len(numbers) else None, ended)
