"""A clock that falls: samples dropped until none is left, and what is known of the clock block by block."""

from collections.abc import Sequence
from functools import partial
from statistics import median
from time import sleep
from typing import Any, Final

from accel_micro.devices.base import Device
from accel_micro.devices.cpu import Cpu
from accel_micro.devices.cuda import Cuda
from accel_micro.measure.process import SAMPLES, Process
from accel_micro.measure.sampling import Sampler, opened
from accel_micro.report.units import quantity
from benchmarks.harness.reports import naive
from benchmarks.harness.reports.row import Attempt, DoesNotApply, Finding
from benchmarks.harness.reports.simulation import GPUS_HERTZ, own_memory, simulated_gpus

NVBENCH_SHARE: Final = 0.75
"""nvbench drops a sample below this share of the default clock."""

_EARLIER: Final = 3
"""Readings before the fall, at the clock that there is: what is usual is known from such."""

_FALL_PROBES: Final = 12
_FALLEN: Final = 0.6


def falling(probes: int) -> float:
    """Share of the clock that is left at a probe: from 1 down to 0.6 within twelve, and there it stays.

    >>> falling(0), falling(6), falling(1000)
    (1.0, 0.8, 0.6)
    """
    return 1 - (1 - _FALLEN) * min(1.0, probes / _FALL_PROBES)


class _Fall:
    """Counts probes once it is begun; before that the clock is as it is."""

    def __init__(self) -> None:
        self.probes: int | None = None

    def share(self) -> float:
        if self.probes is None:
            return 1.0
        self.probes += 1
        return falling(self.probes - 1)


class FallingCpu(Cpu):
    """The CPU, whose probe of the host's speed is made to read a falling one."""

    def __init__(self) -> None:
        super().__init__("cpu")
        self.fall = _Fall()

    def probe_host_speed(self) -> float:
        return super().probe_host_speed() * self.fall.share()


class FallingCuda(Cuda):
    """The first GPU, whose probe of its clock is made to read a falling one."""

    def __init__(self) -> None:
        super().__init__("cuda")
        self.fall = _Fall()

    def probe_device_speed(self) -> float | None:
        hertz = super().probe_device_speed()
        return None if hertz is None else hertz * self.fall.share()


def kept_by_nvbench(shares: Sequence[float]) -> int:
    """Samples that are left when those below three quarters of the default clock are dropped.

    >>> kept_by_nvbench([1.0, 0.76, 0.74, 0.6])
    2
    """
    return sum(share >= NVBENCH_SHARE for share in shares)


def planted_fall(kind: str) -> Finding:
    """Report 16, with a fall that the probe is made to read: of the host on the CPU, of the cores on CUDA."""
    import torch

    device: FallingCpu | FallingCuda = FallingCpu() if kind == "cpu" else FallingCuda()
    reason = device.unavailable()
    if reason is not None:
        raise DoesNotApply(reason)
    clock = "throughput" if kind == "cpu" else "device"
    with own_memory(of_here=True), device.session():
        side = 256 if kind == "cpu" else 1024
        a, b = (torch.randn(side, side, device=device.name) for _ in range(2))
        sampler = Sampler(device, lambda: torch.mm(a, b), 1.0)
        for _ in range(_EARLIER):
            sampler.read(clock)
        device.fall.probes = _FALL_PROBES  # it fell before the first sample and does not come back
        process = sampler.read(clock)
    return _fall_found(
        process, f"mm {side}³ float32, the probe of the clock made to read 60 % throughout", kind
    )


def _fall_found(process: Process, what: str, kind: str) -> Finding:
    reference = process.probe["reference"]
    left = kept_by_nvbench([_FALLEN] * process.blocks_taken)
    flags = [str(flag) for flag in process.flags]
    told = [flag for flag in flags if flag.startswith(("throttled", "speed-corrected", "low clock"))]
    return Finding(
        tried=what,
        naive=f"{left} of {process.blocks_taken} samples are left where those below {100 * NVBENCH_SHARE:.0f} % "
        "of the default clock are dropped",
        ours=f"{len(process.samples)} samples, median {quantity(process.median_seconds, 's')} "
        f"(raw {quantity(process.raw_median_seconds, 's')})",
        does=f"flagged {'; '.join(told)}; {SAMPLES} samples are kept always" if told else "NOT FLAGGED",
        good=bool(told) and len(process.samples) == SAMPLES,
        figures={
            "naive_samples": left,
            "ours_samples": len(process.samples),
            "blocks": process.blocks_taken,
            "reference": reference,
            "flags": flags,
            "device": kind,
        },
    )


def simulated_fall() -> Finding:
    """Report 16 on the GPU of the tests, whose kernels and spins really slow as its clock falls."""
    with simulated_gpus() as (gpus, device), device.session():
        sampler = Sampler(device, gpus.call(10e-6, 40e-6), 0.5)
        for _ in range(_EARLIER):
            sampler.read("device")
        gpus.hertz = lambda card, seconds: GPUS_HERTZ * _FALLEN
        process = sampler.read("device")
    return _fall_found(process, "a kernel of 40 µs on a simulated GPU whose clock has fallen to 60 %", "cuda")


