"""The variational autoencoder of pytorch/examples (vae; Kingma and Welling, arXiv:1312.6114). 652,824 parameters."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from accel_micro.models.images import adam
from accel_micro.models.model import Batch, Network

_PIXELS = 784


class VAE(nn.Module):
    """Digits to twenty numbers and back, under the names that the example gives its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(_PIXELS, 400)
        self.fc21 = nn.Linear(400, 20)
        self.fc22 = nn.Linear(400, 20)
        self.fc3 = nn.Linear(20, 400)
        self.fc4 = nn.Linear(400, _PIXELS)
        self.draws = 1.0  # 0 takes the mean, see `still`

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(n, 1, 28, 28) to pixels (n, 784), and to means and logarithms of variances (n, 20)."""
        hidden = F.relu(self.fc1(images.view(-1, _PIXELS)))
        mean, log_variance = self.fc21(hidden), self.fc22(hidden)
        deviation = torch.exp(0.5 * log_variance)
        drawn = mean + torch.randn_like(deviation) * deviation if self.draws else mean
        return torch.sigmoid(self.fc4(F.relu(self.fc3(drawn)))), mean, log_variance


def loss(output: tuple[Tensor, Tensor, Tensor], pixels: Tensor) -> Tensor:
    """Cross entropy of the pixels, summed, and how far the twenty are from normal (appendix B of the paper)."""
    made, mean, log_variance = output
    entropy = F.binary_cross_entropy(made, pixels, reduction="sum")
    return entropy - 0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())


def batch(n: int, dtype: torch.dtype, generator: torch.Generator) -> Batch:
    """Images between 0 and 1, (n, 1, 28, 28), and the same as pixels, (n, 784)."""
    images = torch.rand(n, 1, 28, 28, generator=generator).to(dtype)
    return Batch(images, images.view(n, _PIXELS))


def vae() -> Network:
    """The network with new weights."""
    return Network(VAE(), batch, loss, adam)
