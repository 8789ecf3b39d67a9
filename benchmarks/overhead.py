"""What a call costs when there is nothing to compute: dispatch, views, autograd, a number for the host.

All shapes are tiny. A whole model pays this for each of its ops; where it is more than the device needs for an op, a
faster kernel changes nothing.
"""

import functools

import torch

from accel_micro.measure.inputs import Timed
from accel_micro.suite import op

FACTS = {"flops": lambda: 0}
ONE = {"standard": ["n=1"]}


@op(quick=["n=1"], **FACTS)
def add(t, n):
    """One number and another: dispatch, an allocation, a kernel; in backward a graph of one node."""
    a, b = t(n), t(n)
    return lambda: torch.add(a, b)


@op(**ONE, backward=False, **FACTS)
def add_(t, n):
    """The same in place: no allocation."""
    a, b = t(n), t(n)
    zero = torch.zeros_like(b)
    return Timed(lambda: a.add_(zero), lambda: a + b)


@op(**ONE, backward=False, **FACTS)
def empty(t, n):
    """An allocation that nothing is written to."""
    options = {"device": t.here, "dtype": t.floating}
    return Timed(lambda: torch.empty(n, **options), lambda: torch.empty(n, **options).fill_(1.5))


@op(standard=["n=16"], **FACTS)
def view_chain(t, n):
    """Five views: no kernel at all on the way there."""
    x = t(n, n)
    return lambda: x.view(-1).unsqueeze(0).transpose(0, 1).expand(n * n, 2).select(1, 0)


@op(**ONE, backward=False, **FACTS)
def item(t, n):
    """A number for the host, which has to wait for the device."""
    x = t(n)
    return lambda: x.item()


@op(standard=["n=1 depth=10"], **FACTS)
def chain(t, n, depth):
    """Ten tiny ops behind each other; in backward, ten nodes."""
    x = t(n)
    return lambda: functools.reduce(lambda y, _: y * 0.5, range(depth), x)
