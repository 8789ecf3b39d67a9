"""XLA on paper: the right way reads the truth; without any one of its steps the number changes, and is rejected."""

import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable
from contextlib import nullcontext
from itertools import count
from typing import Any

import pytest
import torch

from accel_micro import devices
from accel_micro.devices.base import Counted, Device
from accel_micro.devices.xla import MISSING, Xla
from accel_micro.measure import blocks
from accel_micro.measure.blocks import Blocks, Implausible, Rejected
from accel_micro.measure.sampling import Sampler
from tests.devices.lazy_xla import COMPILE, COMPUTE, MARK, TRACE, WAIT, Backend, XlaOnPaper
from tests.fake import Clock

BUDGET = 0.3


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Backend:
    backend = Backend(Clock())
    backend.install(monkeypatch)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: torch.__version__)
    return backend


def throughput(device: Device, call: Callable[[], Any]) -> float:
    return Sampler(device, call, BUDGET).read("throughput", 5).median_seconds


class NeverMarked(XlaOnPaper):
    def mark_step(self, result: Any) -> None:
        del result

    def synchronize(self) -> None:
        pass


class NeverWaitedFor(XlaOnPaper):
    def synchronize(self) -> None:
        import torch_xla

        torch_xla.sync()


class LastStepOnlyWaitedFor(XlaOnPaper):
    """`sync(wait=True)` alone: it has nothing left to start, so it waits for nothing."""

    def synchronize(self) -> None:
        import torch_xla

        torch_xla.sync(wait=True)


class NothingStarted(XlaOnPaper):
    """`wait_device_ops` alone waits, and starts nothing."""

    def mark_step(self, result: Any) -> None:
        del result

    def synchronize(self) -> None:
        import torch_xla.core.xla_model as xm

        xm.wait_device_ops()


def drop_before_the_mark(device: Device, call: Callable[[], Any], calls: int) -> None:
    for _ in range(calls):
        call()
        device.mark_step(None)


def test_the_right_way_reads_what_a_call_really_takes(backend: Backend) -> None:
    device = XlaOnPaper(backend.clock)
    assert throughput(device, backend.op) == pytest.approx(COMPUTE, rel=0.01)
    latency = Sampler(device, backend.op, BUDGET).read("latency", 5).median_seconds
    # The mark that belongs to the synchronisation is made while the device computes.
    assert latency == pytest.approx(TRACE + MARK + COMPUTE + WAIT, rel=0.01)
    dispatch = Sampler(device, backend.op, BUDGET).read("dispatch", 5).median_seconds
    assert dispatch == pytest.approx(TRACE, rel=0.01)


WRONG = {
    "only traced": (NeverMarked, None),
    "dropped before the mark": (XlaOnPaper, drop_before_the_mark),
    "marked and not waited for": (NeverWaitedFor, None),
    "only the last step waited for": (LastStepOnlyWaitedFor, None),
    "waited for and never started": (NothingStarted, None),
}


