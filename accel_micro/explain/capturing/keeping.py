"""Arguments of a call, kept so that it can be made again: the real numbers, or others of their kind."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def spanned(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides: expanded and overlapping tensors stay so, since a kernel sees that."""
    tensor = tensor.detach()
    if tensor.layout != torch.strided or not tensor.numel():
        return tensor.clone()
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    memory = tensor.as_strided((last + 1,), (1,), tensor.storage_offset()).clone()
    return memory.as_strided(tensor.shape, tensor.stride(), 0)


@dataclass(frozen=True)
class Recipe:
    """What kind of numbers a tensor held: their size, how many were zero, whether all had one sign.

    Speed can depend on that: a root of negative numbers is NaN, and slow (measured in an optimizer: 1.9 times).
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    mean: float
    deviation: float
    zeros: float
    least: float
    most: float

    @classmethod
    def of(cls, tensor: torch.Tensor) -> "Recipe":
        """That of a tensor of floating-point numbers."""
        numbers = tensor.detach().reshape(-1)[: 1 << 20].to("cpu", torch.float64)
        numbers = numbers[torch.isfinite(numbers)]
        others = numbers[numbers != 0]
        if not len(others):
            return cls(
                tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device, 0.0, 0.0, 1.0, 0.0, 0.0
            )
        return cls(
            tuple(tensor.shape),
            tensor.stride(),
            tensor.dtype,
            tensor.device,
            float(others.mean()),
            float(others.std(correction=0)),
            1.0 - len(others) / len(numbers),
            float(numbers.min()),
            float(numbers.max()),
        )

    def make(self) -> torch.Tensor:
        """A tensor of that kind: within the same bounds, as many of them zero."""
        last = sum((size - 1) * stride for size, stride in zip(self.shape, self.stride, strict=True))
        generator = torch.Generator().manual_seed(len(self.shape) + last)
        numbers = torch.randn(last + 1, generator=generator)
        if self.least >= 0 or self.most <= 0:  # normal ones of both signs, without their sign
            size = (self.mean**2 + self.deviation**2) ** 0.5
            numbers.abs_().mul_(size if self.least >= 0 else -size)
        else:
            numbers.mul_(self.deviation).add_(self.mean)
        numbers.clamp_(self.least, self.most)
        if self.zeros:
            numbers[torch.rand(last + 1, generator=generator) < self.zeros] = 0.0
        memory = numbers.to(self.device, self.dtype)
        return memory.as_strided(self.shape, self.stride, 0)


class Keeper:
    """Keeps arguments of calls: real numbers while they fit into a budget, recipes of the larger ones after it."""

    def __init__(self, budget_bytes: float) -> None:
        self._left = budget_bytes

    def __call__(self, func: Any, args: Any, kwargs: Any) -> Arguments:
        """What to keep of the arguments of a call that is about to be made."""
        seen: dict[tuple[Any, ...], Any] = {}

        def keep(tensor: torch.Tensor) -> Any:
            if tensor.layout != torch.strided:
                return tensor.detach().clone()
            name = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
            if name not in seen:
                seen[name] = self._kept(tensor)
            return seen[name]

        return mapped(tuple(args), keep), mapped(dict(kwargs), keep)

    def _kept(self, tensor: torch.Tensor) -> Any:
        size = tensor.untyped_storage().nbytes()
        size = min(size, tensor.numel() * tensor.element_size())
        if size <= self._left or not tensor.is_floating_point():
            self._left -= size
            return spanned(tensor)
        return Recipe.of(tensor)


def made(kept: Arguments) -> Arguments:
    """Arguments to call with: recipes are followed, tensors are the kept ones."""

    def make(value: Any) -> Any:
        return value.make() if isinstance(value, Recipe) else value

    return mapped(kept[0], make, (Recipe,)), mapped(kept[1], make, (Recipe,))


def mapped(value: Any, change: Callable[[Any], Any], kinds: tuple[type, ...] = (torch.Tensor,)) -> Any:
    """The same nest of lists, tuples and dictionaries with its tensors (or other `kinds`) changed."""
    if isinstance(value, kinds):
        return change(value)
    if isinstance(value, tuple):
        return tuple(mapped(each, change, kinds) for each in value)
    if isinstance(value, list):
        return [mapped(each, change, kinds) for each in value]
    if isinstance(value, dict):
        return {name: mapped(each, change, kinds) for name, each in value.items()}
    return value


def written(func: Any, args: Any, kwargs: Any) -> Iterator[Any]:
    """The arguments that a call changes, as its schema says."""
    for number, argument in enumerate(func._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        value = kwargs.get(argument.name) if argument.name in kwargs else None
        if value is None and number < len(args):
            value = args[number]
        if value is not None:
            yield value
