"""From a definition to the class that asv runs: parameters, methods, skips, and a case measured for real."""

from typing import Any

import pytest
import torch

from accel_micro import suite
from accel_micro.measure import CLOCKS
from accel_micro.measure.inputs import Inputs
from accel_micro.suite import OpBenchmark, op

pytestmark = pytest.mark.usefixtures("known_machine")

FEW: dict[str, Any] = {"samples": 2, "budget_seconds": 0.01}


@op(quick=["m=8 k=16 n=4"], full=["m=64 k=64 n=64"], dtypes=("float32", "float64"))
def mm(t: Inputs, m: int, k: int, n: int) -> Any:
    """Product of two matrices."""
    a, b = t(m, k), t(k, n)
    return lambda: torch.mm(a, b)


@op(quick=["n=1000"], backward=False)
def wrong(t: Inputs, n: int) -> Any:
    """Right in the reference alone."""
    x = t(n)
    return lambda: x if t.reference else 1.01 * x


@op(quick=["n=8"])
def absent(t: Inputs, n: int) -> Any:
    """Not here."""
    raise NotImplementedError("no such kernel here")


@op(quick=["n=8"], unsupported=lambda device, dtype: "not in double" if dtype == "float64" else None)
def refuses(t: Inputs, n: int) -> Any:
    """A shape that raises."""
    raise RuntimeError("shape mismatch")


def test_parameters_are_the_same_on_every_machine() -> None:
    assert mm.param_names == ["device", "dtype", "shape"]
    assert mm.params == [list(suite.DEVICES), ["float32", "float64"], ["m=8 k=16 n=4", "m=64 k=64 n=64"]]


def test_a_class_has_a_method_for_each_direction_and_clock() -> None:
    methods = {name for name in vars(mm) if name.startswith("time_")}
    others = [clock for clock in CLOCKS if clock != "throughput"]
    assert methods == {
        f"time_{direction}{suffix}"
        for direction in ("forward", "backward")
        for suffix in ("", *(f"_{clock}" for clock in others))
    }
    assert not any("backward" in name for name in vars(wrong))
    facts = mm.time_backward_latency.accel_micro  # type: ignore[attr-defined]
    assert facts == {
        "op": "test_suite.mm",
        "direction": "backward",
        "clock": "latency",
        "shapes": {"quick": ["m=8 k=16 n=4"], "standard": [], "full": ["m=64 k=64 n=64"], "heavy": []},
        "dtypes": ["float32", "float64"],
        "sweep": None,
        "sweep_stated": False,
    }


def test_a_sweep_is_among_the_facts_and_not_among_the_parameters() -> None:
    @op(quick=["m=8 n=8"], sweep="m=2..64 n=8")
    def stated(t: Inputs, m: int, n: int) -> Any:
        """States it."""

    @op(quick=["n=1000"], full=["n=8"])
    def spanned(t: Inputs, n: int) -> Any:
        """Has one number."""

    assert stated.params[2] == ["m=8 n=8"]
    facts = [
        (cls.time_forward.accel_micro["sweep"], cls.time_forward.accel_micro["sweep_stated"])  # type: ignore[attr-defined]
        for cls in (stated, spanned)
    ]
    assert facts == [("m=2..64 n=8", True), ("n=8..1000", False)]


def test_the_class_shows_its_definition() -> None:
    assert mm.__name__ == "mm"
    assert mm.__doc__ == "Product of two matrices."
    assert mm.pretty_source.startswith("def mm(t")
    assert mm.version == mm.op.version
    assert issubclass(mm, OpBenchmark)


@pytest.mark.parametrize(
    ("cls", "device", "dtype", "reason"),
    [
        (mm, "cpu", "float16", "does not exist in float16"),
        (refuses, "cpu", "float64", "not in double"),
        pytest.param(
            mm,
            "cuda",
            "float32",
            r"\w+",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU"),
        ),
    ],
)
def test_setup_skips_what_does_not_exist_with_the_reason(
    cls: type[OpBenchmark], device: str, dtype: str, reason: str
) -> None:
    with pytest.raises(NotImplementedError, match=reason):
        cls().setup(device, dtype, cls.op.all_shapes[0])


def test_setup_lets_a_case_pass_that_exists() -> None:
    mm().setup("cpu", "float32", "m=8 k=16 n=4")


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_case_is_measured_counted_and_checked(direction: str) -> None:
    record = mm().run(direction, "cpu", "float32", "m=8 k=16 n=4", clocks=["throughput"], **FEW)
    assert record.failure is None and record.skipped is None
    assert (record.case.op, record.case.direction, record.case.shape) == (
        "test_suite.mm",
        direction,
        "m=8 k=16 n=4",
    )
    (process,) = record.clocks.values()
    assert len(process.samples) == 2 and min(process.samples) > 0
    assert record.check is not None and 0 < record.check.error < record.check.tolerance
    assert (
        record.work is not None and record.work.flops == (1 if direction == "forward" else 2) * 2 * 8 * 16 * 4
    )


def test_a_wrong_op_has_no_time() -> None:
    record = wrong().run("forward", "cpu", "float32", "n=1000", **FEW)
    assert record.clocks == {}
    assert record.failure is not None and record.failure.kind == "wrong result"
    assert "relative error 0.01" in record.failure.detail


def test_an_op_that_is_not_here_is_skipped_and_one_that_raises_failed() -> None:
    record = absent().run("forward", "cpu", "float32", "n=8", **FEW)
    assert record.failure is None and "no such kernel here" in str(record.skipped)
    record = refuses().run("forward", "cpu", "float32", "n=8", **FEW)
    assert record.failure is not None and record.failure.kind == "failed"
    assert "shape mismatch" in record.failure.detail


def test_stated_work_reaches_the_record() -> None:
    @op(
        quick=["n=8"],
        flops=lambda n: 100 * n,
        backward_flops=3,
        bytes=lambda n, itemsize: n * itemsize,
        saving=lambda: 4,
    )
    def doubled(t: Inputs, n: int) -> Any:
        """Twice as much."""
        x = t(n)
        return lambda: 2 * x

    for direction, flops, moved in (("forward", 800.0, 32.0), ("backward", 2400.0, None)):
        record = doubled().run(direction, "cpu", "float32", "n=8", **FEW)
        assert record.work is not None, record.failure or record.skipped
        assert record.work.flops == flops
        assert record.work.fewest_flops == flops / 4
        assert moved is None or record.work.bytes == moved


def test_a_faulty_decorator_is_refused() -> None:
    with pytest.raises(ValueError, match=r"test_suite.mm: shape 'm=3' does not fit"):
        op(quick=["m=3"])(mm.op.definition)


@op(quick=["n=8"], flops=lambda n: 1e15)
def huge(t: Inputs, n: int) -> Any:
    """Too much for any CPU."""
    x = t(n)
    return lambda: x + 1


def test_what_is_too_long_for_a_cpu_is_so_for_a_backend_that_computes_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from accel_micro import devices

    class Somewhere(devices.Device):
        def unavailable(self) -> None:
            return None

    monkeypatch.setattr(devices, "get", Somewhere)
    huge().setup("xla", "float32", "n=8")
    monkeypatch.setattr(Somewhere, "on_cpu", True)
    with pytest.raises(NotImplementedError, match="too long for a CPU"):
        huge().setup("xla", "float32", "n=8")
