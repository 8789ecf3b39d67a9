"""Are the clocks true? Each case's device clock against CUPTI, throughput against dispatch and device."""

import argparse
import contextlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from accel_micro import profiles
from accel_micro.devices.base import Call, Device, Queue
from accel_micro.suite import OpBenchmark
from benchmarks.harness.cases import cases

TURNS = 9
"""Blocks of each clock, in turns. A case of the suite takes 20; a median of ratios needs fewer."""

_BUDGET_SECONDS = 0.3
_WARMUP_SECONDS = 0.2  # the case before has kept the GPU's clock up, so less than in a process of its own
_PAIRS = 5
_QUICK_PAIRS = 3
_QUICK_WARMUP_SECONDS = 0.05
_BLOCK_SECONDS = 5e-3
_LARGE = 10e-6
_SMALL = 3e-6
_AGREEMENT = 0.03
_MOST_LAUNCHES = 500


@dataclass
class Row:
    """One case. Times in seconds a call; a time that was not read is 0.

    Attributes:
        device_beside: the device clock read in turns with CUPTI. kernels: kernels and copies that a call launches.
        back_to_back: CUPTI's time of calls that waited in the queue, read where `device_beside` and `cupti` differ: a
            kernel that starts on an idle GPU takes longer than one that follows another.
        together: throughput over the larger of dispatch and device, median over the turns; None when not all are read.
        unsynchronised_rejected: why the time without a synchronisation is impossible, or None. rejected: the same of
            throughput, a mistake.
        phases: what the row took, seconds.
    """

    name: str
    dispatch: float = 0.0
    device: float = 0.0
    throughput: float = 0.0
    device_beside: float = 0.0
    cupti: float = 0.0
    kernels: float = 0.0
    back_to_back: float = 0.0
    unsynchronised: float = 0.0
    together: float | None = None
    unsynchronised_rejected: str | None = None
    rejected: str | None = None
    flags: list[str] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Device clock ÷ CUPTI, NaN when either is missing."""
        return self.device_beside / self.cupti if self.cupti and self.device_beside else math.nan

    @property
    def kernel_seconds(self) -> float:
        """Seconds of a kernel, on average."""
        return self.cupti / self.kernels if self.kernels else 0.0

    @property
    def seconds(self) -> float:
        """What the row took."""
        return sum(self.phases.values())

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Note what a part of the row takes."""
        start = perf_counter()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + perf_counter() - start


@dataclass(frozen=True)
class _Opened:
    """A case in its device's session, ready to be called; `prepared` as in `measure.case`."""

    device: Device
    prepared: Any
    inputs: Any

    @property
    def call(self) -> Call:
        call: Call = self.prepared.call
        return call


@contextlib.contextmanager
def _opened(
    cls: type[OpBenchmark], direction: str, device_name: str, dtype: str, shape: str
) -> Iterator[_Opened]:
    from accel_micro.measure.sampling import opened

    cls().setup(device_name, dtype, shape)
    with opened(device_name) as device, prepared_case(cls, direction, device_name, dtype, shape) as prepared:
        yield _Opened(device, *prepared)


@contextlib.contextmanager
def prepared_case(
    cls: type[OpBenchmark], direction: str, device_name: str, dtype: str, shape: str
) -> Iterator[tuple[Any, Any]]:
    """A case ready to be called on the stream that is current, as in `measure.case`, and its inputs."""
    import torch

    from accel_micro.measure.inputs import Inputs
    from accel_micro.measure.prepared import Prepared

    arguments = cls.op.arguments(shape)
    backward = direction == "backward"
    with contextlib.ExitStack() as stack:
        inputs = Inputs(torch.device(device_name), getattr(torch, dtype), differentiate=backward)
        prepared = Prepared.of(lambda t: cls.op.build(t, arguments, stack), inputs, backward)
        stack.enter_context(torch.set_grad_enabled(backward))
        yield prepared, inputs


