"""One case, from definition to record, on the real CPU; times are never looked at."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from accel_micro import devices
from accel_micro.devices import peaks, store
from accel_micro.devices.cpu import Cpu
from accel_micro.measure.case import check_case, measure_case
from accel_micro.measure.inputs import Inputs, Timed
from accel_micro.measure.records import Case, Record

pytestmark = pytest.mark.usefixtures("known_machine")


def run(
    build: Callable[[Inputs], Any],
    direction: str = "forward",
    dtype: str = "float32",
    device: str = "cpu",
    clocks: tuple[str, ...] = ("throughput",),
    **options: Any,
) -> Record:
    case = Case("family.op", direction, device, dtype, "m=32")
    return measure_case(case, build, clocks=clocks, samples=3, budget_seconds=0.05, **options)


def product(t: Inputs) -> Callable[[], torch.Tensor]:
    a, b = t(32, 32), t(32, 32)
    return lambda: a @ b


def test_a_good_case_has_everything() -> None:
    record = run(product, clocks=("throughput", "latency", "device"))
    assert record.failure is None
    assert record.skipped is None
    assert set(record.clocks) == {"throughput", "latency"}  # a CPU has no device clock of its own
    assert record.work is not None
    assert record.work.flops == 2 * 32**3
    assert record.work.bytes == 3 * 4 * 32**2
    assert record.peak is not None
    assert record.peak.flops_per_second
    assert record.peak_memory_bytes == 4 * 32**2
    assert record.check is not None
    assert 0 < record.check.error < record.check.tolerance
    assert record.precision["threads"]
    assert record.clocks["throughput"].first_call_seconds


def test_backward_times_and_checks_the_gradients() -> None:
    record = run(product, "backward")
    assert record.failure is None
    assert record.work is not None
    assert record.work.flops == 2 * 2 * 32**3
    assert record.work.bytes == (2 + 1 + 2) * 4 * 32**2, (
        "saved operands, the gradient that comes in, those that go out"
    )


@pytest.mark.parametrize(
    ("call", "elements"),
    [
        (lambda a, b: a + b, 0),  # both gradients are the one that came in
        (lambda a, b: a.sum() + b.sum(), 0),  # expanded: nothing is written
        (lambda a, b: a.exp() + b, 2 * 32**2),  # what exp gave, and the gradient it makes
        (lambda a, b: a * 2.0 + b, 32**2),  # the gradient it makes; nothing is saved
    ],
)
def test_a_backward_moves_what_was_saved_and_the_gradients_that_it_makes(call: Any, elements: int) -> None:
    def build(t: Inputs) -> Callable[[], torch.Tensor]:
        a, b = t(32, 32), t(32, 32)
        return lambda: call(a, b)  # type: ignore[no-any-return]

    record = run(build, "backward")
    assert record.failure is None
    assert record.work is not None
    assert record.work.bytes == 4 * elements


def test_a_wrong_result_has_no_time() -> None:
    record = run(lambda t: lambda: product(t)() * (1.0 if t.reference else 1.001))
    assert record.failure is not None
    assert record.failure.kind == "wrong result"
    assert not record.clocks


def test_a_check_alone_judges_and_times_nothing() -> None:
    case = Case("family.op", "forward", "cpu", "float32", "m=32")
    right = check_case(case, product)
    assert right.failure is None
    assert right.check is not None
    assert 0 < right.check.error < right.check.tolerance
    assert right.work is not None
    assert right.work.flops == 2 * 32**3
    assert not right.clocks
    wrong = check_case(case, lambda t: lambda: product(t)() * (1.0 if t.reference else 1.001))
    assert wrong.failure is not None
    assert wrong.failure.kind == "wrong result"


def test_a_wrong_gradient_has_no_time() -> None:
    class Lying(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * 2.1 if gradient.dtype == torch.float32 else gradient * 2

    def build(t: Inputs) -> Callable[[], Any]:
        x = t(64)
        return lambda: Lying.apply(x)

    assert run(build).failure is None
    failure = run(build, "backward").failure
    assert failure is not None
    assert failure.kind == "wrong result"


def raising(error: BaseException) -> Callable[[Inputs], Any]:
    def build(t: Inputs) -> Any:
        def call() -> None:
            raise error

        return call

    return build


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RuntimeError("boom\nsecond line"), "failed"),
        (MemoryError("no room"), "out of memory"),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 9 bytes"),
            "out of memory",
        ),
        (
            RuntimeError("MPS backend out of memory (MPS allocated: 1.00 GB, max allowed: 9 GB)"),
            "out of memory",
        ),
        (RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be"), "out of memory"),
    ],
)
def test_an_error_becomes_a_failure(error: Exception, kind: str) -> None:
    failure = run(raising(error)).failure
    assert failure is not None
    assert failure.kind == kind
    assert "second line" not in failure.detail


@pytest.mark.parametrize(
    "error", [NotImplementedError("no such kernel"), RuntimeError("\"add\" not implemented for 'Half'")]
)
def test_a_kernel_that_does_not_exist_is_skipped_with_its_reason(error: Exception) -> None:
    record = run(raising(error))
    assert record.failure is None
    assert "not implemented" in str(record.skipped) or "no such kernel" in str(record.skipped)


def test_a_device_that_is_not_here_or_not_known_is_skipped_with_its_reason() -> None:
    assert "unknown device 'tpu'" in str(run(product, device="tpu").skipped)
    assert run(product, device="xla").skipped
    if not torch.cuda.is_available():
        assert run(product, device="cuda").skipped


def test_a_call_that_does_nothing_is_implausible() -> None:
    def build(t: Inputs) -> Callable[[], torch.Tensor]:
        a, b = t(512, 512), t(512, 512)
        kept = a @ b
        return (lambda: a @ b) if t.reference else (lambda: kept)

    record = run(build, stated={"flops": 2.0 * 512**3})
    assert record.failure is not None
    assert record.failure.kind == "implausible"
    assert "FLOP/s" in record.failure.detail


def test_a_peak_from_a_busy_moment_rejects_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    low = {"flops float32": 1.0, "bytes": {"65536": 1.0}}
    store.update("peaks", lambda data: data.update({peaks.machine_key(devices.get("cpu")): low}))
    monkeypatch.setattr(peaks, "_measure_flops", lambda device, arithmetic: 1e13)
    monkeypatch.setattr(peaks, "_measure_bytes", lambda device: {"65536": 1e13})
    record = run(product)
    assert record.failure is None
    assert record.peak is not None
    assert record.peak.flops_per_second == 1e13


@pytest.mark.parametrize(("slow", "kept"), [(2, True), (3, False)])
def test_a_busy_minute_is_longer_than_a_moment(
    monkeypatch: pytest.MonkeyPatch, slow: int, kept: bool
) -> None:
    rates = iter([*[1.0] * slow, 1e13])
    low = {"flops float32": 1e13, "bytes": {"65536": 1.0}}
    store.update("peaks", lambda data: data.update({peaks.machine_key(devices.get("cpu")): low}))
    monkeypatch.setattr(peaks, "_measure_flops", lambda device, arithmetic: 1e13)
    monkeypatch.setattr(peaks, "_measure_bytes", lambda device: {"65536": next(rates)})
    record = run(product)
    assert (record.failure is None) is kept


def test_a_timed_step_is_compared_after_its_first_call() -> None:
    def build(t: Inputs) -> Timed:
        x = t(64)
        return Timed(lambda: x.mul_(1.5), lambda: x)

    record = run(build, stated={"flops": 0.0})
    assert record.failure is None


def test_forward_records_no_graph() -> None:
    seen: list[bool] = []

    def build(t: Inputs) -> Callable[[], torch.Tensor]:
        a = t(8, 8)

        def call() -> torch.Tensor:
            if not t.reference:
                seen.append(torch.is_grad_enabled())
            return a @ a

        return call

    run(build)
    assert not any(seen)


def test_products_in_bfloat16_are_allowed_its_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded(t: Inputs) -> Callable[[], torch.Tensor]:
        a, b = t(32, 32), t(32, 32)
        if t.reference:
            return lambda: a @ b
        return lambda: a.bfloat16().float() @ b.bfloat16().float()

    failure = run(rounded).failure
    assert failure is not None
    assert failure.kind == "wrong result"
    monkeypatch.setattr(Cpu, "precision", lambda self: {"bfloat16_products": True})
    assert run(rounded).failure is None
