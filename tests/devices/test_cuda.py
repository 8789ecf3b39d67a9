"""On a real NVIDIA GPU: the clocks against CUPTI, and what cannot be captured. No absolute time is asserted."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from accel_micro import devices
from accel_micro.devices import peaks
from accel_micro.devices.base import Device, QueueTooShort
from accel_micro.devices.cuda_profiler import kernel_seconds, kernels_per_call
from accel_micro.measure.case import measure_case
from accel_micro.measure.inputs import Inputs
from accel_micro.measure.plausibility import impossible
from accel_micro.measure.records import Case, Peak, Work
from accel_micro.measure.rotation import rotating
from accel_micro.measure.sampling import Sampler, opened

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(
        not torch.cuda.is_available() or torch.version.hip is not None, reason="needs an NVIDIA GPU"
    ),
]


@pytest.fixture
def gpu() -> Iterator[Device]:
    with opened("cuda") as device:
        yield device


def product(size: int) -> Any:
    a, b = (torch.randn(size, size, device="cuda") for _ in range(2))
    return lambda: a @ b


def test_twice_the_cycles_take_twice_the_time(gpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    from accel_micro.devices import cuda

    for _ in range(50):
        once = gpu.probe_device_speed()
    monkeypatch.setattr(cuda, "PROBE_CYCLES", 2 * cuda.PROBE_CYCLES)
    assert gpu.probe_device_speed() == pytest.approx(once, rel=0.2)


_FIRST_PROBE = """
from accel_micro.measure.sampling import opened
with opened("cuda") as gpu:
    first = gpu.probe_device_speed()
    later = max(gpu.probe_device_speed() for _ in range(50))
print(first / later)
"""


def test_the_first_probe_of_a_process_does_not_count_the_loading_of_its_kernel() -> None:
    # Measured on an H100 without the short spin ahead: 1112 MHz first, 1964 MHz later.
    done = subprocess.run([sys.executable, "-c", _FIRST_PROBE], capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(1.0, abs=0.2)


def test_the_device_clock_is_that_of_cupti(gpu: Device) -> None:
    call = product(2048)
    queue = gpu.queue(call)
    calls = queue.device_calls(5e-3)
    ratios = sorted(queue.device(calls) / kernel_seconds(call, 20) for _ in range(9))
    assert ratios[4] == pytest.approx(1.0, abs=0.05)
    assert queue.device_flags == ()


def test_a_small_call_is_bound_by_dispatch_and_a_large_one_by_the_device(gpu: Device) -> None:
    for size, bound in ((32, "dispatch"), (4096, "device")):
        processes, unreadable = Sampler(gpu, product(size), 0.3).read_together(
            ("throughput", "dispatch", "device"), 5
        )
        assert not unreadable
        larger = max(("dispatch", "device"), key=lambda clock: processes[clock].median_seconds)
        assert larger == bound


def test_an_optimizer_that_refuses_capture_is_summed_by_the_profiler(gpu: Device) -> None:
    parameter = torch.nn.Parameter(torch.randn(1 << 20, device="cuda"))
    parameter.grad = torch.randn_like(parameter)
    optimizer = torch.optim.Adam([parameter])
    queue = gpu.queue(optimizer.step)
    assert queue.device(queue.device_calls(5e-3)) > 0
    assert queue.device_flags[0][0] == "by profiler"
    assert queue.dispatch(queue.dispatch_calls()) > 0
    (parameter @ parameter).item()  # a failed capture must leave the device usable


def test_a_call_that_synchronises_has_no_dispatch_clock(gpu: Device) -> None:
    x = torch.randn(8, device="cuda")
    with pytest.raises(QueueTooShort, match="synchronises"):
        gpu.queue(lambda: x.sum().item()).dispatch_calls()


def test_a_call_that_launches_nothing_has_no_device_clock(gpu: Device) -> None:
    x = torch.randn(8, 8, device="cuda")
    assert kernels_per_call(lambda: x.t()) == 0
    with pytest.raises(QueueTooShort, match="launches no kernel"):
        gpu.queue(lambda: x.t()).device_calls(5e-3)


def test_a_time_without_synchronisation_is_impossible(gpu: Device) -> None:
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    work = Work(flops=2.0 * 8192**3)
    peak = Peak(flops_per_second=peaks.flops_per_second(gpu, "bfloat16"))
    times = {}
    for waits in (False, True):
        gpu.synchronize()
        start = gpu.now()
        for _ in range(20):
            a @ b
        if waits:
            gpu.synchronize()
        times[waits] = (gpu.now() - start) / 20
    gpu.synchronize()
    assert impossible(times[False], work, peak) is not None
    assert impossible(times[True], work, peak) is None


@pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")  # by the first backward of a process
def test_a_case_reads_all_clocks_and_memory(gpu: Device) -> None:
    def build(t: Inputs) -> Any:
        a, b = t(256, 256), t(256, 256)
        return lambda: a @ b

    case = Case("matmul.mm", "backward", "cuda", "float32", "m=256")
    record = measure_case(
        case, build, clocks=("throughput", "dispatch", "device"), samples=5, budget_seconds=0.3
    )
    assert record.failure is None
    assert set(record.clocks) == {"throughput", "dispatch", "device"}
    assert record.peak_memory_bytes
    assert record.peak_memory_bytes >= 2 * 256 * 256 * 4
    assert record.work is not None
    assert record.work.flops == 4 * 256**3


def test_an_index_beyond_the_last_gpu_is_said() -> None:
    assert "does not exist" in str(devices.get("cuda:99").unavailable())


def test_copies_are_timed_as_the_call_makes_them_and_not_as_a_graph_does(gpu: Device) -> None:
    numbers = torch.randn(1_000_000, device="cuda")
    for call in (numbers.clone, lambda: numbers + 1):
        queue = gpu.queue(call)
        ours = queue.device(queue.device_calls(5e-3)) * (queue.busy_share() or 0.0)
        assert not queue.device_flags
        assert 0.8 < ours / queue._by_profiler(50) < 1.25


def test_cold_inputs_keep_the_device_longer_and_a_graph_holds_whole_rounds(gpu: Device) -> None:
    cache = gpu.last_level_cache()
    assert cache is not None
    numbers = cache.bytes // 64  # two operands and the result of an addition fit many times

    def operands() -> Any:
        a, b = (torch.randn(numbers, device="cuda") for _ in range(2))
        return lambda: a + b

    sets = 2 * cache.bytes // (8 * numbers) + 1
    calls = [operands() for _ in range(sets)]
    hot, cold = gpu.queue(calls[0]), gpu.queue(rotating(calls), sets)
    counts = [queue.device_calls(5e-3) for queue in (hot, cold)]
    assert counts[1] % sets == 0
    assert cold.device_flags == ()
    seconds = [
        min(queue.device(count) for _ in range(9)) for queue, count in zip((hot, cold), counts, strict=True)
    ]
    assert seconds[1] > seconds[0]