def read_clocks(
    row: Row, cls: type[OpBenchmark], direction: str, device_name: str, dtype: str, shape: str
) -> None:
    """Dispatch, device, throughput, CUPTI's kernel time and the time without a sync, all of one call in one process."""
    from accel_micro.measure import case as case_module
    from accel_micro.measure import plausibility
    from accel_micro.measure.correctness import tensors_of
    from accel_micro.measure.counting import count
    from accel_micro.measure.records import Peak, Work
    from accel_micro.measure.sampling import Sampler

    with contextlib.ExitStack() as stack:
        with row.phase("prepare"):
            opened = stack.enter_context(_opened(cls, direction, device_name, dtype, shape))
            device, prepared = opened.device, opened.prepared
            device.minimum_warmup_seconds = _WARMUP_SECONDS
            sampler = Sampler(device, opened.call, _BUDGET_SECONDS)
            outputs = tensors_of(prepared.result(sampler.first_call()))
            stated = cls.op.stated_work(direction, dtype, shape)
            flops, moved, convolves = count(prepared, stated, opened.inputs, outputs)
            work = Work(flops, moved, flops / stated.get("saving", 1.0))
            del outputs
        with row.phase("peak"):
            case = cls.case(direction, device_name, dtype, shape)
            tf32 = case_module._uses_tf32(case, device, convolves)
            peak = Peak() if cls.op.link else case_module._peak(case, device, work, tf32)
        with row.phase("warm-up"):
            sampler.warm_up()
        with row.phase("clocks"):
            processes, unreadable = sampler.read_together(("dispatch", "device", "throughput"), TURNS)
        for clock, process in processes.items():
            setattr(row, clock, process.median_seconds)
            row.flags += [f"{clock}: {flag}" for flag in process.flags]
        row.flags += [f"{clock}: {reason}" for clock, reason in unreadable.items()]
        row.together = sampler.throughput_over_larger
        with row.phase("no sync"):
            row.unsynchronised = _unsynchronised(device, opened.call, row.throughput)
        with row.phase("pairs"):
            share = processes["device"].probe.get("busy_share", 1.0) if "device" in processes else 0.0
            queue = sampler._queue or device.queue(opened.call)
            _read_pairs(row, device, queue, opened.call, _PAIRS, share)
        row.unsynchronised_rejected = plausibility.impossible(row.unsynchronised, work, peak)
        row.rejected = plausibility.impossible(row.throughput, work, peak)


def _unsynchronised(device: Device, call: Call, throughput: float) -> float:
    """What a stopwatch reads that does not wait."""
    calls = max(1, min(50, round(5e-3 / throughput)))
    device.synchronize()
    start = perf_counter()
    for _ in range(calls):
        call()
    seconds = (perf_counter() - start) / calls
    device.synchronize()
    return seconds


def _read_pairs(
    row: Row, device: Device, queue: Queue, call: Call, pairs: int, share: float | None = None
) -> None:
    """The device clock and CUPTI in turns, since the clock of a hot GPU drifts. Without a share it is read too."""
    from accel_micro.devices.base import QueueTooShort
    from accel_micro.devices.cuda_profiler import kernel_reading

    calls = 0
    try:
        calls = queue.device_calls(_BLOCK_SECONDS)
        if share is None:
            row.flags += [f"device: {': '.join(flag)}" for flag in queue.device_flags]
            share = queue.busy_share() or 1.0
    except QueueTooShort as reason:
        row.flags.append(f"device: {reason}")
    once, _ = kernel_reading(call, 1)
    profiled = max(2, min(20, round(_BLOCK_SECONDS / max(once, 1e-6))))
    ours: list[float] = []
    theirs: list[tuple[float, float]] = []
    for _ in range(pairs):
        if calls and share:
            ours.append(share * queue.device(calls))
        theirs.append(kernel_reading(call, profiled))
    row.device_beside = median(ours) if ours else 0.0
    row.cupti, row.kernels = (median(column) for column in zip(*theirs, strict=True))
    if abs(row.ratio - 1) > _AGREEMENT:
        row.back_to_back = median(_back_to_back(device, call, row.kernels) for _ in range(pairs))
        row.flags.append(
            f"kernels back to back: {1e6 * row.back_to_back:.2f}, device over it "
            f"{row.device_beside / row.back_to_back:.3f}"
        )


