"""The real torch_xla, on the CPU or a TPU: wrong ways are rejected, the right one counts. No time is asserted."""

import gc
import importlib.util
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
import torch

from accel_micro.devices.base import Device
from accel_micro.devices.xla import Xla
from accel_micro.measure import blocks
from accel_micro.measure.blocks import Blocks, Rejected
from accel_micro.measure.case import measure_case
from accel_micro.measure.inputs import Inputs
from accel_micro.measure.records import Case, Record
from accel_micro.measure.sampling import Sampler, opened

if importlib.util.find_spec("torch_xla") is None:
    pytest.skip("torch_xla is not installed", allow_module_level=True)

pytestmark = [pytest.mark.xla, pytest.mark.filterwarnings("default")]


@pytest.fixture
def device() -> Iterator[Device]:
    with opened("xla") as device:
        yield device
    gc.collect()


def product(size: int = 512) -> Callable[[], torch.Tensor]:
    a, b = (torch.randn(size, size).to("xla") for _ in range(2))
    return lambda: a @ b


def executions() -> int:
    import torch_xla.debug.metrics as met

    return int(met.counter_value("ExecuteComputation") or 0)


class OnlyTraced(Xla):
    def mark_step(self, result: Any) -> None:
        del result

    def synchronize(self) -> None:
        pass


class NotWaitedFor(Xla):
    def synchronize(self) -> None:
        import torch_xla

        torch_xla.sync()


def drop_before_the_mark(device: Device, call: Callable[[], Any], calls: int) -> None:
    for _ in range(calls):
        call()
        device.mark_step(None)


def rejected(device: Device, call: Callable[[], Any], calls: int = 30) -> str:
    """Why thirty calls are rejected, after a program that is known."""
    right = Blocks(Xla("xla"), call)
    right.first_call()
    with pytest.raises(Rejected) as reason:
        Blocks(device, call).seconds_of(calls)
    right.device.synchronize()
    return str(reason.value)


def test_only_traced_is_rejected(device: Device) -> None:
    assert rejected(OnlyTraced("xla"), product()).startswith("0 of 30 calls were executed")


def test_results_dropped_before_the_mark_are_rejected(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "repeat", drop_before_the_mark)
    assert rejected(device, product()).startswith("0 of 30 calls were executed")


def test_marked_and_not_waited_for_is_rejected(device: Device) -> None:
    assert "of 30 calls had been executed when the time was read" in rejected(NotWaitedFor("xla"), product())


def test_shapes_that_change_are_rejected(device: Device) -> None:
    a, rows = torch.randn(512, 512).to("xla"), count(2)
    reason = rejected(device, lambda: a[: next(rows)] @ a, calls=3)
    assert reason.startswith("3 programs were compiled in 3 calls")


def test_an_op_that_runs_on_the_cpu_is_named(device: Device) -> None:
    numbers = torch.arange(64).to("xla")
    assert rejected(device, lambda: torch.bincount(numbers), 3).startswith("aten::bincount ran on the CPU")


def test_ours_executes_each_call_and_grows_in_a_straight_line(device: Device) -> None:
    timed = Blocks(device, product())
    timed.first_call()
    least: dict[int, float] = {}
    for calls in (10, 30, 90) * 5:  # the least of five, since others have the cores too
        before = executions()
        seconds = timed.seconds_of(calls)
        assert executions() - before == calls
        least[calls] = min(seconds, least.get(calls, seconds))
    lower, upper = (least[30] - least[10]) / 20, (least[90] - least[30]) / 60
    assert 0.5 < upper / lower < 2.0


def test_steps_of_an_optimizer_as_users_make_them(device: Device) -> None:
    import torch_xla.core.xla_model as xm

    parameters = [torch.nn.Parameter(torch.randn(64).to("xla")) for _ in range(3)]
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer = torch.optim.Adam(parameters)
    optimizer.step()
    xm.optimizer_step(optimizer, barrier=True)
    device.synchronize()  # a program is counted by the thread that starts it
    before = executions()
    for _ in range(50):
        xm.optimizer_step(optimizer, barrier=True)
    device.synchronize()
    assert executions() - before == 50, "a step is a program"
    # Ours marks the step itself; that one is already computed by then costs a mark of nothing.
    for step in (optimizer.step, lambda: xm.optimizer_step(optimizer, barrier=True)):
        timed = Blocks(device, step)
        timed.first_call()
        timed.seconds_of(3)
        before = executions()
        timed.seconds_of(10)
        assert executions() - before == 10


def test_dispatch_is_tracing_and_leaves_nothing_to_compute(device: Device) -> None:
    sampler = Sampler(device, product(64), 0.2)
    sampler.warm_up()
    before = executions()
    queue = device.queue(sampler.call)
    assert queue.dispatch(queue.dispatch_calls()) > 0
    assert executions() == before


def measured(build: Callable[[Inputs], Any], direction: str = "forward", dtype: str = "float32") -> Record:
    case = Case("family.op", direction, "xla", dtype, "n=64")
    return measure_case(
        case, build, clocks=("throughput", "latency", "dispatch"), samples=3, budget_seconds=0.2
    )


def layer(t: Inputs) -> Callable[[], torch.Tensor]:
    x, weight = t(64, 256), t(256)
    return lambda: torch.nn.functional.layer_norm(x, (256,), weight)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_case_from_definition_to_record(direction: str, dtype: str) -> None:
    record = measured(layer, direction, dtype)
    assert record.failure is None
    assert record.skipped is None
    assert set(record.clocks) == {"throughput", "latency", "dispatch"}
    assert record.check is not None
    assert 0 < record.check.error < record.check.tolerance
    assert record.work is not None
    assert record.work.bytes > 2 * 64 * 256 * (4 if dtype == "float32" else 2)
    process = record.clocks["throughput"]
    assert process.compile_seconds is not None
    assert process.first_call_seconds is not None
    assert 0 < process.compile_seconds < process.first_call_seconds


def test_a_wrong_result_has_no_time() -> None:
    record = measured(lambda t: lambda: layer(t)() * (1.0 if t.reference else 1.001))
    assert record.failure is not None
    assert record.failure.kind == "wrong result"


def test_a_case_that_falls_back_fails_and_names_the_op() -> None:
    def build(t: Inputs) -> Callable[[], torch.Tensor]:
        x = t.integers(32, 256)
        return lambda: torch.bincount(x, minlength=32)

    record = measured(build)
    assert record.failure is not None
    assert record.failure.kind == "rejected"
    assert record.failure.detail.startswith("aten::bincount ran on the CPU")
