"""SqueezeNet 1.0 (Iandola et al., arXiv:1602.07360, table 1). 1,248,424 parameters."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from accel_micro.models.images import CLASSES, classifier
from accel_micro.models.model import Network


class Fire(nn.Module):
    """Narrow by 1×1, then wide by 1×1 and by 3×3 side by side."""

    def __init__(self, before: int, narrow: int, wide: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(before, narrow, 1)
        self.expand1x1 = nn.Conv2d(narrow, wide, 1)
        self.expand3x3 = nn.Conv2d(narrow, wide, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """(n, before, h, w) to (n, 2 wide, h, w)."""
        x = F.relu(self.squeeze(x), inplace=True)
        wide = (F.relu(expand(x), inplace=True) for expand in (self.expand1x1, self.expand3x3))
        return torch.cat(list(wide), dim=1)


class SqueezeNet(nn.Module):
    """Eight of them. Names of the parameters are torchvision's."""

    def __init__(self) -> None:
        super().__init__()

        def pool() -> nn.Module:
            return nn.MaxPool2d(3, 2, ceil_mode=True)

        self.features = nn.Sequential(
            nn.Conv2d(3, 96, 7, stride=2), nn.ReLU(inplace=True), pool(),
            Fire(96, 16, 64), Fire(128, 16, 64), Fire(128, 32, 128), pool(),
            Fire(256, 32, 128), Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256), pool(),
            Fire(512, 64, 256),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Dropout(), nn.Conv2d(512, CLASSES, 1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1)
        )

    def forward(self, images: Tensor) -> Tensor:
        """(n, 3, h, w) to (n, 1000)."""
        return self.classifier(self.features(images)).flatten(1)  # type: ignore[no-any-return]


def squeezenet1_0() -> Network:
    """The network with new weights."""
    return classifier(SqueezeNet())
