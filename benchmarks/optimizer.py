"""Optimizer steps, with torch's implementations: a loop over tensors, foreach, fused, capturable.

Few large tensors are bound by memory; many small ones, as a convolutional network has, by launches: foreach
launches few kernels, fused one. Capturable is foreach with its count of steps on the device, for CUDA graphs.
Float16 is left out: there the squares of gradients underflow to zero, and people keep float32 parameters instead.

Timing takes a million steps with the same gradients. Nothing then overflows or becomes denormal: averages
settle at the gradient, and parameters drift slowly or are held by weight decay. What is compared with
float64 is the change by the first timed step. For that to say something a step with other gradients goes
before it, so no average is empty and every coefficient counts, and the learning rates make a step as large
as the parameters are, so it is not lost in their rounding.
"""

import torch
from torch import optim

from accel_micro.measure.inputs import Timed
from accel_micro.suite import op

MANY, FEW = "tensors=160 elements=1024", "tensors=4 elements=1048576"
IMPLEMENTATIONS = ("forloop", "foreach", "fused", "capturable")
BETAS = (
    1 - 3 / 32,
    1 - 1 / 1024,
)  # near the usual 0.9 and 0.999, but float32 holds them, and 1 - beta², exactly
FACTS = {
    "standard": [f"{size} impl={impl}" for size in (MANY, FEW) for impl in IMPLEMENTATIONS],
    "full": [f"tensors=4 elements=16777216 impl={impl}" for impl in IMPLEMENTATIONS],
}
FEWER = {  # of optimizers that fewer people use
    "standard": [f"{MANY} impl=foreach"],
    "full": [shape for shape in FACTS["standard"] if shape != f"{MANY} impl=foreach"],
}


def _facts(accesses, lacking=()):
    """Of an optimizer with so many reads and writes of an element: parameter, gradient and averages in, and out.

    Args:
        lacking: implementations that torch does not have.
    """

    def unsupported(impl, device):
        if impl == "capturable" and device == "cpu":
            return "capturable is for CUDA graphs"
        return f"torch has no {impl} implementation of it" if impl in lacking else None

    return {
        "bytes": lambda tensors, elements, itemsize: accesses * tensors * elements * itemsize,
        "dtypes": ["float32", "bfloat16"],
        "backward": False,
        "flops": lambda: 0,
        "unsupported": unsupported,
    }


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
    switches = {"foreach": impl in {"foreach", "capturable"}}
    switches |= {impl: True} if impl in {"fused", "capturable"} else {}
    try:
        step = optimizer(parameters, **switches, **options).step
        step()
    except RuntimeError as error:
        if "`fused=True`" not in str(error):
            raise
        raise NotImplementedError(str(error)) from None
    return step


@op(quick=[f"{MANY} impl=foreach"], **FACTS, **_facts(3, lacking=("capturable",)))
def sgd(t, tensors, elements, impl):
    """Stochastic gradient descent."""
    return _step(t, optim.SGD, tensors, elements, impl, lr=0.1)


@op(quick=[f"{FEW} impl=foreach"], **FACTS, **_facts(5, lacking=("capturable",)))
def momentum(t, tensors, elements, impl):
    """Stochastic gradient descent with momentum 0.9: one average."""
    return _step(t, optim.SGD, tensors, elements, impl, lr=0.1, momentum=0.9)


@op(quick=[f"{MANY} impl=forloop"], **FACTS, **_facts(7))
def adam(t, tensors, elements, impl):
    """Adam: averages of the gradient and of its square."""
    return _step(t, optim.Adam, tensors, elements, impl, lr=0.1, betas=BETAS)


@op(
    quick=[f"{MANY} impl=foreach", f"{FEW} impl=fused"],
    sweep="tensors=16 elements=64..1048576 impl=foreach",
    **FACTS,
    **_facts(7),
)
def adamw(t, tensors, elements, impl):
    """Adam with decoupled weight decay."""
    return _step(t, optim.AdamW, tensors, elements, impl, lr=0.1, betas=BETAS)


@op(quick=[f"{MANY} impl=foreach"], **FACTS, **_facts(7, lacking=("fused",)))
def adadelta(t, tensors, elements, impl):
    """Adadelta: averages of squared gradients and of squared steps. Early steps are tiny, hence the rate."""
    return _step(t, optim.Adadelta, tensors, elements, impl, lr=30.0)


@op(**FEWER, **_facts(5, lacking=("capturable",)))
def adagrad(t, tensors, elements, impl):
    """Adagrad: a sum of squared gradients."""
    return _step(t, optim.Adagrad, tensors, elements, impl, lr=0.1)


@op(**FEWER, **_facts(5, lacking=("fused",)))
def rmsprop(t, tensors, elements, impl):
    """RMSprop: an average of squared gradients."""
    return _step(t, optim.RMSprop, tensors, elements, impl, lr=0.05, alpha=1 - 1 / 64)


@op(**FEWER, **_facts(7, lacking=("fused",)))
def adamax(t, tensors, elements, impl):
    """Adamax: Adam with the largest gradient instead of the squares."""
    return _step(t, optim.Adamax, tensors, elements, impl, lr=0.1, betas=BETAS)


@op(**FEWER, **_facts(7, lacking=("fused",)))
def nadam(t, tensors, elements, impl):
    """Adam with Nesterov's momentum."""
    return _step(t, optim.NAdam, tensors, elements, impl, lr=0.1, betas=BETAS)


@op(**FEWER, **_facts(7, lacking=("fused",)))
def radam(t, tensors, elements, impl):
    """Adam, rectified: its first five steps are those of momentum."""
    return _step(t, optim.RAdam, tensors, elements, impl, lr=0.1, betas=BETAS)


@op(**FEWER, **_facts(5, lacking=("fused",)))
def asgd(t, tensors, elements, impl):
    """Averaged stochastic gradient descent."""
    return _step(t, optim.ASGD, tensors, elements, impl, lr=0.1)


@op(**FEWER, **_facts(7, lacking=("fused",)))
def rprop(t, tensors, elements, impl):
    """Resilient propagation: a step size for each parameter, by the sign of its gradient."""
    return _step(t, optim.Rprop, tensors, elements, impl, lr=0.1, step_sizes=(0.01, 0.2))


@op(**FEWER, **_facts(5, lacking=("fused", "capturable")), tolerance=2.0)  # means of squares are rounded too
def adafactor(t, tensors, elements, impl):
    """Adafactor: squared gradients, of matrices by rows and columns only."""
    return _step(t, _newer("Adafactor"), tensors, elements, impl, lr=1.0, weight_decay=0.5)


@op(
    standard=["tensors=4 side=256"],
    full=["tensors=4 side=2048"],
    dtypes=["float32"],
    backward=False,
    flops=lambda tensors, side: tensors * 5 * 3 * 2 * side**3,
    bytes=lambda tensors, side, itemsize: 5 * tensors * side**2 * itemsize,
    tolerance=1e3,  # five iterations in bfloat16, whatever the dtype
)
def muon(t, tensors, side):
    """Momentum whose matrices are made orthogonal: five iterations of three products."""
    parameters = [t(side, side, scale=0.1) for _ in range(tensors)]
    _set_gradients(t, parameters)
    before = torch.stack(parameters)
    step = _newer("Muon")(parameters, lr=0.1).step
    return Timed(call=step, result=lambda: torch.stack(parameters) - before)


def _newer(name):
    if not hasattr(optim, name):
        raise NotImplementedError(f"this torch has no optimizer {name}")
    return getattr(optim, name)
