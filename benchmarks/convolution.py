"""Convolutions other than those of images: sound, volumes, transposed and dilated ones. Images are in conv2d.

A transposed convolution is what a convolution's backward is with respect to its images.
"""

import torch.nn.functional as F  # noqa: N812

from accel_micro.suite import op


def _work(flops):
    """A product for the gradient of each operand, as forward has one."""
    return {"flops": flops, "backward_flops": 2}


@op(
    quick=["n=8 c=64 length=1000 out=64"],
    standard=["whisper.conv2: n=1 c=384 length=3000 out=384 stride=2"],
    full=["wav2vec: n=8 c=512 length=16000 out=512", "n=64 c=256 length=1000 out=256 k=15"],
    **_work(lambda n, c, length, out, k, stride: 2 * n * out * c * k * ((length - 1) // stride + 1)),
)
def conv1d(t, n, c, length, out, k=3, stride=1):
    """Along time: sound, text, sensors."""
    x, weight, bias = t(n, c, length), t(out, c, k), t(out)
    return lambda: F.conv1d(x, weight, bias, stride=stride, padding=k // 2)


@op(
    standard=["n=1 c=16 depth=16 hw=32 out=16"],
    full=["resnet3d.layer1: n=8 c=64 depth=16 hw=56 out=64", "unet3d: n=1 c=32 depth=64 hw=128 out=32"],
    **_work(lambda n, c, depth, hw, out, k: 2 * n * out * c * k**3 * depth * hw**2),
)
def conv3d(t, n, c, depth, hw, out, k=3):
    """Volumes: video, scans."""
    x, weight = t(n, c, depth, hw, hw), t(out, c, k, k, k)
    return lambda: F.conv3d(x, weight, padding=k // 2)


@op(
    standard=["dcgan.2: n=16 c=256 hw=8 out=128"],
    full=["dcgan.4: n=64 c=64 hw=32 out=3", "unet.up1: n=8 c=1024 hw=32 out=512 k=2 pad=0"],
    **_work(lambda n, c, hw, out, k: 2 * n * out * c * k**2 * hw**2),
)
def transposed(t, n, c, hw, out, k=4, stride=2, pad=1):
    """Images that become twice as large, as in a generator."""
    x, weight = t(n, c, hw, hw), t(c, out, k, k)
    return lambda: F.conv_transpose2d(x, weight, stride=stride, padding=pad)


@op(
    standard=["deeplab.aspp: n=1 c=256 hw=33 out=64 dilation=6"],
    full=["deeplab.aspp: n=8 c=2048 hw=33 out=256 dilation=18", "n=16 c=64 hw=56 out=64 dilation=2"],
    **_work(lambda n, c, hw, out, k: 2 * n * out * c * k**2 * hw**2),
)
def dilated(t, n, c, hw, out, dilation, k=3):
    """A filter with holes, which sees far at the cost of a small one."""
    x, weight = t(n, c, hw, hw), t(out, c, k, k)
    return lambda: F.conv2d(x, weight, padding=dilation, dilation=dilation)


@op(
    full=["wavegan: n=8 c=128 length=256 out=64"],
    **_work(lambda n, c, length, out, k: 2 * n * out * c * k * length),
)
def transposed1d(t, n, c, length, out, k=25, stride=4):
    """Sound that becomes four times as long."""
    x, weight = t(n, c, length), t(c, out, k)
    return lambda: F.conv_transpose1d(x, weight, stride=stride, padding=k // 2, output_padding=stride - 1)


@op(
    full=["unet3d.up: n=1 c=64 depth=8 hw=16 out=32"],
    **_work(lambda n, c, depth, hw, out, k: 2 * n * out * c * k**3 * depth * hw**2),
)
def transposed3d(t, n, c, depth, hw, out, k=2):
    """Volumes that become twice as large."""
    x, weight = t(n, c, depth, hw, hw), t(c, out, k, k, k)
    return lambda: F.conv_transpose3d(x, weight, stride=k)
