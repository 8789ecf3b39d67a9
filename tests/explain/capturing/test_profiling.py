"""Whose kernels are whose: a profiler's events by the calls that they happened within."""

from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from accel_micro.explain.capturing import profiling
from accel_micro.explain.capturing.profiling import Marking, device_seconds, seconds_by_mark
from accel_micro.explain.capturing.recording import record


class Kind(Enum):
    """As torch's DeviceType."""

    CPU = 0
    CUDA = 1


def event(name: str, micro: float, kind: Kind = Kind.CPU, attribute: str = "device_time_total") -> Any:
    return SimpleNamespace(name=name, device_type=kind, **{attribute: micro})


def test_the_hosts_marks_have_the_time_and_their_copies_on_the_device_none() -> None:
    events = [
        event("accel_micro call 0", 5.0),
        event("accel_micro call 0", 99.0, Kind.CUDA),  # the profiler copies ranges to the device's timeline
        event("aten::mm", 5.0),
        event("accel_micro call 12", 7.0, attribute="cuda_time_total"),
    ]
    assert seconds_by_mark(events) == {0: pytest.approx(5e-6), 12: pytest.approx(7e-6)}


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
    marked = seconds_by_mark(profiler.events())
    assert sorted(marked) == list(range(len(structure.funcs)))  # those of the backward's thread too
    assert set(marked.values()) == {0.0}  # no device worked


def test_a_row_has_the_median_over_steps_of_the_mean_of_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    net, step = network()
    structure = record(step, net)

    disturbed = iter([1.0, 9.0, 1.0, 1.0])  # one of three steps takes far longer

    def told(step: Any, marking: Marking) -> dict[int, float]:
        with marking:
            step()
        factor = next(disturbed)
        return {
            place: factor * 1e-6 * (number + 1)
            for place, number in enumerate(structure.sequence)
            if number >= 0
        }

    monkeypatch.setattr(profiling, "_by_call", told)
    assert device_seconds(step, structure) == pytest.approx(
        [1e-6 * (n + 1) for n in range(len(structure.calls))]
    )
    other = record(lambda: net(torch.randn(2, 4)), net)
    assert device_seconds(step, other) is None
