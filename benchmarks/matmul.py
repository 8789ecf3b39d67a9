"""Matrix products."""

import torch

from accel_micro.suite import op


@op(
    quick=["m=64 k=64 n=64", "m=512 k=512 n=512"],
    standard=["m=1024 k=1024 n=1024"],
    full=["m=8192 k=8192 n=8192"],
)
def mm(t, m, k, n):
    """Dense product of two matrices."""
    a, b = t(m, k), t(k, n)
    return lambda: torch.mm(a, b)
