"""Collectives: ranks that exchange tensors, as in training on several devices.

n numbers a rank. On CPUs there are two ranks, which talk by gloo; on GPUs one for each GPU of this machine, by NCCL. A
rank whose numbers a call changes takes them anew every 64 calls, which costs next to nothing.
"""

import torch
import torch.distributed as dist

from accel_micro.measure.ranks import restarting, together
from accel_micro.suite import op

gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # torch 2.13 renames them
scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
FACTS = {
    "full": ["n=1000", "n=16777216"],
    "dtypes": ("float32", "bfloat16"),
    "backward": False,
    "link": True,
    "tolerance": 2.0,  # sums are rounded at each rank
    "flops": lambda n: n,
    "bytes": lambda n, itemsize: 2 * n * itemsize,
}
MOVING = {**FACTS, "flops": lambda: 0}
"""Of those that add nothing."""


@op(standard=["n=1000", "n=1000000"], **FACTS)
def all_reduce(t, n):
    """Sums over the ranks, for each of them: gradients of data-parallel training."""
    return together(t, _all_reduce, n, expected=sum)


def _all_reduce(numbers, size):
    return restarting(numbers, dist.all_reduce)


@op(standard=["n=1000000"], **MOVING)
def all_gather(t, n):
    """The numbers of all ranks, behind each other, for each of them: weights of sharded training."""
    return together(t, _all_gather, n, expected=torch.cat)


def _all_gather(numbers, size):
    out = torch.empty(size * numbers.numel(), dtype=numbers.dtype, device=numbers.device)
    return lambda: gather(out, numbers), out


@op(standard=["n=1000000"], **FACTS)
def reduce_scatter(t, n):
    """Sums over the ranks, of which each gets its part: gradients of sharded training."""
    return together(t, _reduce_scatter, n, expected=lambda ranks: sum(ranks)[: n // len(ranks)])


def _reduce_scatter(numbers, size):
    part = numbers.numel() // size
    out = torch.empty(part, dtype=numbers.dtype, device=numbers.device)
    return lambda: scatter(out, numbers[: part * size]), out


@op(standard=["n=1000000"], **MOVING)
def broadcast(t, n):
    """The numbers of rank 0, for all."""
    return together(t, _broadcast, n, expected=lambda ranks: ranks[0])


def _broadcast(numbers, size):
    return lambda: dist.broadcast(numbers, src=0), numbers