@pytest.mark.parametrize("way", WRONG)
def test_a_missing_step_changes_the_number_and_the_counters_reject_it(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    kind, repeat = WRONG[way]
    if repeat is not None:
        monkeypatch.setattr(blocks, "repeat", repeat)
    with pytest.raises(Rejected, match=r"calls (were|had been) executed"):
        throughput(kind(backend.clock), backend.op)
    monkeypatch.setattr(kind, "block", lambda self: nullcontext(Counted()))
    try:
        uncounted = throughput(kind(backend.clock), backend.op)
    except Implausible:
        return
    assert uncounted < 0.5 * COMPUTE


def test_shapes_that_change_are_rejected_since_they_compile(backend: Backend) -> None:
    numbers = count()
    with pytest.raises(Rejected, match=r"\d+ programs were compiled in \d+ calls, which took .* shapes or"):
        throughput(XlaOnPaper(backend.clock), lambda: backend.op(f"mm {next(numbers)}"))


def test_an_op_that_runs_on_the_cpu_is_named(backend: Backend) -> None:
    with pytest.raises(Rejected, match="aten::bincount ran on the CPU, since xla has no kernel"):
        throughput(XlaOnPaper(backend.clock), backend.on_host)


def test_executions_equal_calls(backend: Backend) -> None:
    device = XlaOnPaper(backend.clock)
    sampler = Blocks(device, backend.op)
    sampler.first_call()
    for calls in (10, 30, 90):
        before = backend.counters["ExecuteComputation"]
        sampler.seconds_of(calls)
        assert backend.counters["ExecuteComputation"] - before == calls


def test_compilation_is_part_of_the_first_call_and_told_apart(backend: Backend) -> None:
    backend.op("an input that is still to be computed")
    process = Sampler(XlaOnPaper(backend.clock), backend.op, BUDGET).read("throughput", 5)
    assert process.compile_seconds == pytest.approx(COMPILE)
    assert process.first_call_seconds is not None
    assert COMPILE < process.first_call_seconds < 1.1 * COMPILE


def test_a_second_program_in_the_second_step_costs_a_block_and_no_more(backend: Backend) -> None:
    steps = count()
    # As Adam does, whose first step makes its averages.
    process = throughput(
        XlaOnPaper(backend.clock), lambda: backend.op("first" if next(steps) == 0 else "later")
    )
    assert process == pytest.approx(COMPUTE, rel=0.01)


def test_a_call_that_changes_its_inputs_is_traced_one_by_one(backend: Backend) -> None:
    state: list[Any] = []

    def step() -> None:
        state[:] = [backend.op("step")]

    assert throughput(XlaOnPaper(backend.clock), step) == pytest.approx(COMPUTE, rel=0.01)
    compiled = backend.counters["UncachedCompile"]
    dispatch = Sampler(XlaOnPaper(backend.clock), step, BUDGET).read("dispatch", 5)
    assert dispatch.median_seconds == pytest.approx(TRACE, rel=0.01)
    assert backend.counters["UncachedCompile"] == compiled, "no program of several steps was made"


def test_queued_results_are_limited_by_the_memory_that_is_free(backend: Backend) -> None:
    device = XlaOnPaper(backend.clock)
    large = [backend.op(elements=(1 << 20)), {"more": backend.op(elements=(1 << 20))}]
    assert device.most_calls(large) == (1 << 30) // 10 // (8 << 20)
    assert device.most_calls(None) is None
    assert device.most_calls(backend.op(elements=1 << 40)) == 1
    alive = blocks.Blocks(device, lambda: backend.op(elements=4 << 20))
    alive.first_call()
    assert alive.most_calls == 6


def test_memory_is_told_where_the_device_tells_it(backend: Backend) -> None:
    backend.hardware = "TPU"
    device = Xla("xla")
    assert (device.free_memory_bytes(), device.total_memory_bytes()) == (None, None)
    assert device.peak_memory_bytes(backend.op) is None
    backend.memory = {"bytes_used": 300, "bytes_limit": 1000, "peak_bytes_used": 500}
    assert (device.free_memory_bytes(), device.total_memory_bytes()) == (700, 1000)
    assert device.peak_memory_bytes(backend.op) is None, "this call did not raise the peak"

    def larger() -> Any:
        backend.memory = {"bytes_used": 400, "bytes_limit": 1000, "peak_bytes_used": 650}
        return backend.op()

    assert device.peak_memory_bytes(larger) == 350


def test_facts_tell_a_tpu_from_the_cpu(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    device = devices.get("xla")
    assert device.unavailable() is None
    assert device.on_cpu
    assert device.has_float64
    assert str(device.describe()["model"]).startswith("PJRT CPU on ")
    assert not device.precision()["bfloat16_products"]
    backend.hardware = "TPU"
    monkeypatch.setenv("TPU_ACCELERATOR_TYPE", "v5litepod-1")
    assert not device.on_cpu
    assert not device.has_float64
    assert device.describe()["model"] == "v5litepod-1"
    assert device.precision()["bfloat16_products"]


def test_why_there_is_no_device(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "without an index" in str(devices.get("xla:1").unavailable())

    def broken() -> None:
        raise RuntimeError("TPU is held by process 7\nand a stack of frames")

    monkeypatch.setattr(sys.modules["torch_xla"], "device", broken)
    reason = str(devices.get("xla").unavailable())
    assert reason.endswith("TPU is held by process 7")
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1.2.3")
    reason = str(devices.get("xla").unavailable())
    assert reason == f"torch_xla 1.2.3 needs torch of the same version, and this is {torch.__version__}"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert devices.get("xla").unavailable() == MISSING
    assert "torch_xla is not installed" in MISSING


def test_older_versions_mark_steps_by_another_name(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys.modules["torch_xla"], "sync")
    assert throughput(XlaOnPaper(backend.clock), backend.op) == pytest.approx(COMPUTE, rel=0.01)
