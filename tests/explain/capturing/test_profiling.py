"""Whose kernels are whose: a profiler's events by the calls that launched them."""

from typing import Any

import pytest
import torch
from torch.autograd import DeviceType

from accel_micro.explain.capturing import profiling
from accel_micro.explain.capturing.profiling import (
    Launch,
    Marking,
    device_seconds,
    launches_of,
    undisturbed,
)
from accel_micro.explain.capturing.recording import record
from tests.devices.kineto import Event


def host(name: str, start: int, length: int, number: int, thread: int = 1) -> Event:
    return Event(name, start, length, "cpu_op", DeviceType.CPU, number, thread=thread)


def kernel(
    start: int, length: int, link: int, name: str = "gemm", kind: str = "kernel", number: int | None = None
) -> Event:
    """Launched in the order in which it starts, unless a number is given."""
    return Event(name, start, length, kind, number=start if number is None else number, link=link)


def test_a_launch_is_of_the_range_in_which_its_op_began_on_its_thread() -> None:
    events = [
        host("accel_micro call 0", 0, 100, 1),
        host("aten::mm", 10, 50, 2),
        host("accel_micro call 1", 200, 100, 3),
        host("aten::zeros", 120, 10, 4),  # between two calls
        host("accel_micro call 12", 0, 400, 5, thread=2),  # the backward's thread, meanwhile
        host("aten::mul", 220, 10, 6, thread=2),
        kernel(20_000, 9_000, 6, "mul"),
        kernel(28_000, 2_000, 3, "relu", number=7_500),  # on another stream, half of it beside the one before
        kernel(1_000, 5_000, 2),
        kernel(7_000, 500, 2),
        kernel(8_000, 3_000, 4, "fill"),
        kernel(12_000, 2_000, 3, "relu"),  # linked with the range itself
        kernel(40_000, 1_000, 0),
        kernel(0, 99_000, 1, "accel_micro call 0", "gpu_user_annotation"),
        kernel(0, 99_000, 1, "accel_micro call 0"),  # the same by an older profiler
    ]
    found = launches_of(events)
    assert [(one.name, one.place) for one in found] == [
        ("gemm", 0), ("gemm", 0), ("relu", 1), ("fill", None), ("relu", 1), ("mul", 12), ("gemm", None)
    ]  # fmt: skip
    assert [one.seconds for one in found] == pytest.approx([5e-6, 5e-7, 1.5e-6, 3e-6, 2e-6, 8.5e-6, 1e-6])


def test_plain_steps_that_launch_the_same_have_the_places_of_the_marked_one() -> None:
    marked = [Launch("gemm", 9.0, 0), Launch("fill", 9.0), Launch("gemm", 9.0, 1)]
    plain = [Launch(name, float(n)) for n, name in enumerate(["gemm", "fill", "gemm"] * 2)]
    assert undisturbed(marked, plain) == [
        [Launch("gemm", 0.0, 0), Launch("fill", 1.0), Launch("gemm", 2.0, 1)],
        [Launch("gemm", 3.0, 0), Launch("fill", 4.0), Launch("gemm", 5.0, 1)],
    ]


@pytest.mark.parametrize("names", [["gemm", "fill", "gemm", "gemm"], ["fill", "gemm", "gemm"], []])
def test_plain_steps_that_launch_something_else_tell_nothing(names: list[str]) -> None:
    marked = [Launch("gemm", 9.0, 0), Launch("fill", 9.0), Launch("gemm", 9.0, 1)]
    assert undisturbed(marked, [Launch(name, 1.0) for name in names]) is None


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
    places = [one.place for one in launches_of([*events, *launches])]
    funcs = [None if place is None else str(structure.funcs[place]) for place in places]
    assert funcs == ["aten.addmm.default", "aten.sum.dim_IntList"]
    assert launches_of(events) == []  # no device worked


class Profiled:
    """A profiler's reading of steps: a kernel for each call, which takes nine times as long in a marked step."""

    def __init__(self, structure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.structure = structure
        self.disturbed = iter([1.0, 9.0, 1.0, 1.0])  # one of three steps takes far longer
        self.first_kernel = "0"
        self.plain_steps = 0
        monkeypatch.setattr(profiling, "_events", self.marked)
        monkeypatch.setattr(profiling, "device_events", self.plain)

    def events(self, factor: float, first: str) -> list[Any]:
        found = []
        for place, row in enumerate(self.structure.sequence):
            name = first if place == 0 else str(place)
            found.append(kernel(1_000_000 * place, round(factor * 1000 * (row + 1)), place + 1, name))
        return found

    def marked(self, step: Any, marking: Marking) -> list[Any]:
        with marking:
            step()
        places = range(len(self.structure.sequence))
        marks = [host(f"accel_micro call {place}", 100 * place, 50, place + 1) for place in places]
        return [*marks, *self.events(9.0, "0")]

    def plain(self, repeat: Any, steps: int) -> list[Any]:
        found = []
        for number in range(steps):
            for event in self.events(next(self.disturbed), self.first_kernel):
                event.link = 0
                event.start += 10**9 * number
                event.number = event.start
                found.append(event)
        self.plain_steps += steps
        return found


def test_a_row_has_the_median_over_plain_steps_of_the_mean_of_its_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net, step = network()
    structure = record(step, net)
    profiled = Profiled(structure, monkeypatch)
    expected = [1e-6 * (n + 1) for n in range(len(structure.calls))]
    assert device_seconds(step, structure) == pytest.approx(expected)
    assert profiled.plain_steps == 3


def test_marked_steps_do_where_plain_ones_launch_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    net, step = network()
    structure = record(step, net)
    Profiled(structure, monkeypatch).first_kernel = "another"
    expected = [9e-6 * (n + 1) for n in range(len(structure.calls))]
    assert device_seconds(step, structure) == pytest.approx(expected)


def test_a_step_that_launches_nothing_takes_no_device_time(monkeypatch: pytest.MonkeyPatch) -> None:
    net, step = network()
    structure = record(step, net)
    monkeypatch.setattr(Profiled, "events", lambda self, factor, first: [])
    Profiled(structure, monkeypatch)
    assert device_seconds(step, structure) == [0.0] * len(structure.calls)


def test_a_step_that_calls_other_ops_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    net, step = network()
    other = record(lambda: net(torch.randn(2, 4)), net)
    Profiled(other, monkeypatch)
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
