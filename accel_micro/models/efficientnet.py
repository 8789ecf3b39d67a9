"""EfficientNet-B0 (Tan and Le, arXiv:1905.11946, table 1). 5,288,548 parameters."""

from typing import Final

import torch
from torch import Tensor, nn

from accel_micro.models.images import CLASSES, classifier
from accel_micro.models.model import Network

_STAGES: Final = (
    (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)  # fmt: skip
"""Expansion, filter, stride of the first block, channels, blocks."""

_LEFT_OUT: Final = 0.2
"""Probability with which training leaves out a block, if it were the one after the last; it grows evenly to that."""


def convolution(
    before: int, channels: int, k: int, stride: int = 1, groups: int = 1, active: bool = True
) -> nn.Sequential:
    """Convolution, normalisation and, where it is active, SiLU."""
    layers: list[nn.Module] = [
        nn.Conv2d(before, channels, k, stride, k // 2, groups=groups, bias=False),
        nn.BatchNorm2d(channels),
    ]
    return nn.Sequential(*layers, *([nn.SiLU(inplace=True)] if active else []))


class SqueezeExcitation(nn.Module):
    """Each channel is scaled by what two small layers make of the means of all (Hu et al., arXiv:1709.01507)."""

    def __init__(self, channels: int, narrow: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(channels, narrow, 1)
        self.fc2 = nn.Conv2d(narrow, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """(n, channels, h, w) to the same."""
        means = nn.functional.adaptive_avg_pool2d(x, 1)
        hidden = nn.functional.silu(self.fc1(means), inplace=True)
        return x * torch.sigmoid(self.fc2(hidden))


class Block(nn.Module):
    """Wider by 1×1, a depthwise convolution, a scale for each channel, narrow again by 1×1.

    Where the shape stays there is a way around it, and training takes only that for some images of a batch.
    """

    def __init__(self, before: int, channels: int, k: int, stride: int, expansion: int, p: float) -> None:
        super().__init__()
        wide = before * expansion
        layers: list[nn.Module] = [convolution(before, wide, 1)] if expansion > 1 else []
        self.block = nn.Sequential(
            *layers,
            convolution(wide, wide, k, stride, groups=wide),
            SqueezeExcitation(wide, max(1, before // 4)),
            convolution(wide, channels, 1, active=False),
        )
        self.around = stride == 1 and before == channels
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """(n, before, h, w) to (n, channels, h / stride, w / stride)."""
        out: Tensor = self.block(x)
        if not self.around:
            return out
        if self.training and self.p > 0:
            kept = torch.empty(len(x), 1, 1, 1, dtype=x.dtype, device=x.device).bernoulli_(1 - self.p)
            out = out * kept.div_(1 - self.p)
        return out + x


class EfficientNetB0(nn.Module):
    """Sixteen blocks. Names of the parameters are torchvision's."""

    def __init__(self) -> None:
        super().__init__()
        stages: list[nn.Module] = [convolution(3, 32, 3, 2)]
        before, made, total = 32, 0, sum(blocks for *_, blocks in _STAGES)
        for expansion, k, stride, channels, blocks in _STAGES:
            stage: list[nn.Module] = []
            for index in range(blocks):
                p = _LEFT_OUT * made / total
                stage.append(Block(before, channels, k, stride if index == 0 else 1, expansion, p))
                before, made = channels, made + 1
            stages.append(nn.Sequential(*stage))
        self.features = nn.Sequential(*stages, convolution(before, 1280, 1))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(0.2, inplace=True), nn.Linear(1280, CLASSES))

    def forward(self, images: Tensor) -> Tensor:
        """(n, 3, h, w) to (n, 1000)."""
        return self.classifier(self.avgpool(self.features(images)).flatten(1))  # type: ignore[no-any-return]


def efficientnet_b0() -> Network:
    """The network with new weights."""
    return classifier(EfficientNetB0())
