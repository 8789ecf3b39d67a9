"""A warm-up that is too short for a call that is slow at first, and a cache that is warm or not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from statistics import median
from typing import Any, Final

from accel_micro.devices.base import Call, Device
from accel_micro.measure.sampling import Sampler, opened
from accel_micro.report.units import quantity
from benchmarks.harness.reports import naive
from benchmarks.harness.reports.row import Attempt, DoesNotApply, Finding, within

SLOWER: Final = 11.23 / 8.79 - 1
"""By how much the call is slower at first: as in the report."""

SLOW_SECONDS: Final = {"cpu": 0.3, "cuda": 0.4}
"""About how long it is slow, until it is at its usual time."""

_SAMPLES: Final = 10
_ROUNDS: Final = {"cpu": 3, "cuda": 1}


@dataclass
class SlowAtFirst:
    """A call that wastes time at first, and less with each call, until none.

    Attributes:
        waste: wastes that many seconds. most_seconds: at the first call. calls: after which nothing is wasted.
    """

    call: Call
    waste: Callable[[float], None]
    most_seconds: float
    calls: int
    made: int = 0

    def __call__(self) -> Any:
        left = 1 - self.made / self.calls
        self.made += 1
        if left > 0:
            self.waste(left * self.most_seconds)
        return self.call()


def too_short_a_warm_up(kind: str) -> Finding:
    """Report 13: triton's do_bench on a GPU where triton is installed, else its protocol by the host clock."""
    import torch

    with opened(kind) as device:
        side = 2048 if kind == "cuda" else 256
        a, b = (torch.randn(side, side, device=device.name) for _ in range(2))

        def call() -> torch.Tensor:
            return torch.mm(a, b)

        return _slow_at_first(device, call, f"mm {side}³ float32", SLOW_SECONDS[kind])


def _slow_at_first(device: Device, call: Call, what: str, slow_seconds: float) -> Finding:
    for _ in range(20):
        naive.synchronised(device, call, 5)
    before = median(naive.synchronised(device, call, 5) for _ in range(40))
    waste = _waste(device)
    calls = max(10, round(slow_seconds / (before * (1 + SLOWER / 2))))

    def planted() -> SlowAtFirst:
        return SlowAtFirst(call, waste, SLOWER * before, calls)

    how, stopwatch = _do_bench(device)
    rounds = []
    for _ in range(_ROUNDS[device.kind]):
        read = stopwatch(planted())
        sampler = Sampler(device, planted(), 2.0)
        ours = sampler.read("throughput", _SAMPLES).median_seconds
        truth = Sampler(device, call, 1.0).read("throughput", _SAMPLES).median_seconds
        rounds.append((read, ours, truth, sampler.warmup_seconds))
    read, ours, truth, warmed = (median(column) for column in zip(*rounds, strict=True))
    off = median(one / other for _, one, other, _ in rounds)
    word, right = within(off, 1.0, 0.05)
    return Finding(
        tried=f"{what}, {100 * SLOWER:.0f} % slower at first, less and less for {calls} calls "
        f"(some {slow_seconds:g} s); the same without that: {quantity(truth, 's')}",
        naive=f"{quantity(read, 's')} by {how}, {read / truth:.2f} times",
        ours=quantity(ours, "s"),
        does=f"{word}: warmed up for {warmed:.2g} s, until times were stable",
        good=right,
        figures={
            "truth_seconds": truth,
            "naive_seconds": read,
            "ours_seconds": ours,
            "slow_calls": calls,
            "warmup_seconds": warmed,
            "rounds": [list(each) for each in rounds],
        },
    )


def _waste(device: Device) -> Callable[[float], None]:
    """Wastes seconds where the call's time goes: on the GPU, or on the host."""
    hertz = device.probe_device_speed()
    if hertz is not None:
        import torch

        cuda: Any = torch.cuda
        return lambda seconds: cuda._sleep(max(1, int(seconds * hertz)))

    def spin(seconds: float) -> None:
        end = device.now() + seconds
        while device.now() < end:
            pass

    return spin


def _do_bench(device: Device) -> tuple[str, Callable[[Call], float]]:
    if device.kind == "cuda":
        found = _triton()
        if found is not None:
            return "triton's do_bench", lambda call: float(found.do_bench(call)) * 1e-3
    return "25 ms of warm-up and the mean over 100 ms", lambda call: naive.fixed_warm_up(device, call)


def _triton() -> Any:
    """Triton's stopwatches; None where it is not installed, or cannot build what it asks the driver with."""
    try:
        from triton import testing

        testing.do_bench(lambda: None, warmup=1, rep=1)
    except Exception:  # no compiler, no driver that it knows: whatever triton raises
        return None
    return testing


