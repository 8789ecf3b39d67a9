"""Linear algebra: factorisations, systems of equations, eigenvalues, of one matrix or of many small ones.

Small matrices show the cost of a call, batches of them how well a library spreads them. Factors are unique up to signs,
so what is compared with float64 is their product, or what does not depend on signs. Matrices are well conditioned: half
of the identity is added where that matters.
"""

import torch

from accel_micro.measure.inputs import Timed
from accel_micro.suite import op

SHAPES = {"standard": ["n=32", "n=512", "n=16 b=128"], "full": ["n=2048", "n=4096", "n=64 b=4096"]}
FACTS = {"dtypes": ("float32", "float64")}


def _cubic(factor):
    return {"flops": lambda n, b: factor * b * n**3, "tolerance": 16.0}


def _matrix(t, n, b):
    """Eigenvalues between about 1 and 3, in modulus."""
    return t(b, n, n, scale=0.5 / n**0.5) + 2 * torch.eye(n, device=t.here, dtype=t.floating)


def _positive(t, n, b):
    x = t(b, n, n, constant=True)
    return x @ x.mT / n + torch.eye(n, device=t.here, dtype=t.floating)


@op(
    quick=["n=512"],
    **{**SHAPES, "standard": ["n=32", "n=16 b=128"]},
    **FACTS,
    **_cubic(1 / 3),
    backward=False,
)
def cholesky(t, n, b=1):
    """Lower factor of a symmetric positive matrix."""
    x = _positive(t, n, b)
    return lambda: torch.linalg.cholesky(x)


@op(**SHAPES, **FACTS, **_cubic(8 / 3), backward=False)  # half of it writes the orthogonal factor out
def qr(t, n, b=1):
    """Orthogonal times upper triangular."""
    x = _matrix(t, n, b)
    return Timed(lambda: torch.linalg.qr(x), lambda: _product(torch.linalg.qr(x)))


def _product(factors):
    first, *others = factors
    for factor in others:
        first = first @ factor
    return first


@op(standard=["n=32", "n=256", "n=16 b=128"], full=["n=1024"], **FACTS, **_cubic(8 / 3), backward=False)
def svdvals(t, n, b=1):
    """Singular values."""
    x = _matrix(t, n, b)
    return lambda: torch.linalg.svdvals(x)


@op(standard=["n=32", "n=256", "n=16 b=128"], full=["n=1024"], **FACTS, **_cubic(4 / 3), backward=False)
def eigvalsh(t, n, b=1):
    """Eigenvalues of a symmetric matrix."""
    x = _positive(t, n, b)
    return lambda: torch.linalg.eigvalsh(x)


@op(**SHAPES, **FACTS, **_cubic(2 / 3))
def solve(t, n, b=1):
    """A system of equations with one right side."""
    x, y = _matrix(t, n, b), t(b, n, 1)
    return lambda: torch.linalg.solve(x, y)


@op(**SHAPES, **FACTS, **_cubic(2))
def inverse(t, n, b=1):
    """Inverse of a matrix."""
    x = _matrix(t, n, b)
    return lambda: torch.linalg.inv(x)


@op(full=["n=16", "n=256", "n=1024"], **FACTS, **_cubic(20), backward=False)
def svd(t, n, b=1):
    """Singular values and the vectors that belong to them."""
    x = _matrix(t, n, b)

    def product():
        left, values, right = torch.linalg.svd(x)
        return left @ (values.unsqueeze(-1) * right)

    return Timed(lambda: torch.linalg.svd(x), product)


@op(
    full=[f"n=512 width=64 p={p}" for p in (1.0, 2.0, 3.0)], **FACTS, flops=lambda n, width: 3 * n * n * width
)
def cdist(t, n, width, p):
    """Distances of each of n points from each of n others."""
    x, y = t(n, width), t(n, width)
    return lambda: torch.cdist(x, y, p=p)
