"""Whole networks: a training step and an inference step, as a user's loop has them, on batches that lie on the device.

What single ops cannot show is here: Python between them, the optimizer's many small calls, memory that is reused. Why a
step changed is told by `accel-micro explain`, and single ops that did by the other families.

The learning rate is zero. Every op of a step runs and no weight moves, so that the thousandth step has the numbers of
the first; one batch trained for thousands of steps ends in gradients too small for the format, which are slow.

What is compared with float64 is the output of inference, and of training the loss, both of one more step without
dropout: its draws differ from device to device. The steps that are timed draw. Gradients are not compared: through
batch normalisation and kinks those of float32 are off by 1e-3 (resnet18, four images on a CPU), those of bfloat16 by
all of their size (mobilenet_v2), and no device is wrong for that. `accel-micro explain` checks the ops one by one.
"""

import torch

from accel_micro.measure.inputs import Timed
from accel_micro.models import build
from accel_micro.models.model import Batch
from accel_micro.models.still import still
from accel_micro.suite import op

NETWORKS = {
    "vgg16": (138_357_544, 30_940_528_640, 92_648_177_664),
    "alexnet": (61_100_840, 1_428_376_960, 4_144_577_280),
    "resnet18": (11_689_512, 3_628_146_688, 10_648_412_160),
    "mobilenet_v2": (3_504_872, 601_548_544, 1_782_969_600),
    "efficientnet_b0": (5_288_548, 771_629_504, 2_293_212_480),
    "squeezenet1_0": (1_248_424, 1_637_849_152, 4_578_218_112),
    "mnist": (1_199_882, 23_984_896, 71_565_312),
    "vae": (652_824, 1_302_400, 3_280_000),
    "encoder": (7_087_872, 1_862_270_976, 5_133_828_096),
    "gpt2": (124_439_808, 32_228_179_968, 96_684_539_904),
    "lstm": (13_987_678, 510_692_000, 1_531_436_000),
}
"""Parameters, and FLOPs of an example in inference and in training: what torch's counter says, but for the gradients of
depthwise filters, of which it takes the groups for one."""

CPU_MOST_FLOPS = 6e10
STANDARD = [
    f"net={net} n={n}" for net in ("mnist", "vae", "lstm", "mobilenet_v2", "resnet18") for n in (4, 64)
]
ALL = [f"net={net} n={n}" for net in NETWORKS for n in (1, 4, 64)]


def _too_long(net, n, device):
    """Twenty samples of such a step would take a CPU of two cores five minutes."""
    flops = n * NETWORKS[net][2]
    slow = device == "cpu" and flops > CPU_MOST_FLOPS
    return f"a step of {flops / 1e9:.0f} GFLOP takes a CPU too long to time twenty" if slow else None


FACTS = {
    "standard": [*STANDARD, "net=gpt2 n=4"],
    "full": ALL,
    "dtypes": ("float32", "bfloat16"),
    "backward": False,
    "unsupported": _too_long,
    "terms": lambda: 1000,
    "tolerance": 2.0,
}


def _made(t, net, n):
    """The network and a batch: for the reference the numbers that the case has, widened."""
    model = build(net, str(t.here), str(t.dtype).removeprefix("torch."))
    model.optimizer.param_groups[0]["lr"] = 0.0
    batch = model.batch(n)
    if not t.reference:
        return model, batch
    model.module.to(t.floating)
    return model, Batch(*(x.to(t.floating) if x.is_floating_point() else x for x in vars(batch).values()))


def _undrawn(model, step):
    with still(model.module):
        return step()


@op(
    quick=["net=mnist n=4"],
    **FACTS,
    flops=lambda net, n: n * NETWORKS[net][2],
    bytes=lambda net, itemsize: 8 * NETWORKS[net][0] * itemsize,
)
def training_step(t, net, n):
    """Forward, loss, backward, a step of the optimizer that the network is published with."""
    model, batch = _made(t, net, n)
    if t.reference:
        loss = lambda: model.loss(model.module(batch.inputs), batch.target).detach()  # noqa: E731
        return Timed(call=model.module.train, result=lambda: _undrawn(model, loss))
    step = torch.enable_grad()(lambda: model.training_step(batch))
    return Timed(call=step, result=lambda: _undrawn(model, step))


@op(
    **FACTS,
    flops=lambda net, n: n * NETWORKS[net][1],
    bytes=lambda net, itemsize: NETWORKS[net][0] * itemsize,
)
def inference_step(t, net, n):
    """Forward as in use: without gradients, dropout or statistics of the batch."""
    model, batch = _made(t, net, n)
    step = lambda: model.inference_step(batch)  # noqa: E731
    return Timed(call=step, result=lambda: _undrawn(model, step))
