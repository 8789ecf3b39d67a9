"""One case in this process, from its definition to a record: inputs, check, clocks, plausibility, memory."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from accel_micro.devices import DeviceUnavailable, UnknownDevice, peaks
from accel_micro.devices.base import Call, Device
from accel_micro.measure import correctness, plausibility
from accel_micro.measure.blocks import Implausible, Rejected
from accel_micro.measure.cold import Footprint, NotCold, plan
from accel_micro.measure.counting import count
from accel_micro.measure.flags import Flag
from accel_micro.measure.inputs import Inputs
from accel_micro.measure.prepared import Build, Prepared
from accel_micro.measure.process import Process
from accel_micro.measure.records import Case, Check, Cold, Failure, Peak, Record, Work
from accel_micro.measure.sampling import Sampler, opened
from accel_micro.shapes import is_cold

_CPU_REFERENCE_FLOPS = 4e10
"""Above this the float64 reference takes a CPU too long, and an accelerator computes it itself, flagged."""

_PEAK_TRIES = 3
"""Times that a peak is measured again before a result is rejected for it."""


class _Skip(Exception):
    """The case does not exist here."""


class _Fail(Exception):
    """The case has no time; carries the failure."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.failure = Failure(kind, detail)


def measure_case(
    case: Case,
    build: Build,
    *,
    clocks: Sequence[str],
    samples: int,
    budget_seconds: float,
    stated: Mapping[str, float] | None = None,
    tolerance: float = 1.0,
    link: bool = False,
    device: str | None = None,
) -> Record:
    """Measure one case with some clocks. Whatever goes wrong with the op is in the record, not raised.

    One whose shape says so is measured with cold inputs (see `cold`), or skipped where they cannot be.

    Args:
        build: the op's definition: from `Inputs` to the call, or to a `Timed`.
        clocks: clocks to read; those that the device does not offer are left out.
        stated: `flops`, `bytes`, `saving` and `terms` where the op states them; the rest is counted.
        tolerance: factor on the tolerance of the check.
        link: the bytes cross a link between devices, so the peak of the memory is none for them.
        device: the one of several that is meant by the case's, such as `cuda:1`; else the first.
    """
    stated = dict(stated or {})

    def measure(opened: Device) -> Record:
        record = _measure(case, build, opened, clocks, samples, budget_seconds, stated, tolerance)
        return replace(record, peak=None) if link else record

    return _recorded(case, device, measure)


def check_case(
    case: Case,
    build: Build,
    *,
    stated: Mapping[str, float] | None = None,
    tolerance: float = 1.0,
    device: str | None = None,
) -> Record:
    """The check of `measure_case` alone: a record with error and work, or the failure or skip, and no clocks."""
    stated = dict(stated or {})

    def check(opened: Device) -> Record:
        stopwatch = _Stopwatch()
        checked = _Checked.of(case, build, opened, 0.0, stated, tolerance, stopwatch)
        return Record(case, check=checked.check, work=checked.work, seconds=stopwatch.seconds)

    return _recorded(case, device, check)


def _recorded(case: Case, name: str | None, function: Callable[[Device], Record]) -> Record:
    """What a function returns in the device's session, or else a record of why it did not."""
    try:
        with opened(name or case.device) as device:
            return function(device)
    except (DeviceUnavailable, UnknownDevice, _Skip) as reason:
        return Record(case, skipped=str(reason))
    except _Fail as problem:
        return Record(case, failure=problem.failure)
    except Exception as error:
        return _of_error(case, error)


def _of_error(case: Case, error: Exception) -> Record:
    import torch

    text = f"{type(error).__name__}: {error}".strip()
    first_line = text.split("\n")[0]
    if isinstance(error, NotImplementedError) or "not implemented for" in text or "is not supported" in text:
        return Record(case, skipped=first_line)
    # MPS, and CUDA outside of torch's allocator, say so by a RuntimeError.
    says_so = "can't allocate memory" in text or "out of memory" in first_line
    if isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)) or says_so:
        return Record(case, failure=Failure("out of memory", first_line))
    if isinstance(error, Implausible):
        return Record(case, failure=Failure("implausible", str(error)))
    if isinstance(error, Rejected):
        return Record(case, failure=Failure("rejected", str(error)))
    return Record(case, failure=Failure("failed", first_line))