def _back_to_back(device: Device, call: Call, kernels: float) -> float:
    """CUPTI's kernel time per call where all calls were enqueued before the first began, as in the device clock."""
    import torch

    from accel_micro.devices.cuda_profiler import busy_seconds

    calls = max(1, min(20, round(_MOST_LAUNCHES / max(kernels, 1.0))))
    start = perf_counter()
    for _ in range(calls):
        call()
    seconds = 4 * (perf_counter() - start) + 2e-3  # launches are slower while a profiler looks on
    device.synchronize()
    cuda: Any = torch.cuda
    cycles = int(seconds * (device.probe_device_speed() or 1e9))

    def repeat(count: int) -> None:
        cuda._sleep(cycles)
        for _ in range(count):
            call()

    return busy_seconds(repeat, calls)


def read_device(
    row: Row, cls: type[OpBenchmark], direction: str, device_name: str, dtype: str, shape: str
) -> None:
    """The device clock and CUPTI's kernel time alone."""
    with contextlib.ExitStack() as stack:
        with row.phase("prepare"):
            opened = stack.enter_context(_opened(cls, direction, device_name, dtype, shape))
            device, call = opened.device, opened.call
            call()
            device.synchronize()
        with row.phase("warm-up"):
            start = perf_counter()
            while perf_counter() < start + _QUICK_WARMUP_SECONDS:
                call()
                device.synchronize()
        with row.phase("pairs"):
            _read_pairs(row, device, device.queue(call), call, _QUICK_PAIRS)
        row.device = row.device_beside


def _print_row(row: Row) -> None:
    times = (row.dispatch, row.device, row.throughput, row.cupti, row.unsynchronised)
    micro = " ".join(f"{1e6 * seconds:9.1f}" for seconds in times)
    together = row.together if row.together is not None else math.nan
    remark = "rejected" if row.unsynchronised_rejected else ""
    remark += f" WRONGLY REJECTED {row.rejected}" if row.rejected else ""
    print(
        f"{row.name:78s} {micro} {row.kernels:6.1f} {row.ratio:6.3f} {together:6.3f} {row.seconds:5.2f} s "
        f"{remark} {'; '.join(row.flags)}",
        flush=True,
    )


def _print_device_row(row: Row) -> None:
    print(
        f"{row.name:78s} {1e6 * row.device:9.2f} {1e6 * row.cupti:9.2f} {row.kernels:6.1f} {row.ratio:6.3f} "
        f"{row.seconds:5.2f} s {'; '.join(row.flags)}",
        flush=True,
    )


def clocks(options: argparse.Namespace) -> None:
    """Every case of a profile: is the device clock that of CUPTI, and throughput the larger of dispatch and device?"""
    read: Callable[..., None] = read_device if options.device_only else read_clocks
    show = _print_device_row if options.device_only else _print_row
    print(
        "microseconds: device, CUPTI; kernels; device÷CUPTI; seconds for the row"
        if options.device_only
        else "microseconds: dispatch, device, throughput, CUPTI, without a sync; kernels; device÷CUPTI; "
        "throughput÷larger; seconds for the row"
    )
    rows: list[Row] = []
    profile = profiles.get(options.profile)
    for cls, direction, dtype, shape in cases(options.device, profile, options.bench, cold=False):
        row = Row(f"{cls.op.name} {direction} {dtype} {shape}")
        try:
            read(row, cls, direction, options.device, dtype, shape)
        except Exception as error:  # one case must not end the table
            print(f"{row.name}: {type(error).__name__}: {str(error).splitlines()[0][:150]}", flush=True)
            if not usable(options.device):
                print("the device refuses all further work in this process", flush=True)
                break
            continue
        rows.append(row)
        show(row)
    print_summary(rows, options.device_only)
    if options.output:
        facts = [{**vars(row), "ratio": row.ratio} for row in rows]
        Path(options.output).write_text(json.dumps(facts, indent=1), encoding="utf-8")


