"""Whole networks: the work that is stated, steps that can be timed for ever, a check that tells wrong from right."""

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from accel_micro.measure.inputs import Inputs, Timed
from accel_micro.models import NAMES, build
from accel_micro.models.still import still
from benchmarks.models import ALL, NETWORKS, inference_step, training_step
from tests.models.test_models import in_shape

GROUPED = ("mobilenet_v2", "efficientnet_b0")
"""Networks of depthwise convolutions, for whose filters' gradients torch's counter takes the groups for one."""


def test_every_network_is_timed() -> None:
    assert list(NETWORKS) == list(NAMES)
    assert {name for name in NAMES for op in (training_step, inference_step) for n in (1, 4, 64)
            if f"net={name} n={n}" in op.op.all_shapes and f"net={name} n={n}" in ALL} == set(NAMES)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_stated_work_is_what_torch_counts(name: str) -> None:
    model = in_shape(name)
    batch = model.batch(2)
    with FlopCounterMode(display=False) as inference:
        model.inference_step(batch)
    with FlopCounterMode(display=False) as training:
        model.training_step(batch)
    parameters, forward, whole = NETWORKS[name]
    assert parameters == sum(p.numel() for p in model.module.parameters())
    assert 2 * forward == inference.get_total_flops()
    if name not in GROUPED:
        assert 2 * whole == training.get_total_flops()
    else:  # three times forward, but for the gradient of the images, which nobody asks for
        first = 2 * 27 * 32 * 112 * 112
        assert whole == 3 * forward - first


def built(cls: Any, name: str, n: int, dtype: str = "float32", reference: bool = False) -> Timed:
    inputs = Inputs(torch.device("cpu"), getattr(torch, dtype), reference=reference)
    with torch.no_grad():
        made = cls.op.build(inputs, {"net": name, "n": n})
    assert isinstance(made, Timed)
    return made


@pytest.mark.parametrize("name", ["mnist", "vae"])
def test_a_step_trains_and_moves_no_weight(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    models: list[Any] = []
    monkeypatch.setattr("benchmarks.models.build", lambda *a: models.append(build(*a)) or models[-1])
    made = built(training_step, name, 2)
    before = [p.detach().clone() for p in models[0].module.parameters()]
    with torch.no_grad():
        losses = [float(made.call()) for _ in range(4)]
    assert all(p.grad is not None and bool(p.grad.any()) for p in models[0].module.parameters())
    assert all(torch.equal(p, b) for p, b in zip(models[0].module.parameters(), before, strict=True))
    assert len(set(losses)) > 1  # dropout draws when it is timed
    with torch.no_grad():
        assert float(made.result()) == float(made.result())  # and not when it is compared


def test_a_step_that_computes_something_else_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {"device": "cpu", "dtype": "float32", "shape": "net=mnist n=2"}
    assert training_step().check("forward", **whole).failure is None
    assert inference_step().check("forward", **whole).failure is None
    relu = torch.nn.functional.relu

    def wrong(x: torch.Tensor, *a: Any, **k: Any) -> torch.Tensor:
        return relu(x, *a, **k) * (1.0 if x.dtype == torch.float64 else 1.001)

    monkeypatch.setattr("torch.nn.functional.relu", wrong)
    for cls in (training_step, inference_step):
        failure = cls().check("forward", **whole).failure
        assert failure is not None and failure.kind == "wrong result"


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("vgg16", "gpt2", *GROUPED)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.slow
def test_networks_agree_with_float64(name: str, dtype: str) -> None:
    for cls in (training_step, inference_step):
        assert cls().check("forward", "cpu", dtype, f"net={name} n=2").failure is None


def test_steps_that_take_a_cpu_minutes_are_left_out_in_words() -> None:
    reason = training_step.op.why_unsupported("cpu", "float32", "net=resnet18 n=64")
    assert reason == "a step of 681 GFLOP takes a CPU too long to time twenty"
    assert training_step.op.why_unsupported("cuda", "float32", "net=resnet18 n=64") is None
    assert training_step.op.why_unsupported("cpu", "float32", "net=resnet18 n=4") is None


@pytest.mark.parametrize("name", ["mnist", "vae", "encoder", "lstm"])
def test_a_still_network_draws_nothing_and_is_itself_again(name: str) -> None:
    model = build(name)
    batch = model.batch(2)
    model.module.train()

    def losses() -> set[float]:
        with torch.no_grad():
            return {float(model.loss(model.module(batch.inputs), batch.target)) for _ in range(2)}

    assert len(losses()) == 2
    with still(model.module):
        assert len(losses()) == 1
    assert len(losses()) == 2
