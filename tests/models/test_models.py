"""The reference networks: their parameters, their steps, and nothing that ties them to a device."""

import importlib
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn

from accel_micro.models import NAMES, UnknownModel, build
from accel_micro.models.efficientnet import Block
from accel_micro.models.model import Model, Network
from accel_micro.models.registry import _MODULES
from accel_micro.models.transformer import Decoder
from accel_micro.models.vae import loss

PUBLISHED = {
    "vgg16": 138_357_544,
    "alexnet": 61_100_840,
    "resnet18": 11_689_512,
    "mobilenet_v2": 3_504_872,
    "efficientnet_b0": 5_288_548,
    "squeezenet1_0": 1_248_424,
    "gpt2": 124_439_808,
}
"""Parameters: of the first six as torchvision's documentation states them, of GPT-2 small with its shared table."""

COUNTED = {
    # Weights and biases of the examples' layers, summed by hand.
    "mnist": 32 * 10 + 64 * (32 * 9 + 1) + 128 * (9216 + 1) + 10 * (128 + 1),
    "vae": 400 * 785 + 2 * 20 * 401 + 400 * 21 + 784 * 401,
    "encoder": 4 * 768 * 769 + 3072 * 769 + 768 * 3073 + 4 * 768,
    "lstm": 33278 * 200 + 2 * 4 * 200 * (200 + 200 + 2) + 33278 * 201,
}
SMALL = ("mnist", "vae", "encoder")


def described(name: str) -> Network:
    """A network in shape only."""
    with torch.device("meta"):
        return getattr(importlib.import_module(f"accel_micro.models.{_MODULES[name]}"), name)()  # type: ignore[no-any-return]


def in_shape(name: str) -> Model:
    network = described(name)
    return Model(
        name, network.module, network.batch, network.loss, network.optimizer(network.module.parameters()), 1
    )


@pytest.mark.parametrize("name", NAMES)
def test_there_are_as_many_parameters_as_published(name: str) -> None:
    assert sum(p.numel() for p in described(name).module.parameters()) == (PUBLISHED | COUNTED)[name]


@pytest.mark.parametrize("name", NAMES)
def test_both_steps_run_where_the_weights_are(name: str) -> None:
    # On the meta device: a tensor that were made on the CPU on the way would not fit.
    model = in_shape(name)
    batch = model.batch(2)
    assert batch.inputs.device.type == batch.target.device.type == "meta"
    value = model.training_step(batch)
    assert value.shape == () and value.device.type == "meta" and not value.requires_grad
    assert all(p.grad is not None for p in model.module.parameters())
    output = model.inference_step(batch)
    first = output[0] if isinstance(output, tuple) else output
    assert len(first) == (2 if name != "lstm" else 70)


def state(model: Model) -> dict[str, torch.Tensor]:
    return {key: value.clone() for key, value in model.module.state_dict().items()}


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("name", SMALL)
def test_training_learns_its_batch_and_inference_changes_nothing(name: str) -> None:
    model = build(name)
    batch = model.batch(4)
    before = state(model)
    torch.manual_seed(0)
    losses = [float(model.training_step(batch)) for _ in range(6)]
    assert min(losses[3:]) < losses[0]
    assert all(map(torch.isfinite, map(torch.tensor, losses)))
    after = state(model)
    assert not equal(before, after)
    output: Any = model.inference_step(batch)
    first = output[0] if isinstance(output, tuple) else output
    assert first.is_inference() and bool(torch.isfinite(first).all())
    assert equal(after, state(model))
    if name != "vae":  # which draws
        assert torch.equal(first, model.inference_step(batch))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in SMALL])
def test_the_large_ones_train_too(name: str) -> None:
    model = build(name)
    batch = model.batch(2)
    before = state(model)
    # efficientnet_b0 leaves blocks out by chance, and a block that no image went through stays as it was.
    torch.manual_seed(0)
    assert bool(torch.isfinite(model.training_step(batch)))
    after = state(model)
    changed = [key for key in before if not torch.equal(before[key], after[key])]
    assert len(changed) == len(before), set(before) - set(changed)
    assert bool(torch.isfinite(model.inference_step(batch)).all())


def test_weights_and_batches_are_the_same_each_time_and_other_randomness_stays() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first, second, other = build("mnist"), build("mnist"), build("mnist", seed=1)
    assert torch.equal(torch.rand(2), expected)
    assert equal(state(first), state(second)) and not equal(state(first), state(other))
    batch = first.batch(3)
    assert torch.equal(batch.inputs, second.batch(3).inputs) and torch.equal(
        batch.target, first.batch(3).target
    )
    assert not torch.equal(batch.inputs, first.batch(3, torch.Generator().manual_seed(9)).inputs)


def test_weights_and_images_are_of_the_dtype_that_was_asked_for() -> None:
    model = build("mnist", dtype="bfloat16")
    batch = model.batch(2)
    assert model.dtype == batch.inputs.dtype == torch.bfloat16 and batch.target.dtype == torch.int64
    assert bool(torch.isfinite(model.training_step(batch)))


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownModel, match=r"'vgg19'; known: vgg16, .*lstm"):
        build("vgg19")


def test_names_are_listed_without_torch() -> None:
    code = "import sys, accel_micro.models; print('torch' in sys.modules, *accel_micro.models.NAMES)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", *NAMES]


def test_the_decoder_does_not_see_what_comes_later() -> None:
    torch.manual_seed(0)
    decoder = Decoder(layers=2, width=16, heads=2, vocabulary=11).eval()
    tokens = torch.randint(11, (2, 7))
    changed = tokens.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 11
    one, other = decoder(tokens), decoder(changed)
    assert torch.allclose(one[:, :, :5], other[:, :, :5], atol=1e-6)
    assert not torch.allclose(one[:, :, 5:], other[:, :, 5:], atol=1e-3)


def test_a_perfect_autoencoder_whose_numbers_are_normal_loses_nothing() -> None:
    pixels = torch.randint(2, (3, 784)).float()
    nothing = torch.zeros(3, 20)
    assert float(loss((pixels, nothing, nothing), pixels)) == 0.0
    assert float(loss((pixels, nothing + 2.0, nothing), pixels)) == pytest.approx(3 * 20 * 2.0)


def test_a_block_is_left_out_for_whole_images_and_what_stays_makes_up_for_it() -> None:
    torch.manual_seed(0)
    block = Block(4, 4, 3, 1, 1, p=0.75)
    block.block = nn.Sequential(nn.Identity())
    x = torch.ones(400, 4, 1, 1)
    added = block(x) - x
    assert set(added.unique().tolist()) == {0.0, 4.0}
    assert all(len(image.unique()) == 1 for image in added)
    assert 0.15 < float((added[:, 0] > 0).float().mean()) < 0.35
    assert torch.equal(block.eval()(x), 2 * x)


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name != "gpt2"])
def test_torchvisions_network_computes_the_same_from_these_weights(name: str) -> None:
    models = pytest.importorskip("torchvision.models", reason="torchvision is not installed")
    model = build(name)
    theirs = getattr(models, name)(weights=None)
    assert list(theirs.state_dict()) == list(model.module.state_dict())
    theirs.load_state_dict(model.module.state_dict())
    theirs.eval()
    batch = model.batch(2)
    with torch.inference_mode():
        assert torch.equal(theirs(batch.inputs), model.inference_step(batch))
