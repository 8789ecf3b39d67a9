"""Which operators of ATen a call of an op runs: found by running it, not by reading its name."""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from accel_micro.definition import Op


def operators(op: Op) -> tuple[str, ...]:
    """Names such as `aten.addmm`, in the order of their first call, of forward and backward of all `variants`."""
    return tuple(dict.fromkeys(name for shape in op.variants for _, name in traced(op, shape)))


def traced(op: Op, shape: str) -> tuple[tuple[str, str], ...]:
    """Directions and operators of one shape, each pair once, in the order of their first call.

    It is run once on the CPU, in float32 or the first dtype that the op has. An op that does not exist there has none.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(_traced(op, shape))


def _traced(op: Op, shape: str) -> Iterator[tuple[str, str]]:
    import torch

    from accel_micro.catalogue.noting import Noting
    from accel_micro.measure.counting import uncompiled
    from accel_micro.measure.inputs import Inputs, Timed

    dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
    if op.why_unsupported("cpu", dtype, shape) is not None:
        return
    inputs = Inputs(torch.device("cpu"), getattr(torch, dtype), differentiate=op.backward)
    forward, backward = Noting(), Noting()
    try:
        built = op.build(inputs, op.arguments(shape))
        call: Callable[[], Any] = built.call if isinstance(built, Timed) else built
        with contextlib.ExitStack() as inside:
            # Torch compiles nothing inside such a mode, and would leave a folder and a warning behind.
            with contextlib.suppress(NotImplementedError):
                inside.enter_context(uncompiled())
            inside.enter_context(torch.set_grad_enabled(op.backward))
            inside.enter_context(forward)
            result = call()
        if op.backward:
            seed = torch.ones_like(result)
            with backward:
                torch.autograd.grad(result, inputs.leaves, seed, allow_unused=True)
    except (NotImplementedError, RuntimeError):
        pass  # what ran until then did run
    yield from (("forward", name) for name in forward.found)
    yield from (("backward", name) for name in backward.found)
