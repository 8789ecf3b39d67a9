"""Memory: taken and given back, without anything being computed.

On a GPU torch keeps what is given back and hands it out again; only what it does not have is taken from the driver,
which waits for the device. On a CPU small blocks come from the C library, and large ones are pages that the system
clears when they are first written.
"""

import torch

from accel_micro.measure.inputs import Timed
from accel_micro.suite import op

FACTS = {"dtypes": ("float32",), "backward": False, "flops": lambda: 0}
SIZES = {"standard": ["n=256", "n=16777216"], "full": ["n=1000000"]}


def _options(t):
    return {"device": t.here, "dtype": t.floating}


@op(quick=["n=16777216"], standard=["n=256"], full=["n=1000000"], **FACTS, bytes=lambda: 0)
def take_and_give(t, n):
    """One block, over and over: the cache of the allocator, or two calls of the C library."""
    options = _options(t)
    return Timed(lambda: torch.empty(n, **options), lambda: torch.empty(n, **options).fill_(1.5))


@op(standard=["n=256 blocks=100"], full=["n=1000000 blocks=100"], **FACTS, bytes=lambda: 0)
def many(t, n, blocks):
    """A hundred blocks of different sizes before the first is given back, as in a forward pass."""
    options = _options(t)
    take = lambda: [torch.empty(n + 64 * i, **options) for i in range(blocks)]  # noqa: E731
    return Timed(take, lambda: torch.tensor([block.numel() for block in take()]))


@op(**SIZES, **FACTS, bytes=lambda n, itemsize: n * itemsize)
def zeros(t, n):
    """A block, cleared: on a CPU every page of a large one is new."""
    options = _options(t)
    return Timed(lambda: torch.zeros(n, **options), lambda: torch.zeros(n, **options) + 1.5)


@op(
    standard=["n=16777216"],
    full=["n=256"],
    **FACTS,
    bytes=lambda: 0,
    unsupported=lambda device: "the CPU's allocator keeps nothing to give back" if device == "cpu" else None,
)
def from_driver(t, n):
    """A block that the cache does not have, as at the first step and when memory runs short."""
    options, release = _options(t), getattr(getattr(torch, t.here.type, None), "empty_cache", int)

    def call():
        torch.empty(n, **options)
        release()

    return Timed(call, lambda: torch.empty(n, **options).fill_(1.5))
