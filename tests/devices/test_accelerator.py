"""Devices that torch.accelerator offers, with a torch.accelerator on paper that queues work on a virtual clock."""

import json
import os
import re
import subprocess
import sys
from itertools import groupby
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from accel_micro import devices
from accel_micro.devices import accelerator
from accel_micro.devices.accelerator import Accelerator
from accel_micro.host.cards import fingerprint
from accel_micro.measure.sampling import Sampler
from tests.devices import python_backend
from tests.fake import Clock, OnPaper

HOST, DEVICE, SYNCHRONISE = 10e-6, 40e-6, 2e-3


class Offered:
    """`torch.accelerator` of a backend named `npu` with two devices."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.busy_until = [0.0, 0.0]
        self.allocated, self.most = 100, 100
        self.current = 0

    def call(self, index: int = 0) -> None:
        self.clock.log.append(f"call {index}")
        self.clock.work(HOST)
        self.busy_until[index] = max(self.clock.seconds, self.busy_until[index]) + DEVICE
        self.most = max(self.most, self.allocated + 64)

    def is_available(self) -> bool:
        return True

    def current_accelerator(self) -> torch.device:
        return SimpleNamespace(type="npu")  # type: ignore[return-value]

    def device_count(self) -> int:
        return 2

    def current_device_index(self) -> int:
        return self.current

    def set_device_index(self, index: int) -> None:
        self.clock.log.append(f"set {index}")
        self.current = index

    def synchronize(self, index: int) -> None:
        self.clock.log.append(f"synchronise {index}")
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


def test_order_of_execution(offered: Offered) -> None:
    device = AcceleratorOnPaper("npu:1", offered.clock)
    log = offered.clock.log
    with device.session():
        assert log == ["set 1"], "what an op makes without naming a device lies there too"
        sampler = Sampler(device, lambda: offered.call(1), 0.1)
        log.clear()
        sampler.first_call()
        assert log == ["synchronise 1", "call 1", "synchronise 1"]
        sampler.warm_up()
        log.clear()
        sampler.read_together(("throughput",), 2)
    steps = [(what, len(list(run))) for what, run in groupby(log)]
    assert [what for what, _ in steps[-2:]] == ["synchronise 1", "set 0"]
    letters = "".join(what[0] for what, _ in steps[:-1])
    # Each turn: some calls to wake up, then n and 3n calls, each between two synchronisations.
    assert re.search(r"(?:scscsc){2}s$", letters), letters
    waking, n, three_n = [count for what, count in steps if what == "call 1"][-3:]
    assert (waking, three_n) == (max(1, n // 2), 3 * n)


def test_a_torch_that_cannot_tell_the_current_device_is_left_alone(
    offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Offered, "current_device_index")
    with AcceleratorOnPaper("npu:1", offered.clock).session():
        assert offered.current == 0


def test_what_torch_accelerator_does_not_tell_the_backend_s_module_may(
    offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = SimpleNamespace(
        driver_version="1.6.3", max_compute_units=512, architecture=13136561920, uuid="ab-1"
    )
    xpu = SimpleNamespace(
        get_device_name=lambda index: f"Max 1550 {index}",
        get_device_properties=lambda index: properties,
        mem_get_info=lambda index: (60, 64),
        memory_allocated=lambda index: 10,
        reset_peak_memory_stats=lambda index: None,
        max_memory_allocated=lambda index: 17,
    )
    monkeypatch.setattr(torch, "xpu", xpu)
    monkeypatch.setattr(torch.version, "xpu", "20250301", raising=False)
    for name in ("get_memory_info", "memory_allocated", "reset_peak_memory_stats", "max_memory_allocated"):
        monkeypatch.delattr(Offered, name)
    monkeypatch.setattr(Offered, "current_accelerator", lambda self: SimpleNamespace(type="xpu"))
    device = devices.get("xpu:1")
    assert device.unavailable() is None
    assert device.describe() == {
        "model": "Max 1550 1", "driver": "1.6.3", "compute_units": 512, "architecture": 13136561920,
        "xpu": "20250301", "memory_bytes": 64,
    }  # fmt: skip
    assert device.peak_memory_bytes(lambda: None) == 7
    assert device.card() == fingerprint("ab-1")
    del properties.uuid
    assert device.card() == "number 1"


@pytest.mark.skipif(
    not hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend"),
    reason="this torch takes no backends written in Python",
)
@pytest.mark.parametrize("index", [0, 1])
def test_a_backend_that_is_real_to_torch(index: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.devices.python_backend", f"npu:{index}"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["kind"], found["unavailable"], found["unreadable"]) == ("npu", None, {})
    assert found["beyond"] == "npu:7 does not exist: torch shows 2 of npu"
    assert found["clocks"] == ["throughput", "latency"]
    assert found["seconds"]["throughput"] == pytest.approx(python_backend.DEVICE, rel=0.01)
    expected = python_backend.HOST + python_backend.DEVICE + python_backend.SYNCHRONISE
    assert found["seconds"]["latency"] == pytest.approx(expected, rel=0.01)
    assert found["first"] == [f"synchronise {index}", f"call {index}", f"synchronise {index}"]
    assert found["devices"] == [index]
    assert (found["during"], found["after"]) == (index, 0)
    assert found["describe"] == {"model": f"Paper NPU {index}", "memory_bytes": 1000}
    assert (found["card"], found["free"]) == (f"number {index}", 700 + index)
    assert found["peak_memory"] is None, "neither tells it"
