"""Convolutions of images: n images of c channels and hw×hw pixels, into `out` channels.

Every kind of convolution in the classic networks, at the sizes where it stands there: early layers have
many pixels and few channels (bound by memory), late ones the reverse (bound by compute, or by launches at
n=1). First layers have 3 channels in and are a kind of their own: matrix units are idle in reductions of 27
or 147 terms.
"""

import torch.nn.functional as F  # noqa: N812

from accel_micro.suite import op


def _conv(t, n, c, hw, out, k, stride, pad, groups=1, bias=False, channels_last=False):
    x = t(n, c, hw, hw, channels_last=channels_last)
    weight = t(out, c // groups, k, k, channels_last=channels_last)
    b = t(out) if bias else None
    return lambda: F.conv2d(x, weight, b, stride=stride, padding=pad, groups=groups)


def _flops(n, c, hw, out, k, stride, pad, groups=1):
    """A product and a sum for each filter tap and output pixel; as torch does, taps on the padding count."""
    pixels = ((hw + 2 * pad - k) // stride + 1) ** 2
    return 2 * n * out * pixels * (c // groups) * k * k


def _saving(k, stride):
    """How many times fewer FLOPs the fastest algorithm in use may need.

    3×3: Winograd's F(6×6, 3×3), in NNPACK, needs 81/16 times fewer products, the F(4×4, 3×3) of cuDNN and
    oneDNN 4 times (Lavin and Gray, CVPR 2016). Larger filters: by FFT less than the filter's area. Strided
    filters and single pixels: none.
    """
    if stride > 1 or k == 1:
        return 1
    return 81 / 16 if k == 3 else k * k


# A backward has a product for the gradient of each operand. torch's counter takes its groups for one.
WORK = {"flops": _flops, "backward_flops": 2, "saving": _saving}


@op(
    quick=["n=1 c=16 hw=16 out=16", "resnet.layer1: n=16 c=64 hw=56 out=64"],
    standard=[
        "resnet.layer4: n=1 c=512 hw=7 out=512",
        "mnist.conv2: n=64 c=32 hw=26 out=64 pad=0",
        "resnet.layer1: n=32 c=64 hw=56 out=64",
        "resnet.layer4: n=32 c=512 hw=7 out=512",
    ],
    full=[
        "resnet.layer2: n=32 c=128 hw=28 out=128",
        "resnet.layer3: n=32 c=256 hw=14 out=256",
        "resnet.layer1: n=256 c=64 hw=56 out=64",
        "vgg16.2: n=8 c=64 hw=224 out=64",
        "vgg16.12: n=16 c=256 hw=56 out=256",
    ],
    cold=["resnet.layer4: n=1 c=512 hw=7 out=512"],
    sweep="mnist.conv2: n=1..512 c=32 hw=26 out=64 pad=0",
    **WORK,
)
def conv3x3(t, n, c, hw, out, k=3, stride=1, pad=1):
    """The filter that VGG and ResNet are made of."""
    return _conv(t, n, c, hw, out, k, stride, pad)


@op(
    quick=["resnet50.layer1: n=1 c=64 hw=56 out=256"],
    standard=[
        "resnet50.layer1: n=32 c=64 hw=56 out=256",
        "resnet50.layer4: n=32 c=2048 hw=7 out=512",
    ],
    full=[
        "mobilenet_v2.3: n=32 c=24 hw=56 out=144",
        "resnet50.layer3: n=256 c=1024 hw=14 out=256",
    ],
    **WORK,
)
def conv1x1(t, n, c, hw, out, k=1, stride=1, pad=0):
    """Single pixels: a matrix product in disguise."""
    return _conv(t, n, c, hw, out, k, stride, pad)


@op(
    standard=[
        "resnet.layer2: n=32 c=64 hw=56 out=128",
        "resnet.layer4: n=1 c=256 hw=14 out=512",
    ],
    full=[
        "resnet50.layer2 shortcut: n=32 c=256 hw=56 out=512 k=1 pad=0",
        "resnet.layer2: n=256 c=64 hw=56 out=128",
    ],
    **WORK,
)
def strided(t, n, c, hw, out, k=3, stride=2, pad=1):
    """Every second pixel, where a network halves its images."""
    return _conv(t, n, c, hw, out, k, stride, pad)


@op(
    quick=["mobilenet_v2.1: n=1 c=32 hw=112"],
    standard=[
        "mobilenet_v2.1: n=32 c=32 hw=112",
        "mobilenet_v2.17: n=32 c=960 hw=7",
        "efficientnet_b0.3: n=32 c=240 hw=28 k=5",
    ],
    full=[
        "mobilenet_v2.4: n=32 c=144 hw=56 stride=2",
        "mobilenet_v2.1: n=256 c=32 hw=112",
        "efficientnet_b0.5: n=256 c=672 hw=14 k=5",
    ],
    flops=lambda n, c, hw, k, stride: _flops(n, c, hw, c, k, stride, k // 2, groups=c),
    backward_flops=2,
)
def depthwise(t, n, c, hw, k=3, stride=1):
    """Each channel by itself: few FLOPs a byte."""
    return _conv(t, n, c, hw, c, k, stride, k // 2, groups=c)


@op(
    standard=[
        "resnext50.layer1: n=32 c=128 hw=56 out=128 groups=32",
        "alexnet.conv2: n=32 c=96 hw=27 out=256 groups=2 k=5 pad=2",
    ],
    full=[
        "resnext50.layer4: n=1 c=1024 hw=7 out=1024 groups=32",
        "resnext50.layer2: n=256 c=256 hw=28 out=256 groups=32",
    ],
    **WORK,
)
def grouped(t, n, c, hw, out, groups, k=3, stride=1, pad=1):
    """Channels in groups that do not see each other; conv2 is that of the AlexNet paper, on two cards."""
    return _conv(t, n, c, hw, out, k, stride, pad, groups)


@op(
    standard=[
        "resnet.layer1: n=32 c=64 hw=56 out=64",
        "resnet50.layer1: n=32 c=64 hw=56 out=256 k=1 pad=0",
    ],
    full=[
        "mobilenet_v2.1: n=32 c=32 hw=112 out=32 groups=32",
        "resnet.layer4: n=1 c=512 hw=7 out=512",
        "resnet.conv1: n=16 c=3 hw=224 out=64 k=7 stride=2 pad=3",
        "resnet.layer1: n=256 c=64 hw=56 out=64",
        "vgg16.12: n=16 c=256 hw=56 out=256",
    ],
    **WORK,
)
def channels_last(t, n, c, hw, out, k=3, stride=1, pad=1, groups=1):
    """Images and filters with the channels of a pixel side by side, as matrix units want them."""
    return _conv(t, n, c, hw, out, k, stride, pad, groups, channels_last=True)


@op(
    standard=["resnet.layer2: n=16 c=128 hw=28 out=128"],
    full=["resnet.layer1: n=32 c=64 hw=56 out=64"],
    **WORK,
)
def cropped(t, n, c, hw, out, k=3, stride=1, pad=1):
    """The middle of larger images, without a copy: rows with gaps between them."""
    x, weight = t(n, c, hw + 8, hw + 8)[:, :, 4:-4, 4:-4], t(out, c, k, k)
    return lambda: F.conv2d(x, weight, stride=stride, padding=pad)


FIRST_LAYERS = {
    "mnist": "hw=28 out=32 k=3 stride=1 pad=0 c=1 bias=True",
    "alexnet": "hw=224 out=64 k=11 stride=4 pad=2 bias=True",
    "vgg16": "hw=224 out=64 k=3 stride=1 pad=1 bias=True",
    "resnet, googlenet": "hw=224 out=64 k=7 stride=2 pad=3",
    "squeezenet1_0": "hw=224 out=96 k=7 stride=2 pad=0 bias=True",
    "inception_v3": "hw=299 out=32 k=3 stride=2 pad=0",
    "mobilenet_v2, efficientnet_b0": "hw=224 out=32 k=3 stride=2 pad=1",
}


@op(
    quick=["resnet, googlenet: n=1 hw=224 out=64 k=7 stride=2 pad=3"],
    standard=[f"{network}: n=1 {FIRST_LAYERS[network]}" for network in ("mnist", "alexnet", "vgg16")],
    full=[f"{network}: n={n} {layer}" for n in (1, 16, 64) for network, layer in FIRST_LAYERS.items()],
    **WORK,
)
def first_layer(t, n, hw, out, k, stride, pad, c=3, bias=False):
    """What the classic networks do first to an image."""
    return _conv(t, n, c, hw, out, k, stride, pad, bias=bias)
