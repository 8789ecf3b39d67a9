"""What is read of a profiler's events, on events of paper."""

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import DeviceType

from accel_micro.devices import cuda_profiler
from accel_micro.devices.profiling import interval
from tests.devices.kineto import Event


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """Those of the next reading."""
    found: list[Event] = []

    @contextlib.contextmanager
    def profile(**_: Any) -> Iterator[Any]:
        yield SimpleNamespace(profiler=SimpleNamespace(kineto_results=SimpleNamespace(events=lambda: found)))

    monkeypatch.setattr(torch.profiler, "profile", profile)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    return found


def test_only_kernels_and_copies_count_and_those_beside_each_other_once(events: list[Event]) -> None:
    called = []
    events += [
        Event("at::cuda::spin_kernel(long)", 0, 5_000),
        Event("gemm", 6_000, 1_000),
        Event("Memcpy DtoD", 6_500, 1_000, "gpu_memcpy"),
        Event("gemm", 9_000, 500),
        Event("Optimizer.step#Adam.step", 6_000, 9_000, "gpu_user_annotation"),
        Event("aten::mm", 0, 20_000, "cpu_op", DeviceType.CPU),
    ]
    assert cuda_profiler.kernel_reading(lambda: called.append(1), 2) == pytest.approx((1e-6, 1.5))
    assert len(called) == 2
    assert cuda_profiler.busy_seconds(lambda count: None, 4) == pytest.approx(0.5e-6)


def test_spins_are_seen_where_they_are_asked_for(events: list[Event]) -> None:
    events += [Event("at::cuda::spin_kernel(long)", 0, 5_000), Event("gemm", 6_000, 1_000)]
    found = cuda_profiler.device_events(lambda count: None, 1, spins=True)
    assert [cuda_profiler.is_spin(event) for event in found] == [True, False]
    assert [interval(event) for event in found] == [(0, 5_000), (6_000, 7_000)]


def test_kernels_beside_each_other_share_the_time() -> None:
    assert cuda_profiler.shared_nanoseconds([(0, 10), (4, 8), (20, 23)]) == [8.0, 2.0, 3.0]
    assert cuda_profiler.shared_nanoseconds([(5, 5), (0, 6), (0, 6)]) == [0.0, 3.0, 3.0]
    assert cuda_profiler.shared_nanoseconds([]) == []


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 300)).map(lambda pair: (pair[0], sum(pair)))))
def test_shares_are_together_as_long_as_something_ran(intervals: list[tuple[int, int]]) -> None:
    shares = cuda_profiler.shared_nanoseconds(intervals)
    assert sum(shares) == pytest.approx(cuda_profiler.busy_nanoseconds(intervals))
    assert all(
        -1e-9 <= share <= stop - start + 1e-9 for share, (start, stop) in zip(shares, intervals, strict=True)
    )