def _measure(
    case: Case,
    build: Build,
    device: Device,
    clocks: Sequence[str],
    samples: int,
    budget_seconds: float,
    stated: Mapping[str, float],
    tolerance: float,
) -> Record:
    stopwatch = _Stopwatch()
    checked = _Checked.of(case, build, device, budget_seconds, stated, tolerance, stopwatch)
    work, sampler = checked.work, checked.sampler
    cold = None
    if checked.footprint is not None:
        cold = _made_cold(case, build, device, checked.footprint, sampler)
        stopwatch.lap("cold")
    with _no_grad_unless(case.direction == "backward"):
        peak = _peak(case, device, work, checked.tf32, cold)
        stopwatch.lap("peak")
        processes = _read_clocks(device, sampler, clocks, samples)
        if checked.check.reference != "cpu":
            processes = _flagged(processes, Flag("reference on device"))
        if cold is not None and cold.assumed:
            processes = _flagged(processes, Flag("cache assumed", cold.cache))
        problem = _impossible(processes, work, peak)
        for _ in range(_PEAK_TRIES):  # the peak may be from a busy moment, and so may the next one
            if problem is None:
                break
            peak = _peak(case, device, work, checked.tf32, cold, again=True)
            problem = _impossible(processes, work, peak)
        if problem is not None:
            raise _Fail("implausible", problem)
        stopwatch.lap("measure")
        memory = device.peak_memory_bytes(sampler.call)
        stopwatch.lap("memory")
    return Record(
        case,
        clocks=processes,
        check=checked.check,
        work=work,
        peak=peak,
        peak_memory_bytes=memory,
        device_interval=sampler.device_interval,
        cold=cold,
        precision=device.precision(),
        hardware=sampler.hardware,
        seconds=stopwatch.seconds,
    )


@dataclass(frozen=True)
class _Checked:
    """A case whose first result is right, ready to be timed.

    Attributes:
        sampler: has made the first call. tf32: float32 products are computed in TF32.
        footprint: of its inputs, where they are to be cold.
    """

    sampler: Sampler
    check: Check
    work: Work
    tf32: bool
    footprint: Footprint | None

    @classmethod
    def of(
        cls,
        case: Case,
        build: Build,
        device: Device,
        budget_seconds: float,
        stated: Mapping[str, float],
        tolerance: float,
        stopwatch: "_Stopwatch",
    ) -> "_Checked":
        import torch

        backward = case.direction == "backward"
        dtype: torch.dtype = getattr(torch, case.dtype)
        inputs = Inputs(torch.device(device.name), dtype, differentiate=backward)
        prepared = Prepared.of(build, inputs, backward)
        sampler = Sampler(device, prepared.call, budget_seconds)
        with _no_grad_unless(backward):
            # Of inputs and outputs numbers are kept, and no tensors while timing.
            result = prepared.result(sampler.first_call())
            stopwatch.lap("prepare")
            outputs = correctness.tensors_of(result)
            flops, counted_bytes, convolves = count(prepared, stated, inputs, outputs)
            footprint = Footprint.of(prepared, inputs, outputs, stated) if is_cold(case.shape) else None
            tf32 = _uses_tf32(case, device, convolves)
            check = _check(case, build, device, result, flops, stated.get("terms"), tolerance, tf32)
        problem = correctness.is_wrong(check)
        if problem is not None:
            raise _Fail("wrong result", problem)
        work = Work(flops=flops, bytes=counted_bytes, fewest_flops=flops / stated.get("saving", 1.0))
        stopwatch.lap("check")
        return cls(sampler, check, work, tf32, footprint)


def _made_cold(case: Case, build: Build, device: Device, footprint: Footprint, sampler: Sampler) -> Cold:
    """Make the other input sets, and have the sampler's calls take all in turn.

    Raises:
        _Skip: the inputs cannot be cold here.
    """
    import torch

    try:
        cold = plan(footprint, device)
    except NotCold as reason:
        raise _Skip(f"not timed with cold inputs: {reason}") from None
    backward = case.direction == "backward"
    dtype: torch.dtype = getattr(torch, case.dtype)

    def another() -> Call:
        inputs = Inputs(torch.device(device.name), dtype, differentiate=backward, further=True)
        return Prepared.of(build, inputs, backward).call

    sampler.rotate([another() for _ in range(cold.sets - 1)])
    return cold


