"""What the tests of the families share: the list of ops, and tensors that exist in shape only."""

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from accel_micro.definition import Op
from accel_micro.measure.inputs import Inputs, Timed
from accel_micro.suite import OpBenchmark

FAMILIES = (
    "matmul", "conv2d", "attention", "optimizer", "normalization", "pointwise", "reduction", "pooling", "loss",
    "indexing", "sorting", "layout", "linalg", "fft", "convolution", "recurrent", "random", "overhead",
    "low_precision", "transfer", "compiled", "memory", "collectives", "models",
)  # fmt: skip
WIDENED = (
    "pointwise.add_mixed",
    "pointwise.to_float32",
    "sorting.unique",
    "random.normal",
    "random.uniform",
    "random.bernoulli",
    "random.permutation",
    "overhead.item",
    "low_precision.int8_mm",
    "low_precision.float8_mm",
    "low_precision.to_float8",
    "low_precision.from_float8",
    "memory.many",
    "pointwise.integer",
    "layout.arange",
    "random.in_place",
    "random.integers",
)
"""Ops whose result is of another dtype than the case's."""


def ops_of(family: str) -> Iterator[Op]:
    """The ops that a file under benchmarks/ defines."""
    for value in list(vars(importlib.import_module(f"benchmarks.{family}")).values()):
        if isinstance(value, type) and issubclass(value, OpBenchmark) and value is not OpBenchmark:
            yield value.op


OPS = {op.name: op for family in FAMILIES for op in ops_of(family)}


@dataclass
class ShapeOnly(Inputs):
    """Inputs on the meta device: the largest shapes cost nothing."""

    def _normal(self, shape: Sequence[int], scale: float) -> torch.Tensor:
        return torch.empty(tuple(shape), dtype=self.dtype, device="meta")


def shape_only(differentiate: bool = False, dtype: str = "float32") -> ShapeOnly:
    """Inputs in shape only."""
    return ShapeOnly(torch.device("meta"), getattr(torch, dtype), differentiate=differentiate)


def result_of(built: Any) -> Any:
    """What the first call makes."""
    if isinstance(built, Timed):
        built.call()
        return built.result()
    return built()


def gradients_of(built: Any, inputs: Inputs) -> tuple[torch.Tensor, ...]:
    """Gradients of the sum of the output, weighted by fixed normal numbers, with respect to the leaves."""
    output = result_of(built)
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return torch.autograd.grad(output, inputs.leaves, weights.to(inputs.dtype).to(output.dtype))
