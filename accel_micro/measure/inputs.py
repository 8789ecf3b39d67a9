"""Inputs from a fixed seed: the same values on every device and, rounded, in every dtype; never zeros."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch

SEED = 20_261_101
UPSTREAM_SEED = 7
"""Of the gradients that a backward is given."""


@dataclass(frozen=True)
class Timed:
    """What an op's definition may return instead of a plain call: a call whose result lies elsewhere.

    Attributes:
        call: what is timed.
        result: reads what the first call made (an optimizer step returns nothing and changes parameters).
    """

    call: Callable[[], Any]
    result: Callable[[], Any]


@dataclass
class Inputs:
    """Makes the tensors of one case. Handed to an op's definition as its first argument, `t`.

    Values are drawn on the CPU, one generator a tensor, rounded to the case's dtype and moved to the device.
    The reference is built by the same definition with `reference=True`: the same rounded values, in float64
    on `reference_device`.

    Attributes:
        device: device of the tensors.
        dtype: dtype of floating-point tensors.
        differentiate: floating-point tensors require gradients (the case times backward).
        further: these are not the first inputs of their case, see `cold`; contexts are entered for the first alone.
        reference: the definition is building its reference.
        leaves: tensors made so far that require gradients, in order.
        made: all tensors made so far, in order; their bytes are part of the work.
        contexts: makers of the contexts in which the call is to run, outermost first; see `within`.
    """

    device: torch.device
    dtype: torch.dtype
    differentiate: bool = False
    reference: bool = False
    further: bool = False
    reference_device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    leaves: list[torch.Tensor] = field(default_factory=list)
    made: list[torch.Tensor] = field(default_factory=list)
    contexts: list[Callable[[], AbstractContextManager[Any]]] = field(default_factory=list)
    _drawn: int = 0

    @property
    def floating(self) -> torch.dtype:
        """Dtype of floating-point tensors here: the case's, and float64 for the reference."""
        return torch.float64 if self.reference else self.dtype

    @property
    def here(self) -> torch.device:
        """Device of the tensors here."""
        return self.reference_device if self.reference else self.device

    def _generator(self) -> torch.Generator:
        self._drawn += 1
        return torch.Generator().manual_seed(SEED + self._drawn)

    def _normal(self, shape: Sequence[int], scale: float) -> torch.Tensor:
        """Normal values on the CPU, rounded to the case's dtype; of integers a quarter of their range is `scale`."""
        wide = torch.float64 if self.dtype == torch.float64 else torch.float32
        values = torch.randn(shape, generator=self._generator(), dtype=wide).mul_(scale)
        if not self.dtype.is_floating_point:
            largest = torch.iinfo(self.dtype).max
            values = values.mul_((largest + 1) / 4).round_().clamp_(-largest, largest)
        return values.to(self.dtype)

    def _place(self, value: torch.Tensor) -> torch.Tensor:
        placed = value.to(self.here)
        self.made.append(placed)
        return placed

    def __call__(
        self, *shape: int, scale: float = 1.0, constant: bool = False, channels_last: bool = False
    ) -> torch.Tensor:
        """Normal values times `scale`, of the given shape, in the case's dtype.

        With `constant` no gradient is taken with respect to it. With `channels_last` images or filters of
        shape (n, c, h, w) lie in memory as (n, h, w, c).
        """
        value = self._normal(shape, scale)
        if self.reference:
            value = value.to(torch.float64)
        if channels_last:
            value = value.to(memory_format=torch.channels_last)
        value = self._place(value)
        if self.differentiate and not constant:
            value.requires_grad_()
            self.leaves.append(value)
        return value

    def integers(self, high: int, *shape: int) -> torch.Tensor:
        """Uniform integers in [0, high), int64."""
        return self._place(torch.randint(high, shape, generator=self._generator()))

    def host(self, *shape: int, pinned: bool = False) -> torch.Tensor:
        """Normal values in the host's memory, which does not swap out the pages of `pinned` tensors.

        Those of the reference are in float64, where the reference is computed.
        """
        value = self._normal(shape, 1.0)
        if self.reference:
            return value.to(self.here, torch.float64)
        value = value.pin_memory() if pinned else value
        self.made.append(value)
        return value

    def fill(self, tensor: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        """Overwrite a tensor of the case (a module's weight, a gradient) with fixed normal values; return it.

        A weight that requires a gradient becomes one of the leaves when the case times backward.
        """
        with torch.no_grad():
            tensor.copy_(self._normal(tensor.shape, scale))
        self.made.append(tensor)
        if tensor.requires_grad:
            tensor.requires_grad_(self.differentiate)
            if self.differentiate:
                self.leaves.append(tensor)
        return tensor

    def within(self, context: Callable[..., AbstractContextManager[Any]], *arguments: Any) -> None:
        """Have the call run inside `context(*arguments)`, entered before timing and no part of it.

        The reference's call runs inside the contexts that the definition asks for when it builds it.
        """
        self.contexts.append(lambda: context(*arguments))