class _Stopwatch:
    """How long each phase of a process took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = perf_counter()

    def lap(self, phase: str) -> None:
        """The phase ends now."""
        now = perf_counter()
        self.seconds[phase] = now - self._last
        self._last = now


@contextlib.contextmanager
def _no_grad_unless(backward: bool) -> Any:
    """Forward is timed without recording a graph, as inference does it."""
    import torch

    with torch.set_grad_enabled(backward):
        yield


def _uses_tf32(case: Case, device: Device, convolves: bool) -> bool:
    """Float32 products may be in TF32: convolutions and recurrent layers by one switch, matrix products by another."""
    modes = device.precision()
    return case.dtype == "float32" and bool(modes.get("cudnn_tf32" if convolves else "matmul_tf32"))


def _check(
    case: Case,
    build: Build,
    device: Device,
    result: Any,
    flops: float,
    terms: float | None,
    factor: float,
    tf32: bool,
) -> Check:
    import torch

    on_cpu = device.kind == "cpu" or not device.has_float64 or flops <= _CPU_REFERENCE_FLOPS
    where = torch.device("cpu" if on_cpu else device.name)
    backward = case.direction == "backward"
    dtype: torch.dtype = getattr(torch, case.dtype)
    inputs = Inputs(
        torch.device(device.name), dtype, differentiate=backward, reference=True, reference_device=where
    )
    prepared = Prepared.of(build, inputs, backward)
    reference = prepared.result(prepared.call())
    outputs = correctness.tensors_of(result)
    length = terms or correctness.reduction_length(flops, outputs)
    rounded = correctness.rounded_to(dtype, outputs)
    if dtype == torch.float32 and flops > 0 and device.precision().get("bfloat16_products"):
        rounded = torch.bfloat16
    allowed = correctness.tolerance(rounded, length, factor, tf32)
    return correctness.compare(result, reference, allowed, str(where))


def _peak(
    case: Case, device: Device, work: Work, tf32: bool, cold: Cold | None = None, *, again: bool = False
) -> Peak:
    """The peaks that this case's rates are held against: of cold inputs, those of data beyond the cache."""
    kinds = {"tf32" if tf32 else case.dtype}
    if case.dtype != "float64" and device.on_cpu:
        kinds.add("float32")  # where a narrow type has no kernel of its own, it is widened and multiplied so
    rates = [peaks.flops_per_second(device, kind, again=again) for kind in kinds] if work.flops else []
    moved = None
    if work.bytes and cold is not None:
        moved = peaks.bytes_per_second_cold(device, cold.sets * cold.read_bytes, again=again)
    elif work.bytes:
        moved = peaks.bytes_per_second(device, work.bytes, again=again)
    return Peak(
        flops_per_second=max((rate for rate in rates if rate is not None), default=None),
        bytes_per_second=moved,
    )


def _read_clocks(device: Device, sampler: Sampler, clocks: Sequence[str], samples: int) -> dict[str, Process]:
    wanted = [clock for clock in clocks if clock in device.clocks]
    if not wanted:
        raise _Skip(f"{device.name} has no {' or '.join(clocks)} clock")
    processes, unreadable = sampler.read_together(wanted, samples)
    if not processes:
        raise _Skip(
            "; ".join(f"the {clock} clock cannot be read: {reason}" for clock, reason in unreadable.items())
        )
    return processes


def _flagged(processes: Mapping[str, Process], flag: Flag) -> dict[str, Process]:
    return {clock: replace(process, flags=(*process.flags, flag)) for clock, process in processes.items()}


def _impossible(processes: Mapping[str, Process], work: Work, peak: Peak) -> str | None:
    for clock, process in processes.items():
        if clock != "dispatch":  # the host may well enqueue faster than the device can work
            problem = plausibility.impossible(process.median_seconds, work, peak)
            if problem is not None:
                return f"{clock}: {problem}"
    return None
