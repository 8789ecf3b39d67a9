"""Pooling and interpolation: images of n×c channels and hw×hw pixels become smaller or larger.

Bound by memory. Backward adds where windows overlap, which some devices do with atomic additions.
"""

import torch.nn.functional as F  # noqa: N812

from accel_micro.suite import op

ONCE = {"flops": lambda n, c, hw: n * c * hw * hw}
"""Windows that hardly overlap: each number is added, or compared, once."""
OVERLAPPING = {"flops": lambda n, c, hw: 9 * n * c * ((hw - 1) // 2 + 1) ** 2}
"""3×3 at every second pixel."""


def _enlarged(taps):
    """Twice as large in each direction; a product and a sum for each tap of a number of the result."""
    return {"flops": lambda n, c, hw: 2 * taps * n * c * (2 * hw) ** 2}


TAPS = {"nearest1d": 0, "linear1d": 2, "nearest3d": 0, "trilinear3d": 8}
IMAGES = {
    "standard": ["n=32 c=512 hw=14"],
    "full": ["n=1 c=16 hw=16", "n=256 c=64 hw=112", "n=64 c=64 hw=224"],
}
VOLUMES = ("max_pool3d", "avg_pool3d", "adaptive_max_pool3d", "fractional_max_pool3d")


@op(quick=["resnet.conv1: n=4 c=64 hw=112"], **IMAGES, **OVERLAPPING)
def max_pool(t, n, c, hw):
    """Maxima of overlapping windows of 3×3, every second pixel, as after ResNet's first layer."""
    x = t(n, c, hw, hw)
    return lambda: F.max_pool2d(x, 3, stride=2, padding=1)


@op(standard=["n=32 c=64 hw=56"], full=IMAGES["full"], **OVERLAPPING)
def max_pool_channels_last(t, n, c, hw):
    """The same with the channels of a pixel side by side."""
    x = t(n, c, hw, hw, channels_last=True)
    return lambda: F.max_pool2d(x, 3, stride=2, padding=1)


@op(**IMAGES, **ONCE)
def avg_pool(t, n, c, hw):
    """Means of windows of 2×2, as in DenseNet."""
    x = t(n, c, hw, hw)
    return lambda: F.avg_pool2d(x, 2)


@op(standard=["resnet50: n=32 c=2048 hw=7", "n=1 c=512 hw=7"], full=["resnet50: n=256 c=2048 hw=7"], **ONCE)
def global_pool(t, n, c, hw):
    """The mean of each channel, before the last layer."""
    x = t(n, c, hw, hw)
    return lambda: F.adaptive_avg_pool2d(x, 1)


@op(standard=["vgg16: n=16 c=512 hw=14"], full=["n=64 c=512 hw=13"], **ONCE)
def adaptive_pool(t, n, c, hw, out=6):
    """Means over windows that do not divide evenly, as AlexNet's."""
    x = t(n, c, hw, hw)
    return lambda: F.adaptive_avg_pool2d(x, out)


@op(standard=["n=4 c=64 hw=56"], full=["n=64 c=64 hw=112"], flops=lambda: 0)
def nearest(t, n, c, hw):
    """Twice as large, each pixel four times, as in a decoder."""
    x = t(n, c, hw, hw)
    return lambda: F.interpolate(x, scale_factor=2, mode="nearest")


@op(standard=["n=4 c=64 hw=56"], full=["n=64 c=64 hw=112"], **_enlarged(taps=4))
def bilinear(t, n, c, hw):
    """Twice as large, pixels between others by straight lines."""
    x = t(n, c, hw, hw)
    return lambda: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


@op(full=["n=4 c=64 hw=56"], **_enlarged(taps=16))
def bicubic(t, n, c, hw):
    """Twice as large, pixels between others by curves of the third degree."""
    x = t(n, c, hw, hw)
    return lambda: F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)


@op(
    full=[
        "name=nearest1d n=8 c=64 hw=1000",
        "name=linear1d n=8 c=64 hw=1000",
        "name=nearest3d n=1 c=16 hw=32",
        "name=trilinear3d n=1 c=16 hw=32",
    ],
    flops=lambda name, n, c, hw: 2 * TAPS[name] * n * c * (2 * hw) ** int(name[-2]),
)
def resize(t, name, n, c, hw):
    """Sound and volumes, twice as large in each direction."""
    mode, dimensions = name[:-2], int(name[-2])
    x = t(n, c, *[hw] * dimensions)
    return lambda: F.interpolate(x, scale_factor=2, mode=mode)


@op(full=["n=16 c=64 hw=57"], **ONCE)
def adaptive_max_pool(t, n, c, hw, out=6):
    """Maxima over windows that do not divide evenly."""
    x = t(n, c, hw, hw)
    return lambda: F.adaptive_max_pool2d(x, out)


@op(full=["n=16 c=64 hw=56"], **ONCE)
def fractional_max_pool(t, n, c, hw):
    """Maxima over windows that lie as chance has it, here always the same (Graham, arXiv:1412.6071)."""
    x, places = t(n, c, hw, hw), t.integers(4, n, c, 2).div(4).to(t.floating)
    return lambda: F.fractional_max_pool2d(x, 2, output_size=hw // 2, _random_samples=places)


@op(full=[f"name={name} n=1 c=16 hw=32" for name in VOLUMES], flops=lambda n, c, hw: n * c * hw**3)
def volumes(t, name, n, c, hw):
    """Volumes of hw×hw×hw, half as large in each direction."""
    x, places = t(n, c, hw, hw, hw), t.integers(4, n, c, 3).div(4).to(t.floating)
    if name == "fractional_max_pool3d":
        return lambda: F.fractional_max_pool3d(x, 2, output_size=hw // 2, _random_samples=places)
    return lambda: getattr(F, name)(x, hw // 2 if name.startswith("adaptive") else 2)
