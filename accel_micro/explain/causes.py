"""Why a group costs what it does: rules with their evidence, and the ablation that would confirm each.

Only a rule whose evidence passes is told. A cause stays a suspicion until its ablation has moved the step.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from accel_micro.explain.aligning import rows_of
from accel_micro.explain.capture import Capture, Row
from accel_micro.explain.explanation import Contribution, Explanation
from accel_micro.explain.setting import Setting

HOST_BOUND: Final = 0.9
IDLE: Final = 0.7
_MEMORY_SHARE: Final = 0.6
_SLOW_SHARE: Final = 0.25
_SLOW_TIMES: Final = 2.0
_DENORMAL_SHARE: Final = 1e-3
_OPTIMIZER_SHARE: Final = 0.25
_SMALL_SECONDS: Final = 30e-6
_FRAMEWORK_SHARE: Final = 0.3
_WAITING: Final = 0.1
_FIRST_STEPS: Final = 20.0
_FIRST_SECONDS: Final = 0.5
_SIDES: Final = ("baseline", "contender")


@dataclass(frozen=True)
class Cause:
    """Something that explains a difference, or that holds one side back.

    Attributes:
        name: a key of the catalogue.
        side: `baseline` or `contender`, the one that it is about.
        text: a sentence with its figures.
        ablation: in words, what would confirm it.
        setting: the changed setting of that side which does so on this machine; None where that is not cheap.
        seconds: by how much the ablation should move that side's step, seconds an example; None where unknown.
    """

    name: str
    side: str
    text: str
    ablation: str
    setting: Setting | None = None
    seconds: float | None = None


def causes(explanation: Explanation) -> list[Cause]:
    """All causes whose evidence passes, the catalogue's order."""
    return [cause for rule in RULES for cause in rule(explanation)]


def _of_sides(e: Explanation) -> Iterator[tuple[str, Capture, int]]:
    yield _SIDES[0], e.baseline, 0
    yield _SIDES[1], e.contender, 1


def _slower(e: Explanation) -> int:
    """Number of the side that takes longer."""
    return 0 if e.difference > 0 else 1


def _pieces(e: Explanation, side: int) -> Iterator[Contribution]:
    """Significant contributions that make this side slower."""
    for each in e.significant:
        if each.seconds.value * (1 if side == 0 else -1) > 0:
            yield each


def _worst(e: Explanation, side: int, fits: Callable[[Row], bool]) -> list[Contribution]:
    """Of these the groups of ops that have rows which fit, on this side."""
    capture = (e.baseline, e.contender)[side]
    return [
        each for each in _pieces(e, side)
        if each.group.kind == "op" and any(fits(row) for row in rows_of(each.group, side, capture))
    ]  # fmt: skip


def _names(pieces: list[Contribution]) -> str:
    return ", ".join(dict.fromkeys(f"{each.group.phase} {each.group.label}" for each in pieces[:3]))


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def regime_switch(e: Explanation) -> Iterator[Cause]:
    """Convolutions run by another implementation on one side."""
    side = _slower(e)
    capture = (e.baseline, e.contender)[side]
    backends = [
        {(row.phase, row.module): row.backend for row in each.rows if row.backend}
        for _, each, _ in _of_sides(e)
    ]
    changed: dict[tuple[str, str], int] = {}
    for place in backends[0].keys() & backends[1].keys():
        pair = (backends[0][place], backends[1][place])
        if pair[0] != pair[1]:
            changed[pair] = changed.get(pair, 0) + 1
    pieces = _worst(e, side, lambda row: bool(row.backend)) if changed else []
    if not pieces:
        return
    (first, second), count = max(changed.items(), key=lambda item: item[1])
    seconds = sum(abs(each.seconds.value) for each in pieces)
    name = (first, second)[side]
    switch = {"Nnpack": "nnpack", "Mkldnn": "onednn", "Slow": "onednn"}
    flag = next((flag for word, flag in switch.items() if name.startswith(word)), None)
    value = "on" if name.startswith("Slow") else "off"
    setting = None
    if (
        flag is not None
        and capture.device == "cpu"
        and Setting.parse(capture.setting).switches.get(flag) != value
    ):
        setting = Setting.parse(capture.setting).changed(**{flag: value})
    yield Cause(
        "regime switch",
        _SIDES[side],
        f"{count} calls of convolution run as {first} in the baseline and as {second} in the contender; "
        f"{_names(pieces)} cost {_SIDES[side]} {_milliseconds(seconds)} an example more",
        f"the {_SIDES[side]} with {flag}={value}" if setting else "the same implementation on both sides",
        setting,
    )


