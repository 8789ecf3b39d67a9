"""Recurrent layers: b sequences of s steps, each a few small products that wait for the step before.

Launch-bound on accelerators unless a library runs all steps in one kernel.
"""

import torch

from accel_micro.suite import op

SHAPES = {
    "standard": ["b=1 s=32 width=64 hidden=64", "b=32 s=64 width=256 hidden=256"],
    "full": ["b=64 s=256 width=512 hidden=1024"],
}


def _work(gates):
    """A product with the input and one with the state for each gate, at each step. States are rounded at each too."""
    flops = lambda b, s, width, hidden: 2 * gates * b * s * hidden * (width + hidden)  # noqa: E731
    return {"flops": flops, "backward_flops": 2, "tolerance": 2.0}


def _layer(t, kind, b, s, width, hidden):
    layer = kind(width, hidden, batch_first=True, device=t.here, dtype=t.floating)
    for parameter in layer.parameters():
        t.fill(parameter, scale=hidden**-0.5)
    x = t(b, s, width)
    return lambda: layer(x)[0]


@op(quick=["b=32 s=32 width=128 hidden=128"], **SHAPES, **_work(4))
def lstm(t, b, s, width, hidden):
    """Long short-term memory: four gates."""
    return _layer(t, torch.nn.LSTM, b, s, width, hidden)


@op(**SHAPES, **_work(3))
def gru(t, b, s, width, hidden):
    """Gated recurrent unit: three gates."""
    return _layer(t, torch.nn.GRU, b, s, width, hidden)
