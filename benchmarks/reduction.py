"""Reductions: sums, means, maxima and norms along a dimension, and softmax.

Along the last dimension (`dim=1`) a row lies together in memory; along the first (`dim=0`) the numbers of a sum lie a
row apart. Few long rows keep a GPU's processors idle unless a kernel splits rows; many short ones are bound by launch
and by memory.
"""

import torch

from accel_micro.measure.inputs import Timed
from accel_micro.suite import op

MATRICES = {
    "standard": ["rows=1000 width=1000 dim=1", "rows=1000 width=1000 dim=0"],
    "full": [
        "rows=16 width=65536 dim=1",
        "rows=65536 width=64 dim=1",
        "rows=65536 width=64 dim=0",
        "rows=8192 width=8192 dim=1",
    ],
}
FEWER = {"standard": MATRICES["standard"][:1], "full": [*MATRICES["standard"][1:], *MATRICES["full"]]}
ROWS = {
    "standard": ["rows=64 width=64", "gpt2.head: rows=64 width=50257"],
    "full": [
        "gpt2.scores: rows=12288 width=1024",
        "rows=1 width=1048576",
        "rows=1048576 width=16",
        "llama.scores: rows=65536 width=2048",
    ],
}
WORK = {"flops": lambda rows, width: rows * width}


@op(quick=["rows=1000 width=1000 dim=1"], cold=["rows=1000 width=1000 dim=1"], **MATRICES, **WORK)
def sum(t, rows, width, dim):
    """Sum along a dimension."""
    x = t(rows, width)
    return lambda: torch.sum(x, dim)


@op(standard=["rows=1000 width=1000 dim=1"], full=MATRICES["full"], **WORK)
def sum_strided(t, rows, width, dim):
    """Sum of every second number along a dimension."""
    x = t(rows, 2 * width)[:, ::2]
    return lambda: torch.sum(x, dim)


@op(standard=["n=1000000"], full=["n=1000", "n=16777216"], flops=lambda n: n)
def sum_all(t, n):
    """Sum of everything: a single number."""
    x = t(n) + 0.5
    return lambda: torch.sum(x)


@op(**FEWER, **WORK)
def mean(t, rows, width, dim):
    """Mean along a dimension, which is kept with size 1."""
    x = t(rows, width)
    return lambda: torch.mean(x, dim, keepdim=True)


@op(**FEWER, **WORK)
def var(t, rows, width, dim):
    """Variance along a dimension."""
    x = t(rows, width)
    return lambda: torch.var(x, dim)


@op(**FEWER, **WORK)
def amax(t, rows, width, dim):
    """Maximum along a dimension."""
    x = t(rows, width)
    return lambda: torch.amax(x, dim)


@op(**FEWER, tolerance=2.0, **WORK)  # backward takes the exponential of the rounded result
def logsumexp(t, rows, width, dim):
    """Logarithm of a sum of exponentials, without overflow."""
    x = t(rows, width)
    return lambda: torch.logsumexp(x, dim)


@op(standard=["n=1000000"], full=["n=1000", "n=16777216"], flops=lambda n: 2 * n, terms=lambda n: n)
def norm(t, n):
    """Length of a vector, as when gradients are clipped."""
    x = t(n)
    return lambda: torch.linalg.vector_norm(x)


@op(quick=["gpt2.scores: rows=3072 width=256"], sweep="rows=1..16384 width=1024", **ROWS, **WORK)
def softmax(t, rows, width):
    """Probabilities along each row."""
    x = t(rows, width)
    return lambda: torch.softmax(x, 1)


@op(**ROWS, **WORK)
def log_softmax(t, rows, width):
    """Their logarithms."""
    x = t(rows, width)
    return lambda: torch.log_softmax(x, 1)


@op(full=["name=all n=1000000", "name=any n=1000000"], backward=False, flops=lambda n: n, bytes=lambda n: n)
def truth(t, name, n):
    """Whether all, or any, of many booleans are true. The result is a number, 1 or 2."""
    x = t(n) < (100 if name == "all" else 1)
    return Timed(lambda: getattr(torch, name)(x), lambda: getattr(torch, name)(x).to(t.floating) + 1)
