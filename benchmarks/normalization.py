"""Normalisations: rows, channels or groups of channels are brought to mean 0 and variance 1, and scaled.

All are bound by memory once they are large: some ten FLOPs for each number that is read. Batch statistics
(`batch_norm`) need the whole batch before the first number can be written; with known statistics
(`batch_norm_eval`) a pass suffices. Layer and RMS norms go over the last dimension, as in transformers.
"""

import torch
import torch.nn.functional as F  # noqa: N812

from accel_micro.suite import op

IMAGES = {
    "quick": ["resnet.layer1: n=16 c=64 hw=56"],
    "standard": [
        "n=1 c=16 hw=16",
        "resnet.layer4: n=32 c=512 hw=7",
    ],
    "full": [
        "mobilenet_v2.1: n=32 c=32 hw=112",
        "resnet.conv1: n=256 c=64 hw=112",
        "resnet.layer3: n=256 c=256 hw=14",
    ],
}
ROWS = {
    "quick": ["bert: rows=1024 width=768"],
    "standard": ["rows=64 width=64", "llama: rows=2048 width=4096"],
    "full": [
        "decode: rows=1 width=4096",
        "rows=65536 width=128",
        "rows=64 width=65536",
        "llama: rows=16384 width=4096",
    ],
}
# The statistics of a row or channel are sums, each of about as many FLOPs as it has numbers.
OF_IMAGES = {"flops": lambda n, c, hw: 8 * n * c * hw * hw}
OF_ROWS = {"flops": lambda rows, width: 8 * rows * width}


@op(**IMAGES, **OF_IMAGES)
def batch_norm(t, n, c, hw):
    """Training: statistics of the batch, and a running average of them."""
    x, weight, bias = t(n, c, hw, hw), t(c), t(c)
    mean, variance = t(c, constant=True), t(c, constant=True).abs()
    return lambda: F.batch_norm(x, mean, variance, weight, bias, training=True)


@op(standard=IMAGES["quick"], full=IMAGES["standard"] + IMAGES["full"], **OF_IMAGES)
def batch_norm_eval(t, n, c, hw):
    """Inference: a scale and a shift for each channel."""
    x, weight, bias = t(n, c, hw, hw), t(c), t(c)
    mean, variance = t(c, constant=True), t(c, constant=True).square() + 0.5
    return lambda: F.batch_norm(x, mean, variance, weight, bias)


@op(standard=IMAGES["quick"], full=IMAGES["standard"] + IMAGES["full"], **OF_IMAGES)
def group_norm(t, n, c, hw, groups=8):
    """Statistics of groups of channels, image by image, as in diffusion models."""
    x, weight, bias = t(n, c, hw, hw), t(c), t(c)
    return lambda: F.group_norm(x, groups, weight, bias)


@op(cold=ROWS["quick"], sweep="bert: rows=1..16384 width=768", **ROWS, **OF_ROWS)
def layer_norm(t, rows, width):
    """Statistics of each row."""
    x, weight, bias = t(rows, width), t(width), t(width)
    return lambda: F.layer_norm(x, (width,), weight, bias)


@op(standard=ROWS["quick"], full=ROWS["standard"] + ROWS["full"], **OF_ROWS)
def rms_norm(t, rows, width):
    """Root mean square of each row, and no mean, as in Llama."""
    x, weight = t(rows, width), t(width)
    if not hasattr(F, "rms_norm"):
        raise NotImplementedError(f"torch {torch.__version__} has no rms_norm; it came with 2.4")
    return lambda: F.rms_norm(x, (width,), weight, 1e-6)


@op(full=["n=16 c=64 hw=56", "style transfer: n=4 c=128 hw=128"], **OF_IMAGES)
def instance_norm(t, n, c, hw):
    """Statistics of each channel of each image, as in style transfer."""
    x, weight, bias = t(n, c, hw, hw), t(c), t(c)
    return lambda: F.instance_norm(x, weight=weight, bias=bias)
