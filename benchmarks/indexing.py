"""Indexing: rows and numbers picked or added by index, embeddings.

Bound by memory, and by how scattered it is: an index a row moves whole rows, an index a number moves single numbers.
Backward of picking is adding, where indices repeat with atomic additions or a sort.
"""

import torch
import torch.nn.functional as F  # noqa: N812

from accel_micro.suite import op

TABLES = {
    "standard": ["n=64 rows=1000 width=64", "n=8192 rows=50257 width=768"],
    "full": ["llama3: n=8192 rows=128256 width=4096", "recommender: n=65536 rows=1000000 width=64"],
}
NUMBERS = {"standard": ["n=1000000"], "full": ["n=1000", "n=16777216"]}
WORK = {"flops": lambda: 0}


def _rows(n, width, itemsize):
    """Indices, and the rows they name, read and written; the rest of the table stays where it is."""
    return n * (8 + 2 * width * itemsize)


@op(
    bytes=_rows,
    quick=["gpt2: n=1024 rows=50257 width=768"],
    standard=[*TABLES["standard"], "codebook: n=1024 rows=8192 width=768"],
    full=TABLES["full"],
    cold=["codebook: n=1024 rows=8192 width=768"],
    **WORK,
)
def embedding(t, n, rows, width):
    """A row of a table for each token."""
    table, tokens = t(rows, width), t.integers(rows, n)
    return lambda: F.embedding(tokens, table)


@op(
    standard=["n=1024 rows=10000 width=64 bag=8"],
    full=["n=8192 rows=1000000 width=64 bag=32"],
    bytes=lambda n, width, bag, itemsize: n * (8 * bag + (bag + 1) * width * itemsize),
    **WORK,
)
def embedding_bag(t, n, rows, width, bag):
    """The sum of several rows for each example, as in recommenders."""
    table, tokens = t(rows, width), t.integers(rows, n, bag)
    return lambda: F.embedding_bag(tokens, table, mode="sum")


@op(bytes=_rows, **TABLES, **WORK)
def index_select(t, n, rows, width):
    """Rows by index."""
    x, index = t(rows, width), t.integers(rows, n)
    return lambda: torch.index_select(x, 0, index)


@op(**TABLES, **WORK)
def index_add(t, n, rows, width):
    """Rows added to rows by index, some of them several times, as in graph networks."""
    x, index, more = t(rows, width), t.integers(rows, n), t(n, width)
    return lambda: torch.index_add(x, 0, index, more)


@op(**NUMBERS, **WORK)
def gather(t, n):
    """Numbers by index, each of its own."""
    x, index = t(n), t.integers(n, n)
    return lambda: torch.gather(x, 0, index)


@op(**NUMBERS, **WORK)
def scatter_add(t, n):
    """Numbers added by index."""
    x, index, more = t(n), t.integers(n, n), t(n)
    return lambda: torch.scatter_add(x, 0, index, more)


@op(standard=["rows=1000 width=1000"], full=["rows=65536 width=256"], **WORK)
def take_along_dim(t, rows, width):
    """Each row in an order of its own."""
    x, index = t(rows, width), t.integers(width, rows, width)
    return lambda: torch.take_along_dim(x, index, 1)


@op(**NUMBERS, **WORK, bytes=lambda n, itemsize: n * (1 + 2 * itemsize))
def masked_fill(t, n):
    """A constant where a mask says so, as attention hides the future."""
    x, mask = t(n), t.integers(2, n).bool()
    return lambda: torch.masked_fill(x, mask, -1.0)


@op(**NUMBERS, **WORK, bytes=lambda n, itemsize: n * (1 + 1.5 * itemsize))  # half is kept
def masked_select(t, n):
    """What a mask keeps: how much that is the device has to tell the host."""
    x, mask = t(n), t.integers(2, n).bool()
    return lambda: torch.masked_select(x, mask)


@op(**NUMBERS, **WORK)
def advanced(t, n):
    """`x[index]`, as it is written."""
    x, index = t(n), t.integers(n, n)
    return lambda: x[index]
