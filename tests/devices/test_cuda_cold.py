"""Cold inputs on GPUs of paper: graphs hold whole rounds of input sets, or the profiler reads what they cannot hold."""

import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from accel_micro.devices import cuda_queue
from accel_micro.devices.base import QueueTooShort
from accel_micro.devices.cuda import Cuda
from accel_micro.devices.cuda_queue import CudaQueue
from accel_micro.host.caches import Cache
from accel_micro.measure.rotation import rotating
from accel_micro.measure.sampling import Sampler
from tests.devices.gpus import HERTZ, CudaOnPaper, Gpus
from tests.fake import Clock

HOST = 4e-6
MIB = 1 << 20


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Gpus:
    gpus = Gpus(Clock())
    gpus.install(monkeypatch)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    return gpus


@pytest.fixture
def device(gpus: Gpus) -> Iterator[CudaOnPaper]:
    device = CudaOnPaper("cuda:0", gpus.clock)
    with device.session():
        yield device


def sets_of(gpus: Gpus, count: int) -> list[Callable[[], None]]:
    """Calls that tell themselves apart by how long they keep the card busy: 10, 11, 12 … microseconds."""
    return [gpus.call(HOST, (10 + number) * 1e-6) for number in range(count)]


def queue_of(gpus: Gpus, device: CudaOnPaper, sets: int) -> CudaQueue:
    queue = device.queue(rotating(sets_of(gpus, sets)), sets)
    assert isinstance(queue, CudaQueue)
    return queue


@pytest.mark.parametrize("sets", [2, 7, 13, 60, 499])
def test_a_graph_holds_whole_rounds(gpus: Gpus, device: CudaOnPaper, sets: int) -> None:
    queue = queue_of(gpus, device, sets)
    calls = queue.device_calls(10e-3)
    captured = [round(cycles / HERTZ * 1e6) - 10 for cycles in queue._graph.cycles]
    assert len(captured) % sets == 0
    assert len(captured) >= min(sets, cuda_queue._GRAPH_MOST_CALLS)
    first = captured[0]
    assert captured == [(first + number) % sets for number in range(len(captured))], "each the next in turn"
    assert calls % len(captured) == 0
    mean = (10 + (sets - 1) / 2) * 1e-6
    assert queue.device(calls) == pytest.approx(mean, rel=0.01)
    assert queue.device_flags == ()


def test_without_a_rotation_nothing_changes(gpus: Gpus, device: CudaOnPaper) -> None:
    queue = device.queue(gpus.call(HOST, 10e-6))
    assert isinstance(queue, CudaQueue)
    queue.device_calls(10e-3)
    assert len(queue._graph.cycles) == cuda_queue._GRAPH_MOST_CALLS


def by_profiler(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let a profiler of paper read 7 µs, and note how many calls it is asked for."""
    asked: list[int] = []

    def kernel_seconds(call: Callable[[], Any], calls: int) -> float:
        asked.append(calls)
        for _ in range(calls):
            call()
        return 7e-6

    monkeypatch.setattr(cuda_queue, "kernel_seconds", kernel_seconds)
    monkeypatch.setattr(CudaQueue, "_by_profiler", lambda queue, calls: kernel_seconds(queue._call, calls))
    return asked


def test_a_round_that_no_graph_holds_is_read_by_the_profiler(
    gpus: Gpus, device: CudaOnPaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = by_profiler(monkeypatch)
    queue = queue_of(gpus, device, 501)
    assert queue.device(queue.device_calls(10e-3)) == 7e-6
    assert queue.device_flags == (("by profiler", "a graph does not hold a round of 501 input sets"),)
    assert queue._graph is None
    assert asked


def test_a_graph_that_does_not_fit_the_launch_queue_is_read_by_the_profiler(
    gpus: Gpus, device: CudaOnPaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = by_profiler(monkeypatch)
    queue = queue_of(gpus, device, 40)
    behind_spin = queue._behind_spin

    def full(enqueue: Callable[[int], None], count: int) -> tuple[float, float]:
        if enqueue == queue._replay:
            raise QueueTooShort("full")
        return behind_spin(enqueue, count)

    monkeypatch.setattr(queue, "_behind_spin", full)
    assert queue.device(queue.device_calls(10e-3)) == 7e-6
    assert queue.device_flags == (("by profiler", "a graph of 40 calls does not fit the launch queue"),)
    assert asked


def test_all_clocks_of_a_rotation(gpus: Gpus, device: CudaOnPaper) -> None:
    first, *others = sets_of(gpus, 9)
    sampler = Sampler(device, first, 0.3)
    sampler.first_call()
    sampler.rotate(others)
    processes, unreadable = sampler.read_together(("throughput", "dispatch", "device"), 5)
    assert not unreadable
    assert processes["device"].calls_per_block % 9 == processes["throughput"].calls_per_block % 9 == 0
    assert processes["device"].median_seconds == pytest.approx(14e-6, rel=0.01)
    assert processes["throughput"].median_seconds == pytest.approx(14e-6, rel=0.01)
    assert processes["dispatch"].median_seconds == pytest.approx(HOST, rel=0.05)


# The cache


def told(monkeypatch: pytest.MonkeyPatch, hip: str | None = None, **facts: int) -> Cache | None:
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(**facts))
    return Cuda("cuda").last_level_cache()


def test_the_l2_is_what_torch_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = told(monkeypatch, L2_cache_size=50 * MIB)
    assert cache == Cache(50 * MIB, "L2_cache_size of torch.cuda.get_device_properties")


def test_a_torch_that_does_not_tell_is_taken_to_have_a_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for facts in ({}, {"L2_cache_size": 0}):
        cache = told(monkeypatch, **facts)
        assert cache is not None
        assert (cache.bytes, cache.assumed) == (128 * MIB, True)


def test_rocm_tells_of_the_first_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = told(monkeypatch, hip="7.0", L2_cache_size=4 * MIB)
    assert cache is not None
    assert (cache.bytes, cache.assumed) == (256 * MIB, True)
