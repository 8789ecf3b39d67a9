"""On a real NVIDIA GPU: what NVML says between blocks, what asking costs, and that each of several cards is itself."""

import statistics
import time
from collections.abc import Iterator

import pytest
import torch

from accel_micro.devices import proof
from accel_micro.devices.base import Device
from accel_micro.devices.cuda import Cuda
from accel_micro.host import cards
from accel_micro.host.nvidia import HOLDING
from accel_micro.measure.sampling import Sampler, opened

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(
        not torch.cuda.is_available() or torch.version.hip is not None, reason="needs an NVIDIA GPU"
    ),
]
two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")


@pytest.fixture
def gpu() -> Iterator[Device]:
    with opened("cuda") as device:
        if device.watch is None:
            pytest.skip(str(device.unwatched))
        yield device


def product(size: int, device: str = "cuda") -> "tuple[torch.Tensor, torch.Tensor]":
    return torch.randn(size, size, device=device), torch.randn(size, size, device=device)


def test_the_state_is_plausible_and_cheap_to_read(gpu: Device) -> None:
    assert gpu.watch is not None
    state = gpu.watch.read()
    assert state.hertz is not None and 1e8 < state.hertz < 1e10
    assert state.celsius is not None and 0 < state.celsius < 120
    assert set(state.reasons) <= set(HOLDING)
    assert all(seconds >= 0 for seconds in state.held_seconds.values())
    times = []
    for _ in range(50):
        start = time.perf_counter()
        gpu.watch.read()
        times.append(time.perf_counter() - start)
    # A block lasts 10 ms; asking before and after it must not cost as much.
    assert statistics.median(times) < 5e-3


def test_asking_waits_for_no_work(gpu: Device) -> None:
    assert gpu.watch is not None
    a, b = product(4096)
    a @ b
    torch.cuda.synchronize()
    done = torch.cuda.Event()
    torch.cuda._sleep(int(1e9))  # about half a second
    done.record()
    gpu.watch.read()
    assert not done.query()
    torch.cuda.synchronize()


def test_a_busy_card_runs_near_the_clock_that_the_probe_reads(gpu: Device) -> None:
    assert gpu.watch is not None
    a, b = product(2048)
    sampler = Sampler(gpu, lambda: a @ b, 0.3)
    process = sampler.read("device", 5)
    facts = sampler.hardware
    assert facts["highest_hertz"] == pytest.approx(process.probe["reference"], rel=0.2)
    assert set(process.throttled) <= set(HOLDING)
    assert facts["power_limit_watts"] > 0


def test_the_card_is_the_one_that_the_host_s_tools_name() -> None:
    for index in range(torch.cuda.device_count()):
        card = cards.find("cuda", index)
        assert card is not None
        if card.fingerprint is None:
            pytest.skip("nothing lists UUIDs here")
        assert Cuda(f"cuda:{index}").card() == card.fingerprint


def test_what_rocm_has_to_prove_holds_here(gpu: Device) -> None:
    assert proof.prove(torch.cuda, gpu.now) == proof.Proof(None, None)


@two_gpus
def test_a_session_keeps_to_its_card() -> None:
    with opened("cuda:1") as device:
        a, b = product(1024, "cuda:1")
        before = torch.cuda.memory_allocated(0)
        assert torch.cuda.current_device() == 1
        processes, unreadable = Sampler(device, lambda: a @ b, 0.3).read_together(
            ("throughput", "dispatch", "device"), 5
        )
        assert not unreadable
        assert torch.cuda.memory_allocated(0) == before
        assert device.peak_memory_bytes(lambda: a @ b) == 4 * 1024**2
    assert torch.cuda.current_device() == 0
    larger = max(processes[clock].median_seconds for clock in ("dispatch", "device"))
    assert processes["throughput"].median_seconds == pytest.approx(larger, rel=0.5)


@two_gpus
def test_work_on_another_card_is_not_waited_for() -> None:
    with opened("cuda:1") as device:
        with torch.cuda.device(0):
            torch.cuda._sleep(int(2e9))
            event = torch.cuda.Event()
            event.record()
        device.synchronize()
        assert not event.query()
    torch.cuda.synchronize(0)
