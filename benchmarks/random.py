"""Random numbers and dropout.

No two calls give the same numbers, so what is compared with the reference is what does not depend on them: which share
lies where, rounded so far that chance cannot change it, or what dropout left in its place.
"""

import torch
import torch.nn.functional as F  # noqa: N812

from accel_micro.measure.inputs import Timed
from accel_micro.suite import op

FACTS = {
    "standard": ["n=1000000"],
    "full": ["n=100000", "n=16777216"],
    "backward": False,
    "flops": lambda: 0,
}
WRITTEN = {"bytes": lambda n, itemsize: n * itemsize}


def _tenths_below(call, *limits):
    """How many tenths of the numbers lie below each limit: with 100,000 numbers, 0.02 tenths are chance."""

    def result():
        numbers = call()
        return torch.stack([(numbers < limit).double().mean().mul(10).round() for limit in limits])

    return Timed(call, result)


@op(quick=["n=1000000"], **FACTS, **WRITTEN)
def normal(t, n):
    """Normal numbers: 1.6, 5 and 8.4 tenths lie below -1, 0 and 1."""
    options = {"device": t.here, "dtype": t.floating}
    return _tenths_below(lambda: torch.randn(n, **options), -1.0, 0.0, 1.0)


@op(**FACTS, **WRITTEN)
def uniform(t, n):
    """Uniform numbers in [0, 1)."""
    options = {"device": t.here, "dtype": t.floating}
    return _tenths_below(lambda: torch.rand(n, **options), 0.1, 0.5, 0.7, 1.0)


@op(**FACTS, bytes=lambda n, itemsize: 2 * n * itemsize)
def bernoulli(t, n):
    """Ones with a probability of 0.3, else zeros."""
    p = torch.full((n,), 0.3, device=t.here, dtype=t.floating)
    return _tenths_below(lambda: torch.bernoulli(p), 0.5, 1.5)


@op(**{**FACTS, "dtypes": ("float32",)})
def permutation(t, n):
    """The integers below n in random order."""

    def call():
        return torch.randperm(n, device=t.here)

    return Timed(call, lambda: torch.sort(call()).values)


@op(**FACTS)
def dropout(t, n):
    """A tenth becomes zero, the others grow by as much."""
    x = t(n)

    def left():
        out = F.dropout(x, 0.1)
        return torch.where(out == 0, x, out * 0.9)

    return Timed(lambda: F.dropout(x, 0.1), left)


SHARES = {"normal_": (-1.0, 0.0), "uniform_": (0.3, 0.7), "exponential_": (0.5, 1.0), "cauchy_": (0.4, 3.0)}


@op(full=[f"name={name} n=1000000" for name in SHARES], backward=False, flops=lambda: 0, **WRITTEN)
def in_place(t, name, n):
    """Numbers of a distribution, written over others."""
    x = torch.empty(n, device=t.here, dtype=t.floating)
    return _tenths_below(getattr(x, name), *SHARES[name])


@op(full=["n=1000000"], backward=False, flops=lambda: 0, **WRITTEN)
def integers(t, n):
    """Integers below 100, written over others."""
    x = torch.empty(n, device=t.here, dtype=t.floating)
    return _tenths_below(lambda: x.random_(0, 100), 30, 70)
