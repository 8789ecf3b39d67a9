"""Sorting and scanning: sort, topk, argmax, unique, cumulative sums.

Values are compared with float64, and not the places they came from: of equal numbers any may come first. So backward
is timed where the order of equal numbers is fixed: it carries each gradient to the place that its value came from.
"""

import torch

from accel_micro.suite import op

NUMBERS = {"standard": ["n=1000000"], "full": ["n=1000", "n=16777216"]}
ROWS = {"standard": ["rows=1000 width=1000"], "full": ["rows=64 width=1000", "rows=64 width=128256"]}
WORK = {"flops": lambda: 0}


@op(quick=["n=100000"], **NUMBERS, **WORK, backward=False)
def sort(t, n):
    """All numbers, ascending."""
    x = t(n)
    return lambda: torch.sort(x).values


@op(**NUMBERS, **WORK)
def sort_stable(t, n):
    """All numbers, ascending, equal ones in the order they had."""
    x = t(n)
    return lambda: torch.sort(x, stable=True).values


@op(**ROWS, **WORK, backward=False)
def sort_rows(t, rows, width):
    """Each row by itself."""
    x = t(rows, width)
    return lambda: torch.sort(x, dim=1).values


@op(**{**ROWS, "standard": [*ROWS["standard"], "gpt2: rows=1 width=50257 k=50"]}, **WORK, backward=False)
def topk(t, rows, width, k=10):
    """The largest of each row, as when a language model chooses its next token."""
    x = t(rows, width)
    return lambda: torch.topk(x, k, dim=1).values


@op(**ROWS, **WORK)
def max_with_index(t, rows, width):
    """The largest of each row, and where it is."""
    x = t(rows, width)
    return lambda: torch.max(x, dim=1).values


@op(**NUMBERS, dtypes=("float32",), backward=False, **WORK)
def unique(t, n):
    """Each of a thousand integers once: how many there are the device has to tell the host."""
    x = t.integers(1000, n)
    return lambda: torch.unique(x)


@op(
    standard=["rows=1000 width=1000 dim=1", "rows=1000 width=1000 dim=0", "rows=1 width=1000000 dim=1"],
    full=["rows=8192 width=8192 dim=1"],
    flops=lambda rows, width: rows * width,
    terms=lambda rows, width, dim: width if dim else rows,
    tolerance=3.0,  # parallel scans keep partial sums in the dtype, once at each of their log2(n) levels
)
def cumsum(t, rows, width, dim):
    """Running sums."""
    x = t(rows, width)
    return lambda: torch.cumsum(x, dim)
