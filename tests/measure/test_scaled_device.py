"""A device clock that is multiplied by what the profiler reads: what is held against it takes the published time."""

import sys

import pytest

from accel_micro.devices import cuda_queue
from accel_micro.measure.process import Process
from accel_micro.measure.sampling import Sampler
from tests.devices.gpus import CudaOnPaper, Gpus, Graph
from tests.fake import Clock, FakeDevice

HOST, KERNEL = 10e-6, 40e-6


def read(
    monkeypatch: pytest.MonkeyPatch,
    *,
    replayed: float,
    kernels: float = KERNEL,
    host: float = HOST,
    device: float = KERNEL,
    slow: float = 1.0,
) -> tuple[dict[str, Process], float | None]:
    """Clocks of a call whose graph takes `replayed` times as long as the call, and its kernels together `kernels`."""
    fast = FakeDevice(Clock())
    Sampler(fast, fast.call, 0.1).read("throughput")  # leaves the full speed behind
    gpus = Gpus(Clock(speed=lambda seconds: 1 / slow))
    gpus.install(monkeypatch)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(Graph, "replay", lambda graph: gpus.launch("replay", replayed * sum(graph.cycles)))
    for name in ("busy_seconds", "kernel_seconds"):
        monkeypatch.setattr(cuda_queue, name, lambda repeat, calls: kernels)
    paper = CudaOnPaper("cuda:0", gpus.clock)
    with paper.session():
        sampler = Sampler(paper, gpus.call(host, device), 0.3)
        processes, unreadable = sampler.read_together(("throughput", "dispatch", "device"), 20)
    assert not unreadable
    return processes, sampler.throughput_over_larger


@pytest.mark.parametrize("replayed", [0.6, 1.0, 1.6])
def test_clocks_agree_where_a_graph_works_in_another_way(
    monkeypatch: pytest.MonkeyPatch, replayed: float
) -> None:
    processes, together = read(monkeypatch, replayed=replayed)
    for clock in ("throughput", "device"):
        assert processes[clock].median_seconds == pytest.approx(KERNEL, rel=0.01)
        assert processes[clock].flags == ()
    assert together == pytest.approx(1.0, rel=0.01)


def test_gaps_between_kernels_are_no_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    processes, together = read(monkeypatch, replayed=1.0, kernels=0.6 * KERNEL)
    assert processes["device"].median_seconds == pytest.approx(0.6 * KERNEL, rel=0.01)
    assert processes["throughput"].flags == ()
    assert together == pytest.approx(1.0, rel=0.01)


def test_no_throughput_is_corrected_below_the_device_clock_that_is_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The host takes 36 µs a call at its slow speed and 20 at its full one, kernels 28 µs, and their replay 14.
    processes, _ = read(monkeypatch, replayed=0.5, kernels=28e-6, device=28e-6, host=20e-6, slow=1.8)
    assert processes["device"].median_seconds == pytest.approx(28e-6, rel=0.01)
    assert processes["throughput"].raw_median_seconds == pytest.approx(36e-6, rel=0.05)
    assert processes["throughput"].median_seconds >= 0.99 * processes["device"].median_seconds
