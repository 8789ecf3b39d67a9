"""What published epochs allow: bounds that hold, lines that cannot be, losses that break."""

import math
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.explain.published.data import Device, Losses, Model, Published, Report, Row, read
from accel_micro.explain.published.findings import Findings, bounds, findings

DEVICES = {
    "cpu": Device(host="a", kind="cpu"),
    "gpu": Device(host="a", kind="accelerator", bytes_per_second=1e11),
}


def told(rows: list[tuple[str, str, int, float]], model: Model | None = None, **changes: Any) -> Findings:
    made = tuple(Row(model=m, device=d, batch=b, seconds=s) for m, d, b, s in rows)
    facts: dict[str, Any] = {"examples": 1000, "devices": DEVICES, "rows": made, **changes}
    report = Report(name="r", year=2026, claim="c", **facts)
    (found,) = findings(Published(schema=1, reports=(report,), models={"net": model or Model()}))
    return found


@pytest.fixture(scope="module")
def shipped() -> list[Findings]:
    return findings(read())


def test_the_speedups_that_were_published(shipped: list[Findings]) -> None:
    speeds = {(each.model, each.batch): each.value for each in shipped[0].speedups}
    assert speeds["vgg16", 4] == pytest.approx(5.19, abs=0.005)
    assert speeds["resnet18", 4] == pytest.approx(2.26, abs=0.005)
    assert speeds["mobilenet_v2", 64] == pytest.approx(25.5, abs=0.05)


def test_lines_that_cannot_be_are_those_of_the_cpu(shipped: list[Findings]) -> None:
    kinds = {(each.model, each.device): each.kind for each in shipped[0].overheads}
    assert {key for key, kind in kinds.items() if kind == "impossible"} == {
        (model, "cpu") for model in ("vgg16", "resnet18", "mobilenet_v2", "efficientnet_b0")
    }
    assert kinds["alexnet", "cpu"] == "optimizer or Python"
    assert kinds["alexnet", "mps"] == "launches or optimizer"
    assert kinds["vgg16", "mps"] == "too short"
    assert {kinds[model, "mps"] for model in ("resnet18", "mobilenet_v2", "efficientnet_b0")} == {"launches"}


def test_alexnets_optimizer(shipped: list[Findings]) -> None:
    moved = {each.device: each.bytes_per_second for each in shipped[0].overheads if each.model == "alexnet"}
    assert moved["cpu"] == pytest.approx(22.3e9, rel=0.01) and moved["mps"] == pytest.approx(69.7e9, rel=0.01)


def test_the_loader_is_bounded_by_the_fastest_epoch(shipped: list[Findings]) -> None:
    assert [(each.batch, each.seconds, each.model) for each in shipped[0].floors] == [
        (4, 10.71, "alexnet"),
        (64, 4.97, "alexnet"),
    ]
    (found,) = [each for each in shipped[0].speedups if (each.model, each.batch) == ("resnet18", 64)]
    assert found.loader == pytest.approx(0.4765, abs=1e-3)


@given(
    st.floats(0.1, 100), st.floats(0.1, 100), st.floats(0, 50), st.floats(0, 50), st.booleans(), st.booleans()
)
def test_the_true_speedup_lies_in_its_bounds(
    slow: float, fast: float, load: float, slack: float, one: bool, other: bool
) -> None:
    """Whether a loader runs beside the steps or before them, on either side."""
    epochs = [max(load, steps) if beside else load + steps for steps, beside in ((slow, one), (fast, other))]
    low, high = bounds(*epochs, load + slack, None)
    assert low * (1 - 1e-9) <= slow / fast <= high * (1 + 1e-9)


def test_a_clock_that_waited_loses_no_step() -> None:
    rows = [("net", "cpu", 100, 20.0), ("net", "gpu", 100, 10.0)]
    waited, not_waited = (
        told(rows, loader_inside=False, synchronised=synced).speedups[0] for synced in (True, False)
    )
    assert waited.steps == (2.0, 2.0) and waited.loader is None
    assert not_waited.steps == (pytest.approx(20 / 11), 2.0)


def test_repeats_are_averaged() -> None:
    found = told([("net", "cpu", 4, 30.0), ("net", "cpu", 4, 10.0), ("net", "gpu", 4, 5.0)])
    assert found.speedups[0].value == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("small", "large", "model", "kind"),
    [
        (10.0, 20.0, Model(), "impossible"),
        (10.0, 9.9, Model(), "small"),
        (10.0, 3.0, Model(), "launches"),
        (10.0, 3.0, Model(parameters=10**6), "launches"),
        (10.0, 3.0, Model(parameters=3 * 10**7), "launches or optimizer"),
        (10.0, 3.0, Model(parameters=10**9), "too short"),
    ],
)
def test_what_b_may_be(small: float, large: float, model: Model, kind: str) -> None:
    (found,) = told(
        [("net", "gpu", 4, small), ("net", "gpu", 64, large)], model, optimizer_bytes=28
    ).overheads
    assert found.kind == kind


def test_a_call_takes_b_over_calls() -> None:
    (found,) = told([("net", "gpu", 4, 251.0), ("net", "gpu", 1000, 2.0)], Model(calls=100)).overheads
    assert found.line.per_step == pytest.approx(1.0) and found.call_seconds == pytest.approx(0.01)


def test_devices_of_two_hosts_that_are_alike(shipped: list[Findings]) -> None:
    (alike,) = shipped[1].alike
    assert alike.devices == ("M1 GPU", "P100") and alike.ratio == pytest.approx(1.0408, abs=1e-4)
    assert shipped[1].per_image == pytest.approx((70e-6, 327e-6), rel=0.01)
    assert not shipped[1].overheads and all(each.steps[1] == math.inf for each in shipped[1].speedups)


@pytest.mark.parametrize(
    ("values", "grew", "ended"),
    [
        ((3.0, 2.0, 1.0), None, None),
        ((3.0, 2.0, 2.5), 3, None),
        ((2.3, 1.1, 1.2, 0.4, 0.2), None, None),  # as training does
        ((), None, None),
        ((3.0, math.nan), None, 2),
        ((3.0, 2.0, 4.0, math.inf, math.nan), 3, 4),
    ],
)
def test_losses_that_break(values: tuple[float, ...], grew: int | None, ended: int | None) -> None:
    (found,) = told([], losses=(Losses(model="net", device="gpu", values=values),)).broken
    assert (found.grew, found.ended) == (grew, ended)


def test_all_of_it_is_plain_data(shipped: list[Findings]) -> None:
    assert asdict(shipped[0].speedups[0])["steps"] == shipped[0].speedups[0].steps
