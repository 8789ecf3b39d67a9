"""AlexNet, as Krizhevsky wrote it for one card (arXiv:1404.5997). 61,100,840 parameters."""

from torch import Tensor, nn

from accel_micro.models.images import CLASSES, classifier
from accel_micro.models.model import Network


class AlexNet(nn.Module):
    """Five convolutions, three layers of neurons. Names of the parameters are torchvision's."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 11, stride=4, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        )  # fmt: skip
        self.avgpool = nn.AdaptiveAvgPool2d(6)
        self.classifier = nn.Sequential(
            nn.Dropout(), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(inplace=True),
            nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(inplace=True),
            nn.Linear(4096, CLASSES),
        )  # fmt: skip

    def forward(self, images: Tensor) -> Tensor:
        """(n, 3, h, w) to (n, 1000)."""
        return self.classifier(self.avgpool(self.features(images)).flatten(1))  # type: ignore[no-any-return]


def alexnet() -> Network:
    """The network with new weights."""
    return classifier(AlexNet())