def clock_of_each_block_on_cuda() -> Finding:
    """Report 17: products that draw much power, from an idle GPU on."""
    import torch

    side, calls, readings = 8192, 20, 100
    with opened("cuda") as device:
        a, b = (torch.randn(side, side, device=device.name).to(torch.bfloat16) for _ in range(2))

        def call() -> torch.Tensor:
            return torch.mm(a, b)

        naive.synchronised(device, call, 3)
        device.synchronize()
        sleep(2.0)
        hertz: list[float] = []
        times = []
        for _ in range(readings):
            times.append(naive.synchronised(device, call, calls))
            hertz.append(device.probe_device_speed() or 0.0)
        sampler = Sampler(device, call, 2.0)
        processes, unreadable = sampler.read_together(("device", "throughput"))
        hardware = sampler.hardware
    if "device" in unreadable:
        raise DoesNotApply(unreadable["device"])
    process = processes["device"]
    first, last = median(times[:5]), median(times[-5:])
    driver = str(hardware.get("unwatched") or _driver(hardware))
    return Finding(
        tried=f"mm {side}³ bfloat16 without a pause, {readings} readings of {calls} calls after 2 s of rest; probe of "
        f"the clock after each: {min(hertz) / 1e6:.0f} to {max(hertz) / 1e6:.0f} MHz",
        naive=f"{quantity(first, 's')} in the first five readings, {quantity(last, 's')} in the last "
        f"({last / first:.2f} times), no word about the clock",
        ours=f"device {quantity(process.median_seconds, 's')}, "
        f"samples {_range(process.raw_samples)}, clock {_range_mhz(process)}",
        does=f"clock of each block is in the record; by the driver: {driver}; "
        f"flags: {'; '.join(str(flag) for flag in process.flags) or 'none'}",
        good=len(process.speeds) == SAMPLES and "reference" in process.probe,
        figures={
            "first_seconds": first,
            "last_seconds": last,
            "probe_hertz": hertz,
            "reading_seconds": times,
            "ours_seconds": process.median_seconds,
            "ours_speeds": list(process.speeds),
            "reference_hertz": process.probe["reference"],
            "hardware": _plain(hardware),
            "flags": [str(flag) for flag in process.flags],
        },
    )


def _driver(hardware: dict[str, Any]) -> str:
    lowest, highest = hardware.get("lowest_hertz"), hardware.get("highest_hertz")
    clock = f"{lowest / 1e6:.0f} to {highest / 1e6:.0f} MHz" if lowest and highest else "no clock"
    held = hardware.get("throttled_blocks") or {}
    reasons = ", ".join(f"{name} in {count} blocks" for name, count in held.items())
    return f"{clock}, {reasons or 'never held down'}"


def _plain(facts: dict[str, Any]) -> dict[str, Any]:
    return {
        name: dict(value) if hasattr(value, "items") else value
        for name, value in facts.items()
        if name != "card"
    }


def _range(seconds: Sequence[float]) -> str:
    return f"{quantity(min(seconds), 's')} to {quantity(max(seconds), 's')}"


def _range_mhz(process: Process) -> str:
    hertz = [speed * process.probe["reference"] / 1e6 for speed in process.speeds]
    return f"{min(hertz):.0f} to {max(hertz):.0f} MHz"


def speed_of_each_block_on_the_cpu() -> Finding:
    """Report 17 on a CPU: the speed that the machine had, block by block, over twelve short readings."""
    import torch

    raw: list[float] = []
    gated: list[float] = []
    speeds: list[float] = []
    corrected = 0
    with opened("cpu") as device:
        a, b = torch.randn(8, 32, 32), torch.randn(8, 32, 32)
        for _ in range(12):
            sampler = Sampler(device, lambda: torch.bmm(a, b), 1.0)
            sampler.warm_up()
            raw.append(_unguarded(device, sampler))
            process = sampler.read("throughput")
            gated.append(process.median_seconds)
            speeds += process.speeds
            corrected += any(flag.name == "speed-corrected" for flag in process.flags)
    spread_raw, spread_gated = max(raw) / min(raw), max(gated) / min(gated)
    return Finding(
        tried="bmm 8×32×32 float32 on one thread, twelve readings of 20 blocks",
        naive=f"medians {_range(raw)}: largest ÷ smallest {spread_raw:.2f}",
        ours=f"medians {_range(gated)}: largest ÷ smallest {spread_gated:.2f}",
        does=f"speed of each block is in the record: {100 * min(speeds):.0f} to {100 * max(speeds):.0f} % of full "
        f"speed in those kept; {corrected} of 12 flagged speed-corrected",
        good=spread_gated <= max(spread_raw, 1.1),
        figures={
            "naive_medians": raw,
            "ours_medians": gated,
            "lowest_speed": min(speeds),
            "highest_speed": max(speeds),
            "speed_corrected": corrected,
        },
    )


def _unguarded(device: Device, sampler: Sampler) -> float:
    calls, _, _ = sampler.block_of("throughput")
    return median(naive.synchronised(device, sampler.call, calls) for _ in range(SAMPLES))


ATTEMPTS: Final = (
    Attempt(16, "cpu", "CPU, planted fall", partial(planted_fall, "cpu")),
    Attempt(16, "cpu", "CUDA, simulated", simulated_fall),
    Attempt(16, "cuda", "CUDA, planted fall", partial(planted_fall, "cuda")),
    Attempt(17, "cpu", "CPU", speed_of_each_block_on_the_cpu),
    Attempt(17, "cuda", "CUDA", clock_of_each_block_on_cuda),
)
