"""What every reference network is: a module, a batch, a loss, an optimizer, and the two steps that they make."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


@dataclass(frozen=True)
class Batch:
    """Inputs of the module, and what its output is compared with."""

    inputs: Tensor
    target: Tensor


MakeBatch = Callable[[int, torch.dtype, torch.Generator], Batch]
"""Examples, dtype of floating-point inputs and a generator of the CPU → a batch on the CPU."""

Loss = Callable[[Any, Tensor], Tensor]
"""The module's output and the target → a number."""


@dataclass(frozen=True)
class Network:
    """A network's description, which its file gives; `build` makes a `Model` of it.

    Attributes:
        optimizer: parameters → the optimizer that trains it.
    """

    module: nn.Module
    batch: MakeBatch
    loss: Loss
    optimizer: Callable[[Iterator[nn.Parameter]], Optimizer]


@dataclass(frozen=True)
class Model:
    """A network with weights on a device.

    Attributes:
        make_batch: makes a batch on the CPU; call `batch`, which moves it to the device.
        seed: of weights and batches.
    """

    name: str
    module: nn.Module
    make_batch: MakeBatch
    loss: Loss
    optimizer: Optimizer
    seed: int

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.module.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """Of the weights."""
        return next(self.module.parameters()).dtype

    def batch(self, n: int, generator: torch.Generator | None = None) -> Batch:
        """n examples on the model's device: the same on every device, and with every call.

        Args:
            generator: of the CPU, for other examples than those of the seed.
        """
        generator = generator or torch.Generator().manual_seed(self.seed)
        made = self.make_batch(n, self.dtype, generator)
        return Batch(made.inputs.to(self.device), made.target.to(self.device))

    def training_step(self, batch: Batch) -> Tensor:
        """Gradients to nothing, forward, loss, backward, a step of the optimizer. The loss stays on the device."""
        self.module.train()
        self.optimizer.zero_grad()
        loss = self.loss(self.module(batch.inputs), batch.target)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach()

    def inference_step(self, batch: Batch) -> Any:
        """Forward as in use: without gradients, dropout or statistics of the batch."""
        self.module.eval()
        # torch_xla has no inference mode: "Cannot set version_counter for inference tensor" (2.9).
        mode = torch.no_grad() if self.device.type == "xla" else torch.inference_mode()
        with mode:
            return self.module(batch.inputs)


def with_weights(name: str, describe: Callable[[], Network], device: str, dtype: str, seed: int) -> Model:
    """The network that a description gives, with weights of this seed, drawn on the CPU and then moved.

    The states of torch's random generators are left as they were.
    """
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(seed)
        network = describe()
    module = network.module.to(torch.device(device), getattr(torch, dtype))
    return Model(name, module, network.batch, network.loss, network.optimizer(module.parameters()), seed)
