"""Inputs whose values change the time: zeros, ones and denormal numbers beside normal data."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import torch

from accel_micro.devices.base import Call, Device
from accel_micro.measure.inputs import Inputs
from accel_micro.measure.sampling import Sampler, opened
from accel_micro.report.units import quantity
from benchmarks.harness.reports import naive
from benchmarks.harness.reports.row import Attempt, Finding, within

_TURNS: Final = 7
OURS: Final = "ours"
DENORMAL: Final = 1e-39
"""Below the least normal float32, 1.2e-38."""

Fill = Callable[[torch.Tensor], torch.Tensor]

ZEROS: Final = "zeros"
FILLS: Final[Mapping[str, Fill]] = {
    ZEROS: torch.zeros_like,
    "ones": torch.ones_like,
    "small integers": lambda x: torch.randint_like(x, -2, 3),
    "denormals": lambda x: torch.full_like(x, DENORMAL),
}
"""What harnesses fill their operands with, from a normal tensor of the same shape."""


def _product(t: Inputs, side: int) -> Callable[[], torch.Tensor]:
    a, b = t(side, side), t(side, side)
    return lambda: torch.mm(a, b)


def _scaling(t: Inputs, elements: int) -> Callable[[], torch.Tensor]:
    x = t(elements)
    return lambda: torch.mul(x, 0.5)


def by_value(
    kind: str,
    dtype: str,
    build: Callable[[Inputs], Call],
    what: str,
    fills: tuple[str, ...],
    *,
    flops: float | None = None,
    seconds: float = 0.05,
) -> Finding:
    """The op on its fixed normal data, and the same with operands of other values, in turns.

    Args:
        seconds: about what a reading lasts.
    """
    with opened(kind) as device, torch.no_grad():
        calls = {"normal": build(_inputs(device, dtype))}
        for name in fills:
            calls[name] = build(_Filled(_inputs(device, dtype), FILLS[name]))  # type: ignore[arg-type]
        ways = {name: _loop(device, call, seconds) for name, call in calls.items()}
        ways[OURS] = naive.block_of_ours(Sampler(device, calls["normal"], 1.0))
        turns = naive.Turns.read(device, ways, _TURNS)
        same = _same_each_time(device, dtype, build)
    ratios = {name: turns.ratio(name, "normal") for name in fills}
    farthest = max(ratios, key=lambda name: abs(math.log(ratios[name])))
    word, right = within(turns.ratio(OURS, "normal"))

    def shown(value: float) -> str:
        return quantity(value, "s") if flops is None else quantity(flops / value, "FLOP/s")

    return Finding(
        tried=f"{what} {dtype}, {len(calls)} kinds of values in {_TURNS} turns",
        naive=", ".join(f"{name} {shown(turns.median(name))} ({ratios[name]:.2f}×)" for name in fills),
        ours=f"{shown(turns.median(OURS))}; a plain loop over normal data {shown(turns.median('normal'))}",
        does=f"{word}: normal data from a fixed seed, {same}; {farthest} would read "
        f"{ratios[farthest]:.2f} times",
        good=right and same == "the same bits each time",
        figures={
            **{f"{name}_seconds": turns.median(name) for name in turns.seconds},
            **{f"{name}_over_normal": ratio for name, ratio in ratios.items()},
            "ours_over_normal": turns.ratio(OURS, "normal"),
            "flops": flops,
        },
    )


def _inputs(device: Device, dtype: str) -> Inputs:
    return Inputs(torch.device(device.name), getattr(torch, dtype))


class _Filled:
    """Inputs whose tensors have other values."""

    def __init__(self, inputs: Inputs, fill: Fill) -> None:
        self._inputs, self._fill = inputs, fill

    def __call__(self, *shape: int) -> torch.Tensor:
        return self._fill(self._inputs(*shape))


def _loop(device: Device, call: Call, seconds: float) -> Callable[[], float]:
    """Times as many calls as last about that long."""
    naive.synchronised(device, call, 3)
    calls = max(3, round(seconds / naive.synchronised(device, call, 3)))
    return lambda: naive.synchronised(device, call, calls)


def _same_each_time(device: Device, dtype: str, build: Callable[[Inputs], Call]) -> str:
    made: list[list[Any]] = []
    for _ in range(2):
        inputs = _inputs(device, dtype)
        build(inputs)
        made.append(inputs.made)
    if not all(torch.equal(one, other) for one, other in zip(*made, strict=True)):
        return "NOT THE SAME EACH TIME"
    share = max(float((tensor == 0).double().mean()) for tensor in made[0])
    return "the same bits each time" if share < 0.01 else f"{100 * share:.0f} % ZEROS"


ATTEMPTS: Final = (
    Attempt(
        18,
        "cuda",
        "CUDA",
        partial(
            by_value,
            "cuda",
            "bfloat16",
            partial(_product, side=8192),
            "mm 8192³",
            (ZEROS, "small integers"),
            flops=2.0 * 8192**3,
            seconds=0.2,
        ),
    ),
    Attempt(
        19,
        "cuda",
        "CUDA",
        partial(
            by_value,
            "cuda",
            "float16",
            partial(_product, side=8192),
            "mm 8192³",
            ("ones",),
            flops=2.0 * 8192**3,
            seconds=0.2,
        ),
    ),
    Attempt(
        18,
        "cpu",
        "CPU",
        partial(
            by_value,
            "cpu",
            "float32",
            partial(_product, side=512),
            "mm 512³",
            (ZEROS, "small integers", "denormals"),
            flops=2.0 * 512**3,
        ),
    ),
    Attempt(
        19,
        "cpu",
        "CPU",
        partial(
            by_value,
            "cpu",
            "float32",
            partial(_scaling, elements=1 << 16),
            "65,536 numbers × 0.5",
            ("ones", "denormals"),
        ),
    ),
)