def denormals(e: Explanation) -> Iterator[Cause]:
    """Numbers too small for the format, which processors handle slowly."""
    side = _slower(e)
    capture = (e.baseline, e.contender)[side]
    pieces = _worst(e, side, lambda row: row.subnormal > _DENORMAL_SHARE)
    if not pieces or capture.device != "cpu":
        return
    share, module = max(
        (row.subnormal, row.module) for p in pieces for row in rows_of(p.group, side, capture)
    )
    seconds = sum(abs(each.seconds.value) for each in pieces)
    setting = Setting.parse(capture.setting)
    yield Cause(
        "denormal numbers",
        _SIDES[side],
        f"up to {100 * share:.2g} % of the numbers in {module or 'a tensor'} are too small for their format to hold in "
        f"full, which processors handle slowly; {_names(pieces)} cost {_milliseconds(seconds)} an example more",
        f"the {_SIDES[side]} with flush_denormal=on",
        None if setting.switches.get("flush_denormal") == "on" else setting.changed(flush_denormal="on"),
        seconds,
    )


def optimizer_one_by_one(e: Explanation) -> Iterator[Cause]:
    """An optimizer that spends its time on calls, one for each tensor."""
    for name, capture, side in _of_sides(e):
        rows = [(n, row) for n, row in enumerate(capture.rows) if row.phase == "optimizer"]
        calls = sum(row.count for _, row in rows)
        if not rows or not capture.has_ops:
            continue
        seconds = fmean(sum(r.ops[n] + r.gaps[n] for n, _ in rows) for r in capture.readings)
        share = seconds / capture.step_seconds
        if side != _slower(e) and capture.device == "cpu":
            continue
        small = seconds / calls < _SMALL_SECONDS
        foreach = any("_foreach_" in row.op or "_fused_" in row.op for _, row in rows)
        if share < _OPTIMIZER_SHARE or foreach or not small or calls < 2 * capture.tensors:
            continue
        setting = Setting.parse(capture.setting)
        yield Cause(
            "optimizer one by one",
            name,
            f"{100 * share:.0f} % of a step is the optimizer: {calls} calls for {capture.tensors} tensors, "
            f"{1e6 * seconds / calls:.2g} µs each",
            f"the {name} with foreach=on",
            None
            if "foreach" in setting.switches or "fused" in setting.switches
            else setting.changed(foreach="on"),
        )


def launch_bound(e: Explanation) -> Iterator[Cause]:
    """The device waits for the host."""
    for name, capture, side in _of_sides(e):
        closure = e.closures[side]
        if closure is None or closure.host is None or closure.device is None:
            continue
        if closure.host > HOST_BOUND and closure.device < IDLE:
            calls = len(capture.sequence)
            each = 1e6 * closure.host * capture.step_seconds / calls
            yield Cause(
                "launch-bound",
                name,
                f"{capture.device} is busy for {100 * closure.device:.0f} % of a step, and enqueueing takes "
                f"{100 * closure.host:.0f} %: {calls} calls, {each:.2g} µs each",
                "a larger batch, where each call has more to do",
                Setting.parse(capture.setting).changed(batch=str(4 * capture.batch)),
            )


def synchronising(e: Explanation) -> Iterator[Cause]:
    """Numbers that the host asks the device for."""
    for name, capture, _ in _of_sides(e):
        count = sum(row.count for row in capture.rows if row.waits)
        if count and any(reading.host_seconds is not None for reading in capture.readings):
            yield Cause(
                "synchronisation",
                name,
                f"a step asks the device for a number {count} times (.item() and the like), and waits each time",
                "the step without reading numbers back",
            )


