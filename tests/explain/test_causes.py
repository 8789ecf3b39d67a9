"""Causes: each with facts with which it is told, and without which it is not."""

from dataclasses import replace
from typing import Any

import pytest

from accel_micro.explain.attribution import explain
from accel_micro.explain.capture import Capture, Fed
from accel_micro.explain.causes import Cause, causes
from accel_micro.explain.confirming import confirm
from tests.explain.worlds import LAYERS, capture, row

STEP = sum(layer[4] for layer in LAYERS) + 6e-4


def named(baseline: Capture, contender: Capture) -> dict[str, Cause]:
    return {cause.name: cause for cause in causes(explain(baseline, contender, interleaved=True))}


def rows(**changes: dict[int, Any]) -> list[Any]:
    """The rows with some facts of some changed: `rows(backend={0: "Mkldnn"})`."""
    facts: dict[int, dict[str, Any]] = {n: {} for n in range(len(LAYERS))}
    for name, values in changes.items():
        for n, value in values.items():
            facts[n][name] = value
    return [row(n, **facts[n]) for n in facts]


def test_nothing_is_told_of_sides_that_are_alike() -> None:
    assert named(capture(noise=0.01), capture(noise=0.01, seed=9)) == {}


def test_another_backend_of_convolutions() -> None:
    one = capture(rows=rows(backend={0: "Slow2d", 4: "Slow2d"}))
    other = capture(slower={4: 3.0}, rows=rows(backend={0: "NnpackSpatial", 4: "NnpackSpatial"}))
    cause = named(one, other)["regime switch"]
    assert cause.side == "contender" and str(cause.setting) == "cpu batch=4 nnpack=off"
    assert "2 calls of convolution run as Slow2d in the baseline and as NnpackSpatial" in cause.text
    # A module that is called twice makes two calls.
    twice = [
        replace(side, rows=(replace(side.rows[0], count=2), *side.rows[1:]), sequence=(0, *side.sequence))
        for side in (one, other)
    ]
    assert "3 calls of convolution run as Slow2d" in named(*twice)["regime switch"].text
    # The same switch where convolutions are not what differs is no cause.
    assert "regime switch" not in named(one, replace(other, readings=capture(slower={2: 9.0}).readings))


@pytest.mark.parametrize(("backend", "tells"), [("Mkldnn", False), ("Slow2d", True)])
def test_devices_of_two_kinds_have_other_backends_anyway(backend: str, tells: bool) -> None:
    one = capture(slower={0: 9.0}, rows=rows(backend={0: backend}))
    other = capture(rows=rows(backend={0: "Cudnn"}), device="cuda", setting="cuda batch=4")
    found = named(one, other)
    assert ("regime switch" in found) is tells
    if tells:
        assert str(found["regime switch"].setting) == "cpu batch=4 onednn=on"


def test_denormals_where_they_cost_something() -> None:
    one = capture(slower={2: 6.0}, rows=rows(subnormal={2: 0.9}))
    found = named(one, capture())
    assert str(found["denormal numbers"].setting) == "cpu batch=4 flush_denormal=on"
    assert found["denormal numbers"].seconds == pytest.approx(5e-3 / 4)
    assert "denormal numbers" not in named(capture(slower={0: 6.0}, rows=rows(subnormal={2: 0.9})), capture())


@pytest.mark.parametrize(("number", "told"), [(3, False), (4, True)])
def test_denormals_of_the_lesser_part_of_a_group_are_not_its_cause(number: int, told: bool) -> None:
    one_group = {"op": {4: LAYERS[3][0]}}  # rows 3 and 4, of 2 and 8 ms
    one = capture(slower={3: 6.0, 4: 6.0}, rows=rows(**one_group, subnormal={number: 0.9}))
    assert ("denormal numbers" in named(one, capture(rows=rows(**one_group)))) is told


def test_an_optimizer_of_many_calls() -> None:
    made = [*capture().rows[:-1], row(5, count=900, op="aten.addcdiv_.default")]
    one = capture(slower={5: 15.0}, rows=made)
    assert str(named(one, capture())["optimizer one by one"].setting) == "cpu batch=4 foreach=on"
    few = [*made[:-1], row(5, count=900, op="aten._foreach_addcdiv_.Scalar")]
    assert "optimizer one by one" not in named(capture(slower={5: 15.0}, rows=few), capture())


def test_python_in_a_module() -> None:
    found = named(capture(gaps={1: 9e-3}), capture())
    assert "Python in ReLU act" in found["Python between the ops"].text


def test_a_launch_bound_side() -> None:
    gpu = [row(n, dispatch_seconds=1e-3, device_seconds=1e-4) for n in range(len(LAYERS))]
    reading = {"ops": (1e-3,) * 6, "steps": (6.6e-3,) * 3, "host_seconds": 6.5e-3, "device_seconds": 6e-4}
    bound = capture(rows=gpu, reading=reading, device="cuda", setting="cuda batch=4")
    cause = named(capture(), bound)["launch-bound"]
    assert cause.side == "contender" and "busy for 9 %" in cause.text and "6 calls" in cause.text
    busy = {**reading, "device_seconds": 6e-3}
    assert "launch-bound" not in named(capture(), replace(bound, readings=capture(reading=busy).readings))


