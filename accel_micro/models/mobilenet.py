"""MobileNetV2 (Sandler et al., arXiv:1801.04381, table 2). 3,504,872 parameters."""

from typing import Final

from torch import Tensor, nn

from accel_micro.models.images import CLASSES, classifier
from accel_micro.models.model import Network

_STAGES: Final = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip
"""Expansion, channels, blocks, stride of the first of them."""


def convolution(before: int, channels: int, k: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """Convolution, normalisation, ReLU6."""
    return nn.Sequential(
        nn.Conv2d(before, channels, k, stride, k // 2, groups=groups, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU6(inplace=True),
    )


class Block(nn.Module):
    """Wider by 1×1, a depthwise 3×3, narrow again by 1×1; around it where the shape stays."""

    def __init__(self, before: int, channels: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = before * expansion
        layers: list[nn.Module] = [convolution(before, wide, 1)] if expansion > 1 else []
        self.conv = nn.Sequential(
            *layers,
            convolution(wide, wide, 3, stride, groups=wide),
            nn.Conv2d(wide, channels, 1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.around = stride == 1 and before == channels

    def forward(self, x: Tensor) -> Tensor:
        """(n, before, h, w) to (n, channels, h / stride, w / stride)."""
        return x + self.conv(x) if self.around else self.conv(x)  # type: ignore[no-any-return]


class MobileNetV2(nn.Module):
    """Seventeen blocks. Names of the parameters are torchvision's."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [convolution(3, 32, 3, 2)]
        before = 32
        for expansion, channels, blocks, stride in _STAGES:
            for index in range(blocks):
                layers.append(Block(before, channels, stride if index == 0 else 1, expansion))
                before = channels
        self.features = nn.Sequential(*layers, convolution(before, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, CLASSES))

    def forward(self, images: Tensor) -> Tensor:
        """(n, 3, h, w) to (n, 1000)."""
        x = nn.functional.adaptive_avg_pool2d(self.features(images), 1)
        return self.classifier(x.flatten(1))  # type: ignore[no-any-return]


def mobilenet_v2() -> Network:
    """The network with new weights."""
    return classifier(MobileNetV2())