def both_regimes_on_cuda() -> Finding:
    """Report 14: a product with its operands in the cache, and with operands that take turns over twice the cache."""
    import torch

    side = 1024
    with opened("cuda") as device:
        cache = int(device.describe()["l2_bytes"]) or 50 << 20
        set_bytes = 2 * 2 * side * side
        pairs = [
            tuple(torch.randn(side, side, device=device.name).to(torch.bfloat16) for _ in range(2))
            for _ in range(2 * cache // set_bytes + 1)
        ]
        warm, cold = _calls(torch.mm, pairs)
        clocks = ("dispatch", "device", "throughput")
        processes, unreadable = Sampler(device, warm, 1.0).read_together(clocks, _SAMPLES)
        if "device" in unreadable:
            raise DoesNotApply(unreadable["device"])
        ours = processes["device"].median_seconds
        ours_cold = Sampler(device, cold, 1.0).read("device", _SAMPLES).median_seconds
        triton = _triton()
        flushed = None if triton is None else float(triton.do_bench(warm)) * 1e-3
        graphed = None if triton is None else float(triton.do_bench_cudagraph(warm)) * 1e-3
        truth, truth_cold = _kernel_seconds(warm), _kernel_seconds(cold)
    word, right = within(ours, truth)
    word_cold, right_cold = within(ours_cold, truth_cold)
    flops = 2.0 * side**3

    def rate(seconds: float | None) -> str:
        return "–" if seconds is None else quantity(flops / seconds, "FLOP/s")

    return Finding(
        tried=f"mm {side}³ bfloat16; cold: {len(pairs)} pairs of operands in turns, over twice the cache "
        f"({cache >> 20} MiB); kernel times by CUPTI: {rate(truth)} warm, {rate(truth_cold)} cold",
        naive=f"{rate(flushed)} by do_bench, {rate(graphed)} by do_bench_cudagraph",
        ours=f"device {rate(ours)} warm, {rate(ours_cold)} cold; "
        f"throughput {rate(processes['throughput'].median_seconds)}",
        does=f"warm {word}, cold {word_cold}; dispatch, {quantity(processes['dispatch'].median_seconds, 's')}, is told "
        "apart. The cold call was made for this; the suite has cold cases too",
        good=right and right_cold,
        figures={
            "truth_warm_seconds": truth,
            "truth_cold_seconds": truth_cold,
            "do_bench_seconds": flushed,
            "do_bench_cudagraph_seconds": graphed,
            "ours_warm_seconds": ours,
            "ours_cold_seconds": ours_cold,
            **{f"ours_{clock}_seconds": process.median_seconds for clock, process in processes.items()},
        },
    )


def _kernel_seconds(call: Call) -> float:
    from accel_micro.devices.cuda_profiler import kernel_reading

    return median(kernel_reading(call, 100)[0] for _ in range(3))


def _calls(op: Callable[..., Any], sets: Sequence[Sequence[Any]]) -> tuple[Call, Call]:
    """The op on the first set of operands, and on all of them in turns."""
    turns = cycle(sets)
    return lambda: op(*sets[0]), lambda: op(*next(turns))


def both_regimes_on_the_cpu() -> Finding:
    """Report 14 on a CPU: an addition of 1.5 MB, warm, and with operands over more than twice the last cache."""
    import torch

    from accel_micro.devices import full_speed
    from accel_micro.explain.capturing.replaying import Replayer
    from accel_micro.host.processor import last_level_cache_bytes

    elements = 1 << 17
    with opened("cpu") as device:
        cache = last_level_cache_bytes() or 32 << 20
        count = 2 * cache // (12 * elements) + 2
        sets = [tuple(torch.randn(elements) for _ in range(3)) for _ in range(count)]

        def add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
            return torch.add(x, y, out=out)

        warm, cold = _calls(add, sets)
        ours = Sampler(device, warm, 1.0).read("throughput").median_seconds
        ours_cold = Sampler(device, cold, 1.0).read("throughput").median_seconds
        hot_loop = median(naive.synchronised(device, warm, 50) for _ in range(9))
        reference = full_speed.establish(full_speed.host_key(), device.probe_host_speed, device.now)
        replayer = Replayer(device, reference, cache)
        replays = [
            replayer.replay(torch.ops.aten.add.Tensor, ((sets[0][0], sets[0][1]), {})) for _ in range(5)
        ]
        flushed = median(replay.cold_seconds or 0.0 for replay in replays)
    return Finding(
        tried=f"add of {12 * elements / 1e6:.2g} MB; cold: {count} sets of operands in turns, over twice the last "
        f"cache ({cache >> 20} MiB)",
        naive=f"{quantity(hot_loop, 's')} in a loop, and nothing about the cache",
        ours=f"{quantity(ours, 's')} warm, {quantity(ours_cold, 's')} cold",
        does=f"both can be read: cold is {ours_cold / ours:.1f} times warm; replayed by explain behind a flush "
        f"{quantity(flushed, 's')}. The cold call was made for this; the suite has cold cases too",
        good=ours_cold > ours,
        figures={
            "naive_seconds": hot_loop,
            "ours_warm_seconds": ours,
            "ours_cold_seconds": ours_cold,
            "replayed_cold_seconds": flushed,
        },
    )


ATTEMPTS: Final = (
    Attempt(13, "cpu", "CPU", lambda: too_short_a_warm_up("cpu")),
    Attempt(13, "cuda", "CUDA", lambda: too_short_a_warm_up("cuda")),
    Attempt(14, "cpu", "CPU", both_regimes_on_the_cpu),
    Attempt(14, "cuda", "CUDA", both_regimes_on_cuda),
)