def test_a_number_read_back_each_step() -> None:
    reading = {"host_seconds": 1e-2, "device_seconds": 1e-3}
    asks = rows(op={1: "aten._local_scalar_dense.default"})
    assert "synchronisation" in named(capture(rows=asks, reading=reading), capture())
    assert "synchronisation" not in named(capture(reading=reading), capture())
    counts = rows(op={1: "aten._local_scalar_dense.default"}, crossing={1: "on host"})
    assert "synchronisation" not in named(capture(rows=counts, reading=reading), capture())
    taken = rows(crossing={1: "to host"})
    assert "synchronisation" in named(capture(rows=taken, reading=reading), capture())


def test_on_a_cpu_nobody_waits_for_a_number() -> None:
    asks = rows(op={1: "aten._local_scalar_dense.default"}, count={1: 3})
    cause = named(capture(), capture(rows=asks))["synchronisation"]
    assert cause.side == "contender" and cause.setting is None and cause.seconds is None
    assert (
        "3 times (.item() and the like): on a CPU nobody waits for it, and the calls take 4e+02 µs"
        in cause.text
    )
    assert "synchronisation" not in named(
        capture(rows=asks), capture(rows=asks)
    )  # no difference between them
    bare = capture(rows=asks, reading={"ops": (), "ops_errors": (), "gaps": ()})
    assert "nobody waits for it, while" in named(bare, capture())["synchronisation"].text
    steps = rows(op={5: "aten._local_scalar_dense.default"})  # Adam reads its count of steps so
    assert "synchronisation" not in named(capture(rows=steps), capture())


def test_more_threads_than_cores() -> None:
    found = named(capture(modes={"threads": 8}), capture())
    assert str(found["too many threads"].setting) == "cpu batch=4 threads=2"
    busy = named(capture(reading={"waiting": 0.5}), capture())
    assert "other programs" in busy and "too many threads" not in busy


def test_a_slow_loader() -> None:
    slow = Fed(loader_seconds=3 * STEP, transfer_seconds=0.0, step_seconds=3 * STEP, prefetches=True)
    fast = replace(slow, loader_seconds=0.1 * STEP, step_seconds=STEP)
    found = named(capture(reading={"fed": slow}), capture(reading={"fed": fast}))
    assert found["loader-bound"].side == "baseline"


def test_a_wrong_op_and_one_that_makes_nan_are_named_first() -> None:
    wrong = capture(rows=rows(error={3: 0.2}, tolerance={3: 1e-6}, check={3: "relative error 0.2"}))
    found = causes(explain(wrong, capture()))
    assert found[0].name == "wrong result" and "backward mm of fc is wrong" in found[0].text
    assert "NaN" in causes(explain(capture(), capture(rows=rows(non_finite={2: True}))))[0].text


def test_a_kernel_far_from_what_the_machine_reaches() -> None:
    found = named(capture(slower={0: 20.0}, flops_per_second=1e12), capture(flops_per_second=5e9))
    assert found["slow kernel"].side == "baseline" and str(found["slow kernel"].setting).endswith(
        "channels_last=on"
    )


def test_each_slow_kernel_has_figures_of_its_own() -> None:
    """A kernel that is hardly slower, beside the one that is, was told to reach what that one does."""
    peak = {"flops_per_second": 1e12}
    text = named(capture(slower={0: 200.0, 1: 3.0, 4: 4.0}, **peak), capture(**peak))["slow kernel"].text
    first, rest = text.split("; also ")
    assert first.startswith("forward convolution: ") and first.count("%") == 2
    assert rest.startswith("backward convolution_backward (") and rest.count("%") == 2


def test_ops_as_fast_as_memory() -> None:
    assert "memory-bound" in named(capture(slower={2: 4.0}, rows=rows(bytes={2: 7e7})), capture())


def test_a_long_first_step() -> None:
    assert "first step" in named(capture(reading={"first_step_seconds": 2.0}), capture())
    assert "first step" not in named(capture(reading={"first_step_seconds": 0.02}), capture())


@pytest.mark.parametrize(("left", "confirmed"), [(1.0, True), (5.8, False), (6.0, False)])
def test_an_ablation_confirms_by_moving_enough(left: float, confirmed: bool) -> None:
    slow = capture(slower={2: 6.0}, rows=rows(subnormal={2: 0.9}), noise=0.001)
    cause = named(slow, capture())["denormal numbers"]
    after = capture(slower={2: left}, noise=0.001, seed=7)
    found = confirm(cause, slow, after, explain(slow, capture()).difference)
    assert found.confirmed is confirmed
    assert found.text.startswith("confirmed" if confirmed else "not confirmed")
