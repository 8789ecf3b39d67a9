"""Two clocks: host and device, played; and contributions where they overlap."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.explain.attribution import explain
from accel_micro.explain.clocks import Timeline
from tests.explain.worlds import LAYERS, capture, row


def played(host: list[float], device: list[float], waits: tuple[int, ...] = (), tail: float = 0.0) -> float:
    """The rule itself, call by call."""
    now = busy = 0.0
    ends = []
    for _ in range(3):
        for number, (h, d) in enumerate(zip(host, device, strict=True)):
            now += h
            if d:
                busy = max(now, busy) + d
            if number in waits:
                now = max(now, busy)
        now += tail
        ends.append(max(now, busy))
    return ends[2] - ends[1]


SECONDS = st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.7, 2.0])), min_size=1, max_size=12)


@given(SECONDS, st.sets(st.integers(0, 11)), st.floats(0, 1))
def test_reckoned_at_once_as_call_by_call(
    calls: list[tuple[float, float]], waits: set[int], tail: float
) -> None:
    host, device = ([call[side] for call in calls] for side in (0, 1))
    kept = tuple(sorted(n for n in waits if n < len(calls)))
    found = Timeline(np.array(host), np.array(device), kept, tail).seconds()
    assert found == pytest.approx(played(host, device, kept, tail), abs=1e-9)


def test_the_larger_clock_decides() -> None:
    host = np.full(10, 1.0)
    assert Timeline(host, np.full(10, 0.1)).seconds() == pytest.approx(10.0)
    assert Timeline(host, np.full(10, 3.0)).seconds() == pytest.approx(30.0)
    assert Timeline(host, np.full(10, 3.0), waits=(9,)).seconds() == pytest.approx(31.0)


def on_gpu(dispatch: float, device: float, **changes: Any) -> Any:
    rows = [row(n, dispatch_seconds=dispatch, device_seconds=device) for n in range(len(LAYERS))]
    step = len(LAYERS) * max(dispatch + 0.1e-3, device)
    reading = {"steps": (step, step, step), "ops": (dispatch,) * 6, "host_seconds": 6 * (dispatch + 0.1e-3)}
    reading["device_seconds"] = 6 * device
    return capture(rows=rows, reading=reading, device="cuda", setting="cuda batch=4", **changes)


def test_shapley_contributions_add_up_where_host_and_device_overlap() -> None:
    slow, fast = on_gpu(0.2e-3, 2e-3), on_gpu(0.2e-3, 0.05e-3)
    e = explain(slow, fast)
    assert math.fsum(c.seconds.value for c in e.contributions) == pytest.approx(e.difference)
    assert e.speedup.value == pytest.approx(2.0 / 0.3)
    assert e.closures[0] is not None and e.closures[0].in_place.value == pytest.approx(1.0)
    ops = sum(c.seconds.value for c in e.contributions if c.group.kind == "op")
    assert ops == pytest.approx(e.difference, rel=0.15)  # the framework hides behind a busy device


def test_numbers_that_a_cpu_hands_out_make_no_gpu_wait() -> None:
    """The steps of an optimizer are counted on the CPU, and read one by one."""
    asking = capture(rows=[*capture().rows[:-1], row(5, op="aten._local_scalar_dense.default")])
    gpu = on_gpu(0.02e-3, 0.5e-3)
    with_them, without = explain(asking, gpu), explain(capture(), gpu)
    assert [c.seconds.value for c in with_them.contributions] == pytest.approx(
        [c.seconds.value for c in without.contributions]
    )


def test_a_process_whose_host_was_faster_while_it_only_enqueued_does_not_decide() -> None:
    one = on_gpu(0.5e-3, 0.05e-3)
    first = replace(one.readings[0], host_seconds=one.readings[0].host_seconds * 0.1)
    found = explain(replace(one, readings=(first, *one.readings[1:])), one).closures[0]
    assert found is not None and found.host == pytest.approx(1.0)


def test_a_cpu_against_a_gpu() -> None:
    e = explain(capture(), on_gpu(0.02e-3, 0.5e-3))
    assert math.fsum(c.seconds.value for c in e.contributions) == pytest.approx(e.difference)
    first = e.contributions[0]
    assert first.group.label == "convolution_backward" and first.seconds.value > 0
