"""Matrix products: m×k times k×n.

Squares go from launch-bound (64) to compute-bound on the largest accelerators (8192). Skinny shapes are
bound by memory: one token through a layer (m=1), a wide batch through a small one, a long reduction (k)
into a small result. 1023 is a size that no kernel likes. Named shapes are layers people run: those of the
classic MNIST net, VGG, GPT-2 and Llama 2 7B.
"""

import torch
import torch.nn.functional as F  # noqa: N812

from accel_micro.suite import op


def _flops(m, k, n, b=1):
    return 2 * b * m * k * n


WORK = {"flops": _flops, "backward_flops": 2}  # a product for the gradient of each operand


@op(
    quick=["m=64 k=64 n=64", "m=1024 k=1024 n=1024", "m=1 k=2048 n=2048"],
    standard=[
        "m=256 k=256 n=256",
        "m=1023 k=1023 n=1023",
        "m=2048 k=2048 n=2048",
        "m=1 k=4096 n=4096",
        "m=65536 k=64 n=64",
        "m=64 k=65536 n=64",
    ],
    full=[
        "m=128 k=128 n=128",
        "m=512 k=512 n=512",
        "m=16 k=4096 n=4096",
        "m=4096 k=4096 n=4096",
        "m=8192 k=8192 n=8192",
        "m=16384 k=128 n=16384",
    ],
    cold=["m=256 k=256 n=256", "m=1 k=2048 n=2048"],
    sweep="m=16..4096 k=16..4096 n=16..4096",
    **WORK,
)
def mm(t, m, k, n):
    """Product of two matrices, row by row in memory."""
    a, b = t(m, k), t(k, n)
    return lambda: torch.mm(a, b)


@op(
    standard=["m=64 k=64 n=64", "m=1024 k=1024 n=1024"],
    full=[
        "m=1 k=4096 n=4096",
        "m=16 k=4096 n=4096",
        "m=4096 k=4096 n=4096",
        "m=8192 k=8192 n=8192",
    ],
    **WORK,
)
def mm_nt(t, m, k, n):
    """The second operand transposed, as a linear layer's weight is."""
    a, b = t(m, k), t(n, k).t()
    return lambda: torch.mm(a, b)


@op(
    standard=["m=1024 k=1024 n=1024", "m=64 k=65536 n=64"],
    full=["m=64 k=64 n=64", "m=4096 k=4096 n=4096", "m=8192 k=8192 n=8192"],
    **WORK,
)
def mm_tn(t, m, k, n):
    """The first operand transposed, as in the gradient of a weight."""
    a, b = t(k, m).t(), t(k, n)
    return lambda: torch.mm(a, b)


@op(
    quick=["scores: b=48 m=128 k=64 n=128"],
    standard=[
        "b=1024 m=16 k=16 n=16",
        "values: b=12 m=1024 k=1024 n=64",
        "decode: b=32 m=1 k=128 n=2048",
    ],
    full=[
        "b=64 m=64 k=64 n=64",
        "b=16384 m=32 k=32 n=32",
        "b=64 m=1024 k=1024 n=1024",
        "scores: b=128 m=2048 k=64 n=2048",
    ],
    **WORK,
)
def bmm(t, b, m, k, n):
    """Batch of b products; scores and values are those of attention heads."""
    x, y = t(b, m, k), t(b, k, n)
    return lambda: torch.bmm(x, y)


@op(
    standard=["m=512 k=512 n=512"],
    full=["m=4096 k=4096 n=4096"],
    dtypes=("float32",),
    tolerance=1e3,  # of numbers next to zero few bits are left
    **WORK,
)
def mm_denormal(t, m, k, n):
    """The second operand next to zero, as weights that decayed: some processors make exceptions of such numbers."""
    a, b = t(m, k), t(k, n, scale=torch.finfo(t.dtype).tiny / 8)
    return lambda: torch.mm(a, b)


@op(standard=["m=1024 k=1024 n=1024"], full=["m=64 k=64 n=64", "m=4096 k=4096 n=4096"], **WORK)
def mm_strided(t, m, k, n):
    """Every second column of a matrix: no layout that kernels take as it is."""
    a, b = t(m, 2 * k)[:, ::2], t(k, n)
    return lambda: torch.mm(a, b)


@op(standard=["b=64 m=128 k=64 n=128"], full=["b=1024 m=128 k=64 n=128"], **WORK)
def bmm_expanded(t, b, m, k, n):
    """One matrix that stands for all of a batch, without a copy, times a batch."""
    x, y = t(1, m, k).expand(b, m, k), t(b, k, n)
    return lambda: torch.bmm(x, y)


@op(
    standard=["m=64 k=64 n=64", "m=1024 k=1024 n=1024"],
    full=["m=4096 k=4096 n=4096", "m=8192 k=8192 n=8192"],
    **WORK,
)
def addmm(t, m, k, n):
    """Product of two matrices added to a third."""
    c, a, b = t(m, n), t(m, k), t(k, n)
    return lambda: torch.addmm(c, a, b)


@op(
    quick=["mnist.fc1: m=64 k=9216 n=128", "gpt2.mlp: m=128 k=768 n=3072"],
    standard=[
        "mnist.fc2: m=64 k=128 n=10",
        "gpt2.mlp decode: m=1 k=768 n=3072",
        "gpt2.qkv: m=1024 k=768 n=2304",
        "gpt2.head: m=64 k=768 n=50257",
    ],
    full=[
        "llama.gate decode: m=1 k=4096 n=11008",
        "vgg16.fc6: m=32 k=25088 n=4096",
        "llama.gate: m=2048 k=4096 n=11008",
        "m=16384 k=4096 n=4096",
    ],
    cold=["gpt2.mlp decode: m=1 k=768 n=3072"],
    sweep="gpt2.mlp: m=1..4096 k=768 n=3072",
    **WORK,
)
def linear(t, m, k, n):
    """Layer with k inputs, n outputs and a bias, applied to m rows."""
    x, weight, bias = t(m, k), t(n, k), t(n)
    return lambda: F.linear(x, weight, bias)


@op(full=["b=8 m=256 k=64 n=256"], **WORK)
def addbmm(t, b, m, k, n):
    """The sum of a batch of products, added to a matrix."""
    c, x, y = t(m, n), t(b, m, k), t(b, k, n)
    return lambda: torch.addbmm(c, x, y)


@op(full=["m=1000 n=1000"], flops=lambda m, n: 2 * m * n)
def addr(t, m, n):
    """Each number of one vector times each of another, added to a matrix."""
    c, x, y = t(m, n), t(m), t(n)
    return lambda: torch.addr(c, x, y)
