"""Copies: contiguous, permuted, put together and taken apart.

They compute nothing, so bytes per second against the machine's copy say it all. A transposed operand makes either
reading or writing jump from row to row.
"""

import torch
import torch.nn.functional as F  # noqa: N812

from accel_micro.measure.inputs import Timed
from accel_micro.suite import op

NUMBERS = {"standard": ["n=1000000"], "full": ["n=1000", "n=16777216"]}
SQUARES = {"standard": ["rows=1000 width=1000"], "full": ["rows=8192 width=8192"]}
IMAGES = {"standard": ["n=16 c=64 hw=56"], "full": ["n=256 c=64 hw=112"]}
WORK = {"flops": lambda: 0, "backward": False}  # the gradient of a copy is a copy


@op(quick=["n=1000000"], **NUMBERS, **WORK)
def clone(t, n):
    """A copy in new memory."""
    x = t(n)
    return lambda: x.clone()


@op(**{**SQUARES, "standard": ["rows=64 width=64", "rows=1000 width=1000"]}, **WORK)
def transpose(t, rows, width):
    """A matrix whose rows become columns in memory."""
    x = t(rows, width)
    return lambda: x.t().contiguous()


@op(**IMAGES, **WORK)
def to_channels_last(t, n, c, hw):
    """Images whose channels come to lie side by side."""
    x = t(n, c, hw, hw)
    return lambda: x.contiguous(memory_format=torch.channels_last)


@op(standard=["gpt2: b=2 h=12 s=1024 d=64"], full=["llama: b=8 h=32 s=2048 d=128"], **WORK)
def split_heads(t, b, h, s, d):
    """From tokens of heads to heads of tokens, before attention."""
    x = t(b, s, h * d)
    return lambda: x.view(b, s, h, d).transpose(1, 2).contiguous()


@op(standard=["n=1000 parts=8", "n=1000000 parts=2"], full=["n=1000000 parts=64"], **WORK)
def cat(t, n, parts):
    """Several put behind each other."""
    pieces = [t(n) for _ in range(parts)]
    return lambda: torch.cat(pieces)


@op(standard=["n=1000 parts=8", "n=1000000 parts=2"], full=["n=1000000 parts=64"], **WORK)
def stack(t, n, parts):
    """Several side by side, in a new last dimension."""
    pieces = [t(n) for _ in range(parts)]
    return lambda: torch.stack(pieces, dim=1)


@op(standard=["rows=1000 width=768 parts=3"], full=["rows=16384 width=4096 parts=3"], **WORK)
def chunk(t, rows, width, parts):
    """One apart, each part copied, as queries, keys and values are."""
    x = t(rows, parts * width)

    def call():
        return [part.contiguous() for part in x.chunk(parts, dim=1)]

    return Timed(call, lambda: torch.stack(call()))


@op(**IMAGES, **WORK)
def pad(t, n, c, hw):
    """A frame of zeros around images."""
    x = t(n, c, hw, hw)
    return lambda: F.pad(x, (1, 1, 1, 1))


@op(standard=["rows=1000 width=1000"], full=["rows=8192 width=8192"], **WORK)
def expand(t, rows, width):
    """A row written out as many equal ones."""
    x = t(width)
    return lambda: x.expand(rows, width).contiguous()


@op(**SQUARES, **WORK)
def flip(t, rows, width):
    """Rows read backwards."""
    x = t(rows, width)
    return lambda: torch.flip(x, (1,))


@op(**SQUARES, **WORK)
def roll(t, rows, width):
    """Rows shifted around their end, as in Swin transformers."""
    x = t(rows, width)
    return lambda: torch.roll(x, 3, dims=1)


@op(**SQUARES, **WORK)
def tril(t, rows, width):
    """What lies below the diagonal."""
    x = t(rows, width)
    return lambda: torch.tril(x)


@op(standard=["n=1000000"], full=["n=1000"], cold=["n=1000000"], **WORK)
def copy(t, n):
    """A copy in memory that is there."""
    x, out = t(n), t(n)
    return lambda: out.copy_(x)


@op(full=["n=1000", "n=1000000"], **WORK)
def fill(t, n):
    """One number everywhere: written, and nothing read."""
    x = t(n)
    return lambda: x.fill_(1.5)


@op(full=["n=1000000"], bytes=lambda n, itemsize: n * itemsize, **WORK)
def zero(t, n):
    """Zeros, as gradients are set to before a step. The result is less by one, for something to compare."""
    x = t(n)
    return Timed(x.zero_, lambda: x.zero_() - 1)


@op(full=["n=1000", "n=1000000"], dtypes=("float32",), **WORK)
def arange(t, n):
    """The integers below n."""
    return lambda: torch.arange(n, device=t.here)


@op(full=["n=1000"], bytes=lambda n, itemsize: 2 * n * itemsize, **WORK)
def diag(t, n):
    """The diagonal of a matrix, in new memory."""
    x = t(n, n)
    return lambda: torch.diag(x)


@op(full=["n=1000"], **WORK)
def diag_embed(t, n):
    """A matrix that is zero beside its diagonal."""
    x = t(n)
    return lambda: torch.diag_embed(x)


@op(full=["n=16 c=64 hw=56 groups=8"], **WORK)
def channel_shuffle(t, n, c, hw, groups):
    """Channels of groups mixed, as in ShuffleNet."""
    x = t(n, c, hw, hw)
    return lambda: F.channel_shuffle(x, groups)
