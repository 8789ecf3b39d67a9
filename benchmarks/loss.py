"""Losses: a number from predictions and targets.

Cross entropy over a large vocabulary is one of the dearest lines of training a language model: its logits are larger
than any activation, and backward writes as many again.
"""

import torch
import torch.nn.functional as F  # noqa: N812

from accel_micro.suite import op

CLASSES = {
    "quick": ["gpt2: n=64 classes=50257"],
    "standard": ["mnist: n=64 classes=10", "imagenet: n=256 classes=1000"],
    "full": ["gpt2: n=1024 classes=50257", "llama3: n=2048 classes=128256"],
}
NUMBERS = {"standard": ["n=1000000"], "full": ["n=1000", "n=16777216"]}
WORK = {"flops": lambda n, classes: 4 * n * classes}
SUM = {"flops": lambda n: 4 * n}


@op(**CLASSES, **WORK)
def cross_entropy(t, n, classes):
    """Of the right class among many, from logits."""
    x, target = t(n, classes), t.integers(classes, n)
    return lambda: F.cross_entropy(x, target)


@op(
    full=["n=2 classes=21 hw=64", "deeplab: n=8 classes=21 hw=513"],
    flops=lambda n, classes, hw: 4 * n * classes * hw * hw,
)
def cross_entropy_pixels(t, n, classes, hw):
    """A class for each pixel, as in segmentation: classes lie an image apart."""
    x, target = t(n, classes, hw, hw), t.integers(classes, n, hw, hw)
    return lambda: F.cross_entropy(x, target)


@op(
    standard=CLASSES["standard"],
    full=CLASSES["full"][:1],
    bytes=lambda n, itemsize: n * (8 + itemsize),
    flops=lambda n: n,
)
def nll(t, n, classes):
    """The same from logarithms of probabilities: it picks one number a row."""
    x, target = t(n, classes) - 3.0, t.integers(classes, n)
    return lambda: F.nll_loss(x, target)


@op(**NUMBERS, **SUM)
def mse(t, n):
    """Mean square difference."""
    x, y = t(n), t(n, constant=True)
    return lambda: F.mse_loss(x, y)


@op(**NUMBERS, **SUM)
def smooth_l1(t, n):
    """Square where small, absolute where large, as for bounding boxes."""
    x, y = t(n), t(n, constant=True)
    return lambda: F.smooth_l1_loss(x, y)


@op(**NUMBERS, **SUM, bytes=lambda n, itemsize: 2 * n * itemsize)
def bce_with_logits(t, n):
    """Binary cross entropy from logits."""
    x, y = t(n), t.integers(2, n).to(t.floating)
    return lambda: F.binary_cross_entropy_with_logits(x, y)


@op(
    standard=["speech: n=8 length=200 classes=32 target=30"],
    full=["speech: n=64 length=800 classes=32 target=120"],
    dtypes=("float32", "float64"),
    flops=lambda n, length, target: 12 * n * length * target,
    tolerance=300.0,  # probabilities are exponentials of logarithms near -length, rounded there
)
def ctc(t, n, length, classes, target):
    """Connectionist temporal classification: over all ways in which a text may lie along a recording."""
    logits, texts = t(length, n, classes), t.integers(classes - 1, n, target) + 1
    lengths = torch.full((n,), length), torch.full((n,), target)
    return lambda: F.ctc_loss(torch.log_softmax(logits, 2), texts, *lengths)


@op(
    full=["n=1000", "n=1000000"],
    dtypes=("float32", "bfloat16", "float64"),
    bytes=lambda n, itemsize: 2 * n * itemsize,
    tolerance=2.0,
    **SUM,
)
def bce(t, n):
    """Binary cross entropy from probabilities, as in autoencoders. 1 - p is rounded as p is, hence the tolerance."""
    x, y = t(n, scale=0.5), t.integers(2, n).to(t.floating)
    return lambda: F.binary_cross_entropy(torch.sigmoid(x), y)
