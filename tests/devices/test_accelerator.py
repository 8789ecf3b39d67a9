"""Devices that torch.accelerator offers, with a torch.accelerator on paper that queues work on a virtual clock."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from accel_micro import devices
from accel_micro.devices import accelerator
from accel_micro.devices.accelerator import Accelerator
from accel_micro.measure.sampling import Sampler
from tests.fake import Clock, OnPaper

HOST, DEVICE, SYNCHRONISE = 10e-6, 40e-6, 2e-3


class Offered:
    """`torch.accelerator` of a backend named `npu` with two devices."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.busy_until = [0.0, 0.0]
        self.allocated, self.most = 100, 100

    def call(self, index: int = 0) -> None:
        self.clock.work(HOST)
        self.busy_until[index] = max(self.clock.seconds, self.busy_until[index]) + DEVICE
        self.most = max(self.most, self.allocated + 64)

    def is_available(self) -> bool:
        return True

    def current_accelerator(self) -> torch.device:
        return SimpleNamespace(type="npu")  # type: ignore[return-value]

    def device_count(self) -> int:
        return 2

    def synchronize(self, index: int) -> None:
        self.clock.seconds = max(self.clock.seconds, self.busy_until[index])
        self.clock.work(SYNCHRONISE)

    def memory_allocated(self, index: int) -> int:
        return self.allocated

    def reset_peak_memory_stats(self, index: int) -> None:
        self.most = self.allocated

    def max_memory_allocated(self, index: int) -> int:
        return self.most

    def get_memory_info(self, index: int) -> tuple[int, int]:
        return 700, 1000


class AcceleratorOnPaper(OnPaper, Accelerator):
    """The real device, on the clock of `Offered`."""

    def __init__(self, name: str, clock: Clock) -> None:
        super().__init__(name)
        self.clock = clock


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Offered:
    offered = Offered(Clock())
    monkeypatch.setattr(torch, "accelerator", offered)
    monkeypatch.setattr(accelerator, "named_backend", lambda: "npu")
    return offered


@pytest.mark.parametrize("index", [0, 1])
def test_throughput_and_latency_of_the_device_that_is_named(offered: Offered, index: int) -> None:
    device = AcceleratorOnPaper(f"npu:{index}", offered.clock)
    processes, _ = Sampler(device, lambda: offered.call(index), 0.3).read_together(
        ("throughput", "latency"), 5
    )
    assert processes["throughput"].median_seconds == pytest.approx(DEVICE, rel=0.01)
    assert processes["latency"].median_seconds == pytest.approx(HOST + DEVICE + SYNCHRONISE, rel=0.01)


class WaitsForAnother(AcceleratorOnPaper):
    def synchronize(self) -> None:
        torch.accelerator.synchronize(1 - self.index)


def test_waiting_for_another_device_changes_the_number(offered: Offered) -> None:
    device = WaitsForAnother("npu:1", offered.clock)
    process = Sampler(device, lambda: offered.call(1), 0.3).read("throughput", 5)
    assert process.median_seconds == pytest.approx(HOST, rel=0.01)


def test_memory_is_that_of_the_allocator_where_it_counts(
    offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = devices.get("npu")
    assert device.peak_memory_bytes(offered.call) == 64
    assert (device.free_memory_bytes(), device.total_memory_bytes()) == (700, 1000)
    assert device.describe() == {"model": "npu", "memory_bytes": 1000}

    def refuse(index: int) -> Any:
        raise RuntimeError("the allocator keeps no statistics")

    monkeypatch.setattr(offered, "memory_allocated", refuse)
    monkeypatch.setattr(offered, "get_memory_info", refuse)
    assert device.peak_memory_bytes(offered.call) is None
    assert device.free_memory_bytes() is None
    monkeypatch.delattr(Offered, "reset_peak_memory_stats")
    monkeypatch.setattr(offered, "memory_allocated", lambda index: 100)
    assert device.peak_memory_bytes(offered.call) is None, "an older torch has no such function"


def test_a_backend_outside_torch_is_known_by_its_own_name(offered: Offered) -> None:
    assert devices.get("npu").unavailable() is None
    assert devices.get("npu:1").unavailable() is None
    assert devices.get("npu:2").unavailable() == "npu:2 does not exist: torch shows 2 of npu"
    assert devices.get("xpu").unavailable() == "this torch build drives npu, not xpu"
    with pytest.raises(devices.UnknownDevice, match="name the device as that backend does"):
        devices.get("privateuseone")


def test_without_a_backend_its_name_is_unknown() -> None:
    assert accelerator.named_backend() is None
    with pytest.raises(devices.UnknownDevice, match="unknown device 'npu'"):
        devices.get("npu")


def test_a_torch_older_than_accelerators_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch, "accelerator")
    assert "no torch.accelerator; it came with torch 2.6" in str(devices.get("xpu").unavailable())
