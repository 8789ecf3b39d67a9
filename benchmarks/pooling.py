"""Pooling and interpolation: images of n×c channels and hw×hw pixels become smaller or larger.

Bound by memory. Backward adds where windows overlap, which some devices do with atomic additions.
"""

import torch.nn.functional as F  # noqa: N812

from accel_micro.suite import op

WORK = {"flops": lambda n, c, hw: 9 * n * c * hw * hw}
IMAGES = {
    "standard": ["n=32 c=512 hw=14"],
    "full": ["n=1 c=16 hw=16", "n=256 c=64 hw=112", "n=64 c=64 hw=224"],
}


@op(quick=["resnet.conv1: n=4 c=64 hw=112"], **IMAGES, **WORK)
def max_pool(t, n, c, hw):
    """Maxima of overlapping windows of 3×3, every second pixel, as after ResNet's first layer."""
    x = t(n, c, hw, hw)
    return lambda: F.max_pool2d(x, 3, stride=2, padding=1)


@op(standard=["n=32 c=64 hw=56"], full=IMAGES["full"], **WORK)
def max_pool_channels_last(t, n, c, hw):
    """The same with the channels of a pixel side by side."""
    x = t(n, c, hw, hw, channels_last=True)
    return lambda: F.max_pool2d(x, 3, stride=2, padding=1)


@op(**IMAGES, **WORK)
def avg_pool(t, n, c, hw):
    """Means of windows of 2×2, as in DenseNet."""
    x = t(n, c, hw, hw)
    return lambda: F.avg_pool2d(x, 2)


@op(standard=["resnet50: n=32 c=2048 hw=7", "n=1 c=512 hw=7"], full=["resnet50: n=256 c=2048 hw=7"], **WORK)
def global_pool(t, n, c, hw):
    """The mean of each channel, before the last layer."""
    x = t(n, c, hw, hw)
    return lambda: F.adaptive_avg_pool2d(x, 1)


@op(standard=["vgg16: n=16 c=512 hw=14"], full=["n=64 c=512 hw=13"], **WORK)
def adaptive_pool(t, n, c, hw, out=6):
    """Means over windows that do not divide evenly, as AlexNet's."""
    x = t(n, c, hw, hw)
    return lambda: F.adaptive_avg_pool2d(x, out)


@op(standard=["n=4 c=64 hw=56"], full=["n=64 c=64 hw=112"], **WORK)
def nearest(t, n, c, hw):
    """Twice as large, each pixel four times, as in a decoder."""
    x = t(n, c, hw, hw)
    return lambda: F.interpolate(x, scale_factor=2, mode="nearest")


@op(standard=["n=4 c=64 hw=56"], full=["n=64 c=64 hw=112"], **WORK)
def bilinear(t, n, c, hw):
    """Twice as large, pixels between others by straight lines."""
    x = t(n, c, hw, hw)
    return lambda: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