def memory_bound(e: Explanation) -> Iterator[Cause]:
    """Ops that move data as fast as the machine can."""
    side = _slower(e)
    capture = (e.baseline, e.contender)[side]
    found = [
        each
        for each in _pieces(e, side)
        if each.group.kind == "op" and _share(each, side, capture, "bytes") > _MEMORY_SHARE
    ]
    if found:
        share = _share(found[0], side, capture, "bytes")
        yield Cause(
            "memory-bound",
            _SIDES[side],
            f"{_names(found)} move data at {100 * share:.0f} % of what this machine reaches",
            "a dtype of half the size, which should take about half the time",
        )


def slow_kernel(e: Explanation) -> Iterator[Cause]:
    """Ops that use less of their machine than they do on the other side."""
    side = _slower(e)
    capture, other = (e.baseline, e.contender)[side], (e.baseline, e.contender)[1 - side]
    found = []
    for each in _pieces(e, side):
        if each.group.kind != "op":
            continue
        here = max(_share(each, side, capture, kind) for kind in ("flops", "bytes"))
        there = max(_share(each, 1 - side, other, kind) for kind in ("flops", "bytes"))
        if 0 < here < _SLOW_SHARE and there > _SLOW_TIMES * here:
            found.append((each, here, there))
    if found:
        each, here, there = found[0]
        yield Cause(
            "slow kernel",
            _SIDES[side],
            f"{_names([piece for piece, _, _ in found])}: {100 * here:.2g} % of what the machine reaches, where the "
            f"other side has {100 * there:.2g} % of its own",
            "another backend or layout",
            _with_channels_last(capture, each),
        )


def _with_channels_last(capture: Capture, contribution: Contribution) -> Setting | None:
    setting = Setting.parse(capture.setting)
    images = "conv" in contribution.group.label or "pool" in contribution.group.label
    return setting.changed(channels_last="on") if images and "channels_last" not in setting.switches else None


def _share(contribution: Contribution, side: int, capture: Capture, kind: str) -> float:
    """FLOP/s or bytes/s of a group ÷ what the machine reaches; 0 where unknown."""
    rows = list(rows_of(contribution.group, side, capture))
    if not rows:
        return 0.0
    device = sum((row.device_seconds or 0.0) * row.count for row in rows)
    seconds = device or fmean(sum(r.ops[n] for n in contribution.group.rows[side]) for r in capture.readings)
    amount = sum((row.flops if kind == "flops" else row.bytes) * row.count for row in rows)
    if seconds <= 0:
        return 0.0
    if kind == "flops":
        return amount / seconds / capture.flops_per_second if capture.flops_per_second else 0.0
    largest = max((row.bytes for row in rows), default=0.0)
    rates = {int(size): rate for size, rate in capture.bytes_per_second.items()}
    most = max((rate for size, rate in rates.items() if 4 * size >= largest), default=None)
    return amount / seconds / most if most else 0.0


def framework_bound(e: Explanation) -> Iterator[Cause]:
    """Python and autograd between the ops."""
    side = _slower(e)
    capture = (e.baseline, e.contender)[side]
    pieces = [each for each in _pieces(e, side) if each.group.kind == "framework"]
    if pieces and abs(pieces[0].seconds.value) > _FRAMEWORK_SHARE * abs(e.difference):
        seconds = abs(pieces[0].seconds.value)
        yield Cause(
            "Python between the ops",
            _SIDES[side],
            f"{pieces[0].group.label}, {pieces[0].group.phase}: {_milliseconds(seconds)} an example more in which "
            f"no op runs, {100 * seconds / abs(e.difference):.0f} % of the difference",
            "the module without its own Python, or compiled",
        )
    elif capture.has_ops:
        share = fmean(r.framework_seconds / r.step_seconds for r in capture.readings)
        if share > _FRAMEWORK_SHARE and capture.device == "cpu":
            yield Cause(
                "Python between the ops",
                _SIDES[side],
                f"in {100 * share:.0f} % of a step no op runs: "
                f"Python and autograd between {len(capture.sequence)} calls",
                "a larger batch, where each call has more to do",
                Setting.parse(capture.setting).changed(batch=str(4 * capture.batch)),
            )


