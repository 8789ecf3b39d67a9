"""CUDA: a product whose end nobody waits for, pauses between samples, and a call that is nothing but dispatch.

Truth is known without a synchronisation: by a chain of products until a number of the last is on the host.
"""

from functools import partial
from statistics import median
from typing import Final

from accel_micro.devices import peaks
from accel_micro.devices.base import Call, Device
from accel_micro.doctor.sync.ways import unsynchronised
from accel_micro.doctor.sync.workload import product, slope_of
from accel_micro.measure import plausibility
from accel_micro.measure.records import Peak, Work
from accel_micro.measure.sampling import Sampler, opened
from accel_micro.report.units import quantity
from benchmarks.harness.reports import naive
from benchmarks.harness.reports.row import Attempt, Finding, within

_TURNS: Final = 5
_CALLS: Final = 20
_SAMPLES: Final = 10


def matmul_without_a_sync(kind: str, side: int) -> Finding:
    """Report 1, in float32."""
    with opened(kind) as device:
        work = product(device, side, "large")
        return _unsynchronised(
            device, work.call, work.witness, 2.0 * side**3, "float32", f"mm {side}³ float32", rates=False
        )


def impossible_rate(kind: str, side: int) -> Finding:
    """Report 2: bfloat16, as FLOP/s."""
    import torch

    with opened(kind) as device:
        normal = torch.nn.functional.normalize(torch.randn(side), dim=0).to(device.name)
        w = (torch.eye(side, device=device.name) - 2 * torch.outer(normal, normal)).to(torch.bfloat16)
        a = torch.randn(side, side).to(device.name, torch.bfloat16)

        def chain(calls: int) -> None:
            last = a
            for _ in range(calls):
                last = torch.mm(last, w)
            last[0, 0].item()

        return _unsynchronised(
            device,
            lambda: torch.mm(a, w),
            lambda calls: slope_of(device, chain, calls),
            2.0 * side**3,
            "bfloat16",
            f"mm {side}³ bfloat16",
            rates=True,
        )


def _unsynchronised(
    device: Device,
    call: Call,
    witness: naive.Witness,
    flops: float,
    arithmetic: str,
    what: str,
    *,
    rates: bool,
) -> Finding:
    ways = {
        "ours": naive.block_of_ours(Sampler(device, call, 1.0)),
        "truth": lambda: witness(_CALLS),
        "naive": lambda: unsynchronised(device, call, _CALLS),
    }
    turns = naive.Turns.read(device, ways, _TURNS)
    truth, wrong, ours = turns.median("truth"), turns.median("naive"), turns.median("ours")
    peak = Peak(peaks.flops_per_second(device, arithmetic), None)
    problem = plausibility.impossible(wrong, Work(flops, 0.0), peak)
    condemned = plausibility.impossible(ours, Work(flops, 0.0), peak)
    word, right = within(turns.ratio("ours", "truth"))
    rejects = f"; the time without a wait is rejected: {problem}" if problem else "; IT IS NOT REJECTED"

    def shown(seconds: float) -> str:
        return quantity(flops / seconds, "FLOP/s") if rates else quantity(seconds, "s")

    return Finding(
        tried=f"{what}, {_CALLS} calls; truth by a chain of products: {shown(truth)}",
        naive=f"{shown(wrong)} without a wait",
        ours=shown(ours),
        does=word + rejects + (f"; OURS IS TOO: {condemned}" if condemned else ""),
        good=right and problem is not None and condemned is None,
        figures={
            "truth_seconds": truth,
            "naive_seconds": wrong,
            "ours_seconds": ours,
            "flops": flops,
            "peak_flops_per_second": peak.flops_per_second,
        },
    )


def pauses_between_samples(kind: str, side: int) -> Finding:
    """Report 6, on CUDA: single calls after pauses, beside calls without any."""
    pause = 0.1
    with opened(kind) as device:
        work = product(device, side, "small")
        ways = {
            "ours": naive.block_of_ours(Sampler(device, work.call, 1.0)),
            "truth": lambda: work.witness(200),
        }
        turns = naive.Turns.read(device, ways, _TURNS)
        alone = median(naive.synchronised(device, work.call, 1) for _ in range(50))
        paused = naive.after_pauses(device, work.call, pause, 20)
    ours, truth = turns.median("ours"), turns.median("truth")
    word, right = within(turns.ratio("ours", "truth"))
    return Finding(
        tried=f"mm {side}³ float32, single calls after pauses of {pause:g} s; truth by a chain: {quantity(truth, 's')}",
        naive=f"{quantity(paused, 's')} after pauses, {quantity(alone, 's')} without",
        ours=quantity(ours, "s"),
        does=f"{word}: no pauses, and calls that do not count before each block",
        good=right,
        figures={
            "truth_seconds": truth,
            "naive_seconds": paused,
            "naive_without_pauses_seconds": alone,
            "ours_seconds": ours,
            "pause_seconds": pause,
        },
    )


def dispatch_apart() -> Finding:
    """Report 7, on CUDA: the root of one number."""
    import torch

    with opened("cuda") as device:
        x = torch.ones(1, device=device.name)

        def call() -> torch.Tensor:
            return torch.sqrt(x)

        sampler = Sampler(device, call, 2.0)
        processes, unreadable = sampler.read_together(("dispatch", "device", "throughput"), _SAMPLES)
        one = median(device.event_pair(call) for _ in range(50))
        together = sampler.throughput_over_larger
    seconds = {clock: process.median_seconds for clock, process in processes.items()}
    shown = ", ".join(f"{clock} {quantity(value, 's')}" for clock, value in seconds.items())
    complete = not unreadable and together is not None
    agree = complete and abs((together or 0.0) - 1) <= 0.15
    share = seconds.get("dispatch", 0.0) / seconds["throughput"]
    return Finding(
        tried="sqrt of one number, float32",
        naive=f"one number: {quantity(one, 's')} between two events",
        ours=shown,
        does=f"told apart: dispatch is {100 * share:.0f} % of throughput; "
        f"throughput ÷ the larger of dispatch and device is {together or 0.0:.2f}",
        good=bool(agree) and seconds["dispatch"] > seconds["device"],
        figures={f"{clock}_seconds": value for clock, value in seconds.items()} | {"event_pair_seconds": one},
    )


ATTEMPTS: Final = (
    Attempt(1, "cuda", "CUDA", partial(matmul_without_a_sync, "cuda", 4096)),
    Attempt(2, "cuda", "CUDA", partial(impossible_rate, "cuda", 8192)),
    Attempt(6, "cuda", "CUDA", partial(pauses_between_samples, "cuda", 1024)),
    Attempt(7, "cuda", "CUDA", dispatch_apart),
)
