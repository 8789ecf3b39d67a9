"""VGG with sixteen layers (Simonyan and Zisserman, arXiv:1409.1556, column D). 138,357,544 parameters."""

from typing import Final

from torch import Tensor, nn

from accel_micro.models.images import CLASSES, classifier
from accel_micro.models.model import Network

_BLOCKS: Final = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
"""Channels of the convolutions before each halving of the image."""


class VGG16(nn.Module):
    """Convolutions of 3×3 and nothing else, then three layers of neurons. Names are torchvision's."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        for block in _BLOCKS:
            for channels in block:
                layers += [nn.Conv2d(before, channels, 3, padding=1), nn.ReLU(inplace=True)]
                before = channels
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(
            nn.Linear(before * 7 * 7, 4096), nn.ReLU(inplace=True), nn.Dropout(),
            nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(),
            nn.Linear(4096, CLASSES),
        )  # fmt: skip

    def forward(self, images: Tensor) -> Tensor:
        """(n, 3, h, w) to (n, 1000)."""
        return self.classifier(self.avgpool(self.features(images)).flatten(1))  # type: ignore[no-any-return]


def vgg16() -> Network:
    """The network with new weights."""
    return classifier(VGG16())