def threads(e: Explanation) -> Iterator[Cause]:
    """More threads than cores, or cores that others have."""
    for name, capture, _ in _of_sides(e):
        used, cores = capture.modes.get("threads"), capture.machine.get("cpu_cores_allowed", "")
        waiting = fmean(reading.waiting for reading in capture.readings)
        if capture.device != "cpu" or not isinstance(used, int) or not cores.isdecimal():
            continue
        if used > int(cores):
            yield Cause(
                "too many threads",
                name,
                f"{used} threads share {cores} cores, and waited {waiting:.2g} s a second for them",
                f"the {name} with threads={cores}",
                Setting.parse(capture.setting).changed(threads=cores),
            )
        elif waiting > _WAITING:
            yield Cause(
                "other programs",
                name,
                f"threads waited {waiting:.2g} s a second for cores that other programs had: "
                "these times are not the model's own",
                "the same with nothing else running",
            )


def loader_bound(e: Explanation) -> Iterator[Cause]:
    """The step waits for its batches."""
    for name, capture, _ in _of_sides(e):
        fed = [reading for reading in capture.readings if reading.fed]
        if not fed:
            continue
        loader = fmean(r.fed.loader_seconds for r in fed if r.fed)
        rest = fmean(r.step_seconds + r.fed.transfer_seconds for r in fed if r.fed)
        if loader > rest:
            yield Cause(
                "loader-bound",
                name,
                f"the loader takes {_milliseconds(loader)} a batch, and the step with its transfer "
                f"{_milliseconds(rest)}: a faster device changes nothing",
                "batches that are made beforehand",
            )


def warm_up(e: Explanation) -> Iterator[Cause]:
    """A first step that short measurements would count."""
    for name, capture, _ in _of_sides(e):
        first = fmean(reading.first_step_seconds for reading in capture.readings)
        steps = first / capture.step_seconds
        if steps > _FIRST_STEPS and first > _FIRST_SECONDS:
            yield Cause(
                "first step",
                name,
                f"the first step takes {first:.2g} s, as long as {steps:.0f} others: an epoch of fewer than "
                f"{20 * steps:.0f} steps that counts it reads more than 5 % too much",
                "timings without the first step",
            )


def wrong_results(e: Explanation) -> Iterator[Cause]:
    """Ops whose result is not right, the first of the step first."""
    for name, capture, _ in _of_sides(e):
        order = list(dict.fromkeys(capture.sequence)) or list(range(len(capture.rows)))
        wrong = [capture.rows[n] for n in order if capture.rows[n].is_wrong]
        broken = [capture.rows[n] for n in order if capture.rows[n].non_finite]
        for rows, said in ((wrong, "is wrong"), (broken, "makes NaN or infinity of finite numbers")):
            if rows:
                row = rows[0]
                where = f" of {row.module}" if row.module else ""
                detail = f" ({row.check})" if row.is_wrong and rows is wrong else ""
                more = f", and {len(rows) - 1} more after it" if len(rows) > 1 else ""
                yield Cause(
                    "wrong result",
                    name,
                    f"{row.phase} {row.operator}{where} {said}{detail}{more}: its speed is worth nothing",
                    "the same op in float64, or on contiguous inputs",
                )


RULES: Final[tuple[Callable[[Explanation], Iterator[Cause]], ...]] = (
    wrong_results,
    threads,
    denormals,
    regime_switch,
    launch_bound,
    synchronising,
    optimizer_one_by_one,
    framework_bound,
    loader_bound,
    slow_kernel,
    memory_bound,
    warm_up,
)
"""The catalogue."""


@dataclass(frozen=True)
class Ablation:
    """What became of a cause's ablation: the step ÷ that of the changed setting, with interval and verdict."""

    cause: Cause
    speedup: float
    low: float
    high: float
    confirmed: bool
    text: str
