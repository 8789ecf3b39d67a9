"""Captures that exist on paper: a small network of known times, with noise where a test wants it."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from accel_micro.explain.capture import Capture, Reading, Row

LAYERS = (
    ("aten.convolution.default", "forward", "conv1", "Conv2d", 4e-3),
    ("aten.relu.default", "forward", "act", "ReLU", 0.4e-3),
    ("aten.addmm.default", "forward", "fc", "Linear", 1e-3),
    ("aten.mm.default", "backward", "fc", "Linear", 2e-3),
    ("aten.convolution_backward.default", "backward", "conv1", "Conv2d", 8e-3),
    ("aten.addcdiv_.default", "optimizer", "", "", 1.2e-3),
)
"""Operator, phase, module, class, seconds of a call."""

GAP = 0.1e-3
"""Seconds of Python before each call."""


def row(number: int, **changes: Any) -> Row:
    """The row of a layer."""
    op, phase, module, name, seconds = LAYERS[number]
    facts: dict[str, Any] = {
        "op": op,
        "phase": phase,
        "module": module,
        "module_class": name,
        "inputs": ("float32[4,64,56,56]",),
        "flops": 1e7,
        "bytes": 1e6,
        "hot_seconds": 0.9 * seconds,
        "cold_seconds": 1.1 * seconds,
    }
    return Row(**{**facts, **changes})


def capture(
    *,
    slower: Mapping[int, float] | None = None,
    gaps: Mapping[int, float] | None = None,
    rows: Sequence[Row] | None = None,
    unexplained: float = 0.0,
    noise: float = 0.0,
    processes: int = 5,
    seed: int = 0,
    reading: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Capture:
    """A capture whose steps are the sum of their parts.

    Args:
        slower: factors on the ops. gaps: seconds of Python before the calls, in place of `GAP`.
        unexplained: seconds of a step that no part has.
        noise: standard deviation of relative noise on every number of a process.
    """
    slower, gaps = slower or {}, gaps or {}
    drawn = random.Random(seed)
    batch = int(changes.get("batch", 4))

    def noisy(value: float) -> float:
        return value * max(0.1, 1.0 + noise * drawn.gauss(0, 1))

    readings = []
    for _ in range(processes):
        ops = tuple(noisy(layer[4] * slower.get(n, 1.0)) for n, layer in enumerate(LAYERS))
        before = tuple(noisy(gaps.get(n, GAP)) for n in range(len(LAYERS)))
        step = sum(ops) + sum(before) + unexplained
        steps = tuple(step * (1 + 1e-3 * k) for k in (-1, 0, 1))
        facts: dict[str, Any] = {
            "steps": steps,
            "raw_steps": steps,
            "speeds": (1.0,) * 3,
            "first_step_seconds": 2 * step,
            "ops": ops,
            "ops_errors": (0.0,) * len(ops),
            "gaps": before,
        }
        readings.append(Reading(**{**facts, **(reading or {})}))
    facts = {
        "model": "paper",
        "setting": f"cpu batch={batch}",
        "device": "cpu",
        "batch": batch,
        "training": True,
        "torch": "2.13.0",
        "started": "2026-11-28T12:00:00Z",
        "parameters": 1000,
        "tensors": 4,
        "rows": tuple(rows) if rows is not None else tuple(row(n) for n in range(len(LAYERS))),
        "sequence": tuple(range(len(LAYERS))),
        "readings": tuple(readings),
        "machine": {"cpu": "Paper 9000", "cpu_cores_allowed": "2"},
        "modes": {"threads": 2},
        "flops_per_second": 1e11,
        "bytes_per_second": {"65536": 1e11, "1048576": 5e10, "67108864": 2e10},
    }
    return Capture(**{**facts, **changes})
