"""Names of the reference networks. Listing them loads no torch; building one does."""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from accel_micro.models.model import Model, Network

SEED: Final = 20_261_128
"""Of weights and batches, unless another is asked for."""

_MODULES: Final = {
    "vgg16": "vgg",
    "alexnet": "alexnet",
    "resnet18": "resnet",
    "mobilenet_v2": "mobilenet",
    "efficientnet_b0": "efficientnet",
    "squeezenet1_0": "squeezenet",
    "mnist": "mnist",
    "vae": "vae",
    "encoder": "transformer",
    "gpt2": "transformer",
    "lstm": "lstm",
}
"""Network → the file that has a function of its name."""

NAMES: Final = tuple(_MODULES)


class UnknownModel(ValueError):
    """No network has that name; the message lists those there are."""


def build(name: str, device: str = "cpu", dtype: str = "float32", seed: int = SEED) -> "Model":
    """The network of that name, ready to train, with the same weights on every device.

    Weights are drawn on the CPU, then moved. The states of torch's random generators are left as they were.

    Args:
        device: as torch writes it, such as `cuda:1`. dtype: of weights and images, such as `bfloat16`.

    Raises:
        UnknownModel: there is none of that name.
    """
    module = module_of(name)
    from accel_micro.models.model import with_weights

    describe = cast("Callable[[], Network]", getattr(importlib.import_module(module), name))
    return with_weights(name, describe, device, dtype, seed)


def module_of(name: str) -> str:
    """The module that has a function of a network's name, which describes it.

    Raises:
        UnknownModel: there is none of that name.
    """
    if name not in _MODULES:
        raise UnknownModel(f"unknown model {name!r}; known: {', '.join(NAMES)}")
    return f"accel_micro.models.{_MODULES[name]}"
