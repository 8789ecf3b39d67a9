"""The pre-filled queue on a CUDA of paper: what a host without a core does to it, and what a full queue does."""

from collections.abc import Callable
from itertools import count

import pytest

from accel_micro.devices import cuda_queue
from accel_micro.devices.base import QueueTooShort
from accel_micro.devices.cuda import Cuda
from accel_micro.devices.cuda_queue import CudaQueue
from tests.devices.fake_cuda import HERTZ, LAUNCH_SECONDS, FakeCuda

HOST_SECONDS = 58e-6
DEVICE_SECONDS = 5e-6


class _Probed(Cuda):
    """Only tells what its clock was read to be."""

    def __init__(self, hertz: float) -> None:
        super().__init__("cuda")
        self.hertz = hertz

    def probe_device_speed(self) -> float:
        return self.hertz


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    cuda = FakeCuda()
    monkeypatch.setattr(cuda_queue, "perf_counter", lambda: cuda.now)
    return cuda


def queue_of(cuda: FakeCuda, call: Callable[[], None], hertz: float = HERTZ) -> CudaQueue:
    queue = CudaQueue(_Probed(hertz), call)
    queue._torch = cuda.torch
    return queue


def test_dispatch_is_what_the_host_needs(cuda: FakeCuda) -> None:
    for device_seconds in (DEVICE_SECONDS, 20 * HOST_SECONDS):
        queue = queue_of(cuda, cuda.kernel(HOST_SECONDS, device_seconds))
        assert queue.dispatch(queue.dispatch_calls()) == pytest.approx(HOST_SECONDS + LAUNCH_SECONDS)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_a_clock_that_was_read_too_slow_costs_nothing(cuda: FakeCuda, share: float) -> None:
    """The first spin of a process waits for its code to be loaded, or the host had no core between two launches."""
    queue = queue_of(cuda, cuda.kernel(HOST_SECONDS, DEVICE_SECONDS), hertz=share * HERTZ)
    calls = queue.dispatch_calls()
    assert calls >= 64
    assert queue.dispatch(calls) == pytest.approx(HOST_SECONDS + LAUNCH_SECONDS)


@pytest.mark.parametrize("seconds", [1e-3, 4e-3, 30e-3, 200e-3])
@pytest.mark.parametrize("first", range(0, 40, 7))
def test_a_host_that_loses_its_core_for_a_while_keeps_its_clock(
    cuda: FakeCuda, seconds: float, first: int
) -> None:
    queue = queue_of(cuda, cuda.kernel(HOST_SECONDS, DEVICE_SECONDS))
    calls = queue.dispatch_calls()
    turn = count()
    cuda.hiccup = lambda: seconds if next(turn) in {first, first + 130, first + 300} else 0.0
    assert queue.dispatch(calls) > 0
    cuda.hiccup = lambda: 0.0
    assert queue.dispatch(calls) == pytest.approx(HOST_SECONDS + LAUNCH_SECONDS)


def test_one_misfortune_is_tried_again(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = queue_of(cuda, cuda.kernel(HOST_SECONDS, DEVICE_SECONDS))
    calls = queue.dispatch_calls()
    read, tries = queue._behind_spin, count()

    def unlucky(enqueue: Callable[[int], None], calls: int) -> tuple[float, float]:
        if next(tries) == 0:
            raise QueueTooShort("the host had no core at three bad moments")
        return read(enqueue, calls)

    monkeypatch.setattr(queue, "_behind_spin", unlucky)
    assert queue.dispatch(calls) == pytest.approx(HOST_SECONDS + LAUNCH_SECONDS)
    assert next(tries) == 2


def test_no_more_calls_are_taken_than_the_queue_holds(cuda: FakeCuda) -> None:
    cuda.depth = 40
    queue = queue_of(cuda, cuda.kernel(HOST_SECONDS, DEVICE_SECONDS))
    calls = queue.dispatch_calls()
    assert calls == 32
    assert queue.dispatch(calls) == pytest.approx(HOST_SECONDS + LAUNCH_SECONDS)
    with pytest.raises(QueueTooShort, match="64 calls do not fit"):
        queue.dispatch(64)


def test_a_call_that_waits_has_no_dispatch_clock_and_is_found_out_once(cuda: FakeCuda) -> None:
    queue = queue_of(cuda, cuda.kernel(HOST_SECONDS, DEVICE_SECONDS, waits=True))
    with pytest.raises(QueueTooShort, match="synchronises"):
        queue.dispatch_calls()
    until = cuda.now
    with pytest.raises(QueueTooShort, match="synchronises"):
        queue.dispatch_calls()
    assert cuda.now == until
