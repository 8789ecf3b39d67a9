"""Arguments kept, calls made again, and results checked."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from accel_micro import devices
from accel_micro.devices.base import Device, QueueTooShort
from accel_micro.explain.capturing.checking import check
from accel_micro.explain.capturing.keeping import Keeper, Recipe, made, spanned, written
from accel_micro.explain.capturing.replaying import Replayer

aten = torch.ops.aten


@given(st.sampled_from(["plain", "transposed", "expanded", "sliced", "channels_last", "empty"]))
def test_a_copy_has_the_same_numbers_and_strides(kind: str) -> None:
    base = torch.randn(2, 3, 4, 5)
    tensor = {
        "plain": base,
        "transposed": base.transpose(1, 3),
        "expanded": base[:1].expand(7, 3, 4, 5),
        "sliced": base[:, 1:, ::2],
        "channels_last": base.contiguous(memory_format=torch.channels_last),
        "empty": base[:0],
    }[kind]
    copy = spanned(tensor)
    assert torch.equal(copy, tensor) and copy.stride() == tensor.stride()
    if tensor.numel():
        assert copy.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr()


def test_what_does_not_fit_is_made_anew_of_its_kind() -> None:
    keeper = Keeper(budget_bytes=0.0)
    squares = torch.randn(100, 100).square()
    squares[:, :30] = 0.0
    indices = torch.arange(100)
    kept = keeper(aten.sqrt.default, (squares, [indices, squares]), {"scale": 2.0})
    assert isinstance(kept[0][0], Recipe) and kept[1] == {"scale": 2.0}
    (again, (same, _)), _ = made(kept)
    assert torch.equal(same, indices)  # whole numbers are places, and stay
    assert again.shape == squares.shape and float(again.min()) >= 0.0
    assert float((again == 0).float().mean()) == pytest.approx(0.3, abs=0.15)


def test_what_fits_stays_as_it_was() -> None:
    x = torch.randn(5)
    kept = Keeper(1e6)(aten.add_.Tensor, (x, x), {})
    x.zero_()
    assert float(made(kept)[0][0].abs().sum()) > 0


def test_changed_arguments_are_known_by_the_schema() -> None:
    x, y = torch.zeros(2), torch.zeros(2)
    (changed,) = written(aten.add_.Tensor, (x, y), {})
    assert changed is x
    assert not list(written(aten.add.Tensor, (x, y), {}))
    (listed,) = written(aten._foreach_add_.Scalar, ([x, y], 1.0), {})
    assert listed[0] is x and listed[1] is y


@pytest.fixture(scope="module")
def wrong() -> Iterator[Any]:
    """An operator that is right in float64 alone."""
    library = torch.library.Library("accel_micro_tests", "DEF")
    library.define("nearly(Tensor x) -> Tensor")
    library.impl("nearly", lambda x: x * (1.0 if x.dtype == torch.float64 else 1.01), "CPU")
    yield torch.ops.accel_micro_tests.nearly.default
    library._destroy()  # type: ignore[no-untyped-call]


def test_a_wrong_op_is_found_and_right_ones_are_not(wrong: Any) -> None:
    found = check(wrong, ((torch.randn(100),), {}))
    assert found.error == pytest.approx(0.01, rel=1e-3) and "relative error" in found.problem
    x, w = torch.randn(8, 64), torch.randn(64, 64)
    for func, args in (
        (aten.mm.default, (x, w)),
        (aten.addcdiv_.default, (x, x.abs(), x.abs() + 1)),
        (aten._foreach_add_.List, ([x, w], [x, w])),
        (aten.native_batch_norm.default, (x, w[0], w[1], None, None, True, 0.1, 1e-5)),
    ):
        before = x.clone()
        right = check(func, (args, {}))
        assert right.error is not None and right.tolerance is not None and right.problem == "", func
        assert right.error <= right.tolerance
        assert torch.equal(x, before)  # a check changes nothing


def test_a_sum_of_what_cancels_is_right_as_far_as_rounding_goes() -> None:
    """What the bias of a normalisation gets back through another: zero, and 40 % off in float32."""
    x, back = torch.randn(4, 64, 7, 7), torch.randn(4, 64, 7, 7)
    back -= back.mean(dim=(0, 2, 3), keepdim=True)
    _, mean, inverse = aten.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
    args = (back, x, torch.ones(64), None, None, mean, inverse, True, 1e-5, [True, True, True])
    found = check(aten.native_batch_norm_backward.default, (args, {}))
    assert found.error is not None and found.error > 0.01 and found.problem == ""


def test_a_result_that_is_wrong_is_found_beside_one_that_cancels() -> None:
    library = torch.library.Library("accel_micro_cancelling", "DEF")
    library.define("both(Tensor x) -> (Tensor, Tensor)")
    library.impl("both", lambda x: (x.sum(dim=0), x * (1.0 if x.dtype == torch.float64 else 1.01)), "CPU")
    x = torch.randn(1000, 8)
    x -= x.mean(dim=0)
    try:
        found = check(torch.ops.accel_micro_cancelling.both.default, ((x,), {}))
    finally:
        library._destroy()  # type: ignore[no-untyped-call]
    assert found.error == pytest.approx(0.01, rel=1e-3) and "relative error 0.01" in found.problem


def test_numbers_that_may_not_be_moved_are_compared_as_they_are() -> None:
    """A probability of 1 may not grow."""
    library = torch.library.Library("accel_micro_bounded", "DEF")
    library.define("loss(Tensor p) -> Tensor")

    def loss(p: torch.Tensor) -> torch.Tensor:
        if p.max() > 1:
            raise RuntimeError("no probability")
        return p * (1.0 if p.dtype == torch.float64 else 1.01)

    library.impl("loss", loss, "CPU")
    try:
        found = check(torch.ops.accel_micro_bounded.loss.default, ((torch.ones(50),), {}))
    finally:
        library._destroy()  # type: ignore[no-untyped-call]
    assert "relative error 0.01" in found.problem


@pytest.mark.parametrize(
    ("func", "args", "reason"),
    [
        (aten.bernoulli_.float, (torch.zeros(4), 0.5), "random"),
        (aten.view.default, (torch.zeros(4), [2, 2]), "a view"),
        (aten.empty_like.default, (torch.zeros(4),), "uninitialised memory"),
        (aten.argmax.default, (torch.zeros(4),), "no numbers to compare"),
    ],
)
def test_what_cannot_be_checked_says_why(func: Any, args: Any, reason: str) -> None:
    found = check(func, (args, {}))
    assert found.error is None and found.problem == reason


def test_an_op_without_float64_says_so() -> None:
    library = torch.library.Library("accel_micro_narrow", "DEF")
    library.define("half(Tensor x) -> Tensor")

    def half(x: torch.Tensor) -> torch.Tensor:
        if x.dtype == torch.float64:
            raise RuntimeError("no kernel for Double")
        return x / 2

    library.impl("half", half, "CPU")
    try:
        found = check(torch.ops.accel_micro_narrow.half.default, ((torch.ones(3),), {}))
    finally:
        library._destroy()  # type: ignore[no-untyped-call]
    assert found.problem == "no float64 reference: no kernel for Double"


def test_calls_are_made_again_from_the_same_numbers() -> None:
    cpu = devices.get("cpu")
    replayer = Replayer(cpu, cpu.probe_host_speed(), cache_bytes=1 << 20)
    x = torch.full((64,), 4.0)
    seen = []

    class Spy:
        _schema = aten.mul_.Scalar._schema

        def __call__(self, tensor: torch.Tensor, by: float) -> torch.Tensor:
            seen.append(float(tensor[0]))
            return tensor.mul_(by)

    found = replayer.replay(Spy(), ((x, 0.5), {}))
    assert len(seen) > 10 and set(seen) == {4.0}
    assert found.hot_seconds and found.cold_seconds


class OnAGpu(Device):
    """A device whose clocks read what a test says."""

    kind = "paper"
    asynchronous = True
    clocks = ("throughput", "latency", "dispatch", "device")

    def __init__(self, synchronises: bool = False) -> None:
        super().__init__("cpu")
        self._synchronises = synchronises

    def probe_host_speed(self) -> float:
        return 1.0

    def queue(self, call: Any) -> Any:
        return self

    def dispatch_calls(self) -> int:
        if self._synchronises:
            raise QueueTooShort("it synchronises")
        return 100

    def dispatch(self, calls: int) -> float:
        return 5e-6


def test_a_device_that_works_on_its_own_is_read_by_its_dispatch_clock() -> None:
    call = (aten.add.Tensor, ((torch.ones(2), torch.ones(2)), {}))
    found = Replayer(OnAGpu(), 1.0, 1 << 20).replay(*call)
    assert found.dispatch_seconds == 5e-6 and found.hot_seconds is None
    waits = Replayer(OnAGpu(synchronises=True), 1.0, 1 << 20).replay(*call)
    assert waits.dispatch_seconds is not None
    assert 0 < waits.dispatch_seconds < 1.0  # alone, on an idle device