def usable(device_name: str) -> bool:
    """False once an error has broken the process's hold on the device; memory of a failed case is given back."""
    import gc

    import torch

    from accel_micro import devices

    gc.collect()
    try:
        devices.get(device_name).synchronize()
        torch.cuda.empty_cache()  # does nothing where CUDA was not used
    except RuntimeError:
        return False
    return True


def print_summary(rows: Sequence[Row], device_only: bool) -> None:
    """How many agree, and every one that does not."""
    both = [row for row in rows if not math.isnan(row.ratio)]
    large = [row for row in both if row.kernel_seconds >= _LARGE]
    small = [row for row in both if _SMALL <= row.kernel_seconds < _LARGE]
    for what, among, tolerances in (
        ("10 µs or more", large, (_AGREEMENT,)),
        ("3 to 10 µs", small, (0.05, 0.10)),
        ("less", [row for row in both if row.kernel_seconds < _SMALL], (0.10, 0.20)),
    ):
        counts = [
            f"within {100 * t:.0f} % {sum(abs(row.ratio - 1) <= t for row in among)}" for t in tolerances
        ]
        print(f"device clock against CUPTI, kernels of {what}: {', '.join(counts)} of {len(among)}")
        if what != "less":
            _print_others([(_with_back_to_back(row), row.ratio) for row in among], tolerances[0])
    missing = [row.name for row in rows if math.isnan(row.ratio)]
    print(f"no device clock: {len(missing)}")
    for name in missing:
        print(f"  {name}")
    if not device_only:
        _print_agreement(rows)
    spent: Counter[str] = Counter()
    for row in rows:
        spent.update(row.phases)
    each = sum(spent.values()) / max(1, len(rows))
    print(f"{each:.2f} s a row: {', '.join(f'{name} {seconds:.1f} s' for name, seconds in spent.items())}")


def _with_back_to_back(row: Row) -> str:
    if not row.back_to_back:
        return row.name
    return f"{row.device_beside / row.back_to_back:6.3f} back to back  {row.name}"


def _print_agreement(rows: Sequence[Row]) -> None:
    by_family: dict[str, list[Row]] = {}
    for row in rows:
        if row.together is not None:
            by_family.setdefault(row.name.partition(".")[0], []).append(row)
    for family, among in by_family.items():
        ratios = [row.together or math.nan for row in among]
        within = sum(abs(ratio - 1) <= 0.15 for ratio in ratios)
        print(
            f"{family}: throughput within 15 % of the larger of dispatch and device: {within} of {len(among)}; "
            f"median ratio {median(ratios):.3f}"
        )
        _print_others([(row.name, row.together or math.nan) for row in among], 0.15)
    fooled = [row for row in rows if row.unsynchronised < 0.8 * row.throughput]
    caught = [row for row in fooled if row.unsynchronised_rejected]
    print(
        f"times without a sync below the truth: {len(fooled)}; physically impossible and rejected: {len(caught)}"
    )
    print(f"synchronised times rejected by mistake: {sum(1 for row in rows if row.rejected)} of {len(rows)}")


def _print_others(ratios: Sequence[tuple[str, float]], tolerance: float) -> None:
    for name, ratio in sorted(ratios, key=lambda pair: -abs(pair[1] - 1)):
        if abs(ratio - 1) > tolerance:
            print(f"  {ratio:6.3f}  {name}")
