"""The network for handwritten digits of pytorch/examples (mnist): Adadelta. 1,199,882 parameters."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from accel_micro.models.model import Batch, Network


class Net(nn.Module):
    """Two convolutions and two layers of neurons, under the names that the example gives them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, images: Tensor) -> Tensor:
        """(n, 1, 28, 28) to logarithms of probabilities, (n, 10)."""
        x = F.relu(self.conv2(F.relu(self.conv1(images))))
        x = self.dropout1(F.max_pool2d(x, 2)).flatten(1)
        return F.log_softmax(self.fc2(self.dropout2(F.relu(self.fc1(x)))), dim=1)


def batch(n: int, dtype: torch.dtype, generator: torch.Generator) -> Batch:
    """Normal images, as normalised digits are, (n, 1, 28, 28), and a digit for each, (n)."""
    images = torch.randn(n, 1, 28, 28, generator=generator).to(dtype)
    return Batch(images, torch.randint(10, (n,), generator=generator))


def adadelta(parameters: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
    """Adadelta with the example's rate."""
    return torch.optim.Adadelta(parameters, lr=1.0)


def mnist() -> Network:
    """The network with new weights."""
    return Network(Net(), batch, F.nll_loss, adadelta)
