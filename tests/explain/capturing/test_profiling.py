"""Whose kernels are whose: a profiler's events by the calls that launched them."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.autograd import DeviceType

from accel_micro.explain.capturing import profiling
from accel_micro.explain.capturing.profiling import Marking, device_seconds, seconds_by_mark
from accel_micro.explain.capturing.recording import record


@dataclass
class Event:
    """As Kineto gives them: of the host with a number of its own, of the device with that of its launch and a link."""

    of: str
    start: int
    length: int
    number: int
    device: Any = DeviceType.CPU
    link: int = 0
    thread: int = 1
    kind: str = "kernel"

    def name(self) -> str:
        return self.of

    def start_ns(self) -> int:
        return self.start

    def duration_ns(self) -> int:
        return self.length

    def correlation_id(self) -> int:
        return self.number

    def linked_correlation_id(self) -> int:
        return self.link

    def start_thread_id(self) -> int:
        return self.thread

    def device_type(self) -> Any:
        return self.device

    def activity_type(self) -> str:
        return self.kind


def kernel(start: int, length: int, link: int, name: str = "gemm", kind: str = "kernel") -> Event:
    return Event(name, start, length, 1000 + start, DeviceType.CUDA, link, 0, kind)


def test_a_kernel_is_of_the_range_in_which_its_op_began_on_its_thread() -> None:
    events = [
        Event("accel_micro call 0", 0, 100, 1),
        Event("aten::mm", 10, 50, 2),
        Event("accel_micro call 1", 200, 100, 3),
        Event("aten::zeros", 120, 10, 4),  # between two calls
        Event("accel_micro call 12", 0, 400, 5, thread=2),  # the backward's thread, meanwhile
        Event("aten::mul", 220, 10, 6, thread=2),
        kernel(1_000, 5_000, 2),
        kernel(7_000, 500, 2),
        kernel(8_000, 3_000, 4),
        kernel(12_000, 2_000, 3),  # linked with the range itself
        kernel(20_000, 9_000, 6),
        kernel(28_000, 2_000, 3),  # on another stream, half of it beside the one before
        kernel(40_000, 1_000, 0),
        kernel(0, 99_000, 1, "accel_micro call 0", "gpu_user_annotation"),
        kernel(0, 99_000, 1, "accel_micro call 0"),  # the same by an older profiler
    ]
    assert seconds_by_mark(events) == pytest.approx({0: 5.5e-6, 1: 3.5e-6, 12: 8.5e-6})


def network() -> tuple[torch.nn.Module, Any]:
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
    x = torch.randn(2, 4)

    def step() -> None:
        net(x).sum().backward()

    step()  # makes the gradients, which later steps add to
    return net, step


def test_calls_are_numbered_in_the_order_of_the_structure() -> None:
    net, step = network()
    structure = record(step, net)
    with torch.profiler.profile() as profiler:
        marking = Marking()
        with marking:
            step()
    assert marking.funcs == structure.funcs
    assert profiler.profiler is not None
    events = list(profiler.profiler.kineto_results.events())
    ranges = [event for event in events if event.name().startswith("accel_micro call ")]
    assert [int(event.name().rpartition(" ")[2]) for event in ranges] == list(range(len(structure.funcs)))
    ops = {event.name(): event.correlation_id() for event in events if event.name().startswith("aten::")}
    # The real events, with a kernel for an op of the forward and one for an op of the backward's thread.
    launches = [kernel(0, 5_000, ops["aten::addmm"]), kernel(6_000, 9_000, ops["aten::sum"])]
    told = {str(structure.funcs[n]): micro for n, micro in seconds_by_mark([*events, *launches]).items()}
    assert told == pytest.approx({"aten.addmm.default": 5e-6, "aten.sum.dim_IntList": 9e-6})
    assert seconds_by_mark(events) == {}  # no device worked


def test_a_row_has_the_median_over_steps_of_the_mean_of_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    net, step = network()
    structure = record(step, net)
    disturbed = iter([1.0, 9.0, 1.0, 1.0])  # one of three steps takes far longer

    def told(step: Any, marking: Marking) -> list[Any]:
        with marking:
            step()
        factor, found = next(disturbed), []
        for place, number in enumerate(structure.sequence):
            found.append(Event(f"accel_micro call {place}", 100 * place, 50, place + 1))
            found.append(kernel(100_000 * place, round(factor * 1000 * (number + 1)), place + 1))
        return found

    monkeypatch.setattr(profiling, "_events", told)
    assert device_seconds(step, structure) == pytest.approx(
        [1e-6 * (n + 1) for n in range(len(structure.calls))]
    )
    other = record(lambda: net(torch.randn(2, 4)), net)
    assert device_seconds(step, other) is None


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", ["alexnet", "lstm"])  # one stream, and several
def test_on_a_gpu_the_calls_together_take_what_plain_steps_do(name: str) -> None:
    from accel_micro import models
    from accel_micro.devices.cuda_profiler import kernel_seconds
    from accel_micro.measure.sampling import opened

    with opened("cuda"):
        model = models.build(name, "cuda", "float32")
        batch = model.batch(64)
        for _ in range(3):
            model.training_step(batch)
        structure = record(lambda: model.training_step(batch), model.module)
        seconds = device_seconds(lambda: model.training_step(batch), structure)
        busy = kernel_seconds(lambda: model.training_step(batch), 3)
    assert seconds is not None
    together = sum(one * call.count for one, call in zip(seconds, structure.calls, strict=True))
    assert together == pytest.approx(busy, rel=0.05)
