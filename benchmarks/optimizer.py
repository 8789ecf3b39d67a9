"""Optimizer steps, with torch's three implementations: a loop over tensors, foreach, fused.

Few large tensors are bound by memory; many small ones, as a convolutional network has, by launches: foreach
launches few kernels, fused one. Float16 is left out: there the squares of gradients underflow to zero, and
people keep float32 parameters instead.

Timing takes a million steps with the same gradients. Nothing then overflows or becomes denormal: averages
settle at the gradient, and parameters drift slowly. What is compared with float64 is the change by the
first timed step. For that to say something a step with other gradients goes before it, so no average is
empty and every coefficient counts, and the learning rates make a step as large as the parameters are, so it
is not lost in their rounding.
"""

import torch
from torch.optim import SGD, Adadelta, Adam, AdamW

from accel_micro.measure.inputs import Timed
from accel_micro.suite import op

MANY, FEW = "tensors=160 elements=1024", "tensors=4 elements=1048576"
IMPLEMENTATIONS = ("forloop", "foreach", "fused")
BETAS = (
    1 - 3 / 32,
    1 - 1 / 1024,
)  # near the usual 0.9 and 0.999, but float32 holds them, and 1 - beta², exactly
FACTS = {
    "standard": [f"{size} impl={impl}" for size in (MANY, FEW) for impl in IMPLEMENTATIONS],
    "full": [f"tensors=4 elements=16777216 impl={impl}" for impl in IMPLEMENTATIONS],
    "dtypes": ["float32", "bfloat16"],
    "backward": False,
    "flops": lambda: 0,
}


def _bytes(accesses):
    """Reads and writes of an element: parameter, gradient and averages in, parameter and averages out."""
    return lambda tensors, elements, itemsize: accesses * tensors * elements * itemsize


def _step(t, optimizer, tensors, elements, impl, **options):
    parameters = [t(elements, scale=0.1) for _ in range(tensors)]
    _set_gradients(t, parameters)
    step = _started(optimizer, parameters, "forloop" if t.reference else impl, options)
    _set_gradients(t, parameters)
    before = torch.stack(parameters)
    return Timed(call=step, result=lambda: torch.stack(parameters) - before)


def _set_gradients(t, parameters):
    for parameter in parameters:
        parameter.grad = t(*parameter.shape)


def _started(optimizer, parameters, impl, options):
    """The optimizer's `step`, called once."""
    fused = {"fused": True} if impl == "fused" else {}
    try:
        step = optimizer(parameters, foreach=impl == "foreach", **fused, **options).step
        step()
    except RuntimeError as error:
        if "`fused=True`" not in str(error):
            raise
        raise NotImplementedError(str(error)) from None
    return step


@op(quick=[f"{MANY} impl=foreach"], bytes=_bytes(3), **FACTS)
def sgd(t, tensors, elements, impl):
    """Stochastic gradient descent."""
    return _step(t, SGD, tensors, elements, impl, lr=0.1)


@op(quick=[f"{FEW} impl=foreach"], bytes=_bytes(5), **FACTS)
def momentum(t, tensors, elements, impl):
    """Stochastic gradient descent with momentum 0.9: one average."""
    return _step(t, SGD, tensors, elements, impl, lr=0.1, momentum=0.9)


@op(quick=[f"{MANY} impl=forloop"], bytes=_bytes(7), **FACTS)
def adam(t, tensors, elements, impl):
    """Adam: averages of the gradient and of its square."""
    return _step(t, Adam, tensors, elements, impl, lr=0.1, betas=BETAS)


@op(quick=[f"{MANY} impl=foreach", f"{FEW} impl=fused"], bytes=_bytes(7), **FACTS)
def adamw(t, tensors, elements, impl):
    """Adam with decoupled weight decay."""
    return _step(t, AdamW, tensors, elements, impl, lr=0.1, betas=BETAS)


@op(
    quick=[f"{MANY} impl=foreach"],
    bytes=_bytes(7),
    unsupported=lambda impl: "torch has no fused Adadelta" if impl == "fused" else None,
    **FACTS,
)
def adadelta(t, tensors, elements, impl):
    """Adadelta: averages of squared gradients and of squared steps. Early steps are tiny, hence the rate."""
    return _step(t, Adadelta, tensors, elements, impl, lr=30.0)
