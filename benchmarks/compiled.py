"""torch.compile: what it makes of a few ops in a row, beside the same ops one by one (`by=eager`).

Compiling is the first call, which is timed apart; each process compiles anew, with empty caches. What is timed includes
the guards that decide at each call whether the compiled code fits, so tiny inputs show what compiling costs them.
"""

import contextlib
import shutil

import torch
import torch.nn.functional as F  # noqa: N812

from accel_micro.suite import op


def _by(t, compiler, function):
    """The function as it is, for the reference too, or compiled when it is first called."""
    if t.reference or compiler == "eager":
        return function
    if t.here.type == "cpu" and not any(map(shutil.which, ("c++", "g++", "clang++", "cl"))):
        raise NotImplementedError("torch.compile needs a C++ compiler for CPUs, and none is installed")
    t.within(_with_empty_caches)
    return torch.compile(function, backend=compiler, fullgraph=True, dynamic=False)


@contextlib.contextmanager
def _with_empty_caches():
    """Nothing compiled before is used; and backward may run again and again, so it keeps what it was given."""
    from torch._functorch import config
    from torch._inductor import utils

    fresh = (
        utils.fresh_cache if hasattr(utils, "fresh_cache") else utils.fresh_inductor_cache
    )  # before torch 2.8
    torch._dynamo.reset()
    kept = (
        config.patch(donated_buffer=False) if hasattr(config, "donated_buffer") else contextlib.nullcontext()
    )
    with fresh(), kept:  # torch before 2.6 donates nothing
        yield


def _by_both(size):
    return [f"{size} by={compiler}" for compiler in ("inductor", "eager")]


ROWS = {
    "standard": _by_both("rows=1000 width=1000"),
    "full": [*_by_both("rows=8 width=64"), *_by_both("rows=16384 width=4096")],
    "dtypes": ("float32", "bfloat16", "float16"),
}
FULL = {"full": [*ROWS["standard"], *ROWS["full"]], "dtypes": ROWS["dtypes"]}


@op(**ROWS, flops=lambda: 0)
def bias_gelu(t, rows, width, by):
    """A bias and an activation: one pass over memory instead of two."""
    x, bias = t(rows, width), t(width)
    return _by(t, by, lambda: F.gelu(x + bias))


@op(**FULL, flops=lambda rows, width: rows * width, tolerance=2.0)
def add_norm(t, rows, width, by):
    """A residual and a layer norm, as in transformers."""
    x, y, weight, bias = t(rows, width), t(rows, width), t(width), t(width)
    return _by(t, by, lambda: F.layer_norm(x + y, (width,), weight, bias))


@op(
    **FULL,
    flops=lambda rows, width: rows * width,
    bytes=lambda rows, width, itemsize: rows * width * (1 + 2 * itemsize),
    tolerance=2.0,
)
def scaled_softmax(t, rows, width, by):
    """Scores, scaled and masked, to probabilities: three ops and a reduction in one."""
    x, mask = t(rows, width), t.integers(2, rows, width).bool().logical_not()
    mask[:, 0] = False
    return _by(t, by, lambda: torch.softmax((x * 0.125).masked_fill(mask, float("-inf")), dim=1))


@op(
    full=[*_by_both("m=1 k=64 n=64"), *_by_both("m=128 k=768 n=3072"), *_by_both("m=2048 k=4096 n=16384")],
    dtypes=ROWS["dtypes"],
    flops=lambda m, k, n: 4 * m * k * n,
    backward_flops=2,
    tolerance=2.0,
)
def mlp(t, m, k, n, by):
    """Two layers and the activation between: the products stay what they are."""
    x, up, down = t(m, k), t(n, k, scale=k**-0.5), t(k, n, scale=n**-0.5)
    return _by(t, by, lambda: F.linear(F.gelu(F.linear(x, up)), down))
