"""What the networks that name images share: batches, loss, optimizer, first weights."""

from collections.abc import Iterator
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from accel_micro.models.model import Batch, Network

CLASSES: Final = 1000
_SIZE: Final = 224


def classifier(module: nn.Module) -> Network:
    """A network from images of 3×224×224 to logits of a thousand classes, trained by Adam with a rate of 0.001."""
    _start(module)
    return Network(module, batch, F.cross_entropy, adam)


def batch(n: int, dtype: torch.dtype, generator: torch.Generator) -> Batch:
    """Normal images, as normalised photographs are, (n, 3, 224, 224), and a class for each, (n)."""
    images = torch.randn(n, 3, _SIZE, _SIZE, generator=generator).to(dtype)
    return Batch(images, torch.randint(CLASSES, (n,), generator=generator))


def adam(parameters: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
    """Adam with its usual rate."""
    return torch.optim.Adam(parameters, lr=1e-3)


def _start(module: nn.Module) -> None:
    """Weights that keep the size of gradients from layer to layer (He et al., ICCV 2015), and biases of zero.

    torch's own first weights shrink activations by 0.4 a layer: after the sixteen of VGG they would be near 1e-6.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.01)
        if isinstance(layer, nn.Conv2d | nn.Linear) and layer.bias is not None:
            nn.init.zeros_(layer.bias)
