"""A network that draws nothing, so that its numbers can be compared with those of another device or dtype."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from torch import nn

_NAMES: Final = ("p", "dropout", "draws")
"""Attributes of modules that say with which probability they drop something (torch's and ours), or that they draw."""


@contextmanager
def still(module: nn.Module) -> Iterator[None]:
    """Probabilities of dropping are zero meanwhile, and what is drawn is the mean. Devices draw other numbers."""
    found = [
        (each, name, vars(each)[name])
        for each in module.modules()
        for name in _NAMES
        if isinstance(vars(each).get(name), float)
    ]
    try:
        for each, name, _ in found:
            setattr(each, name, 0.0)
        yield
    finally:
        for each, name, value in found:
            setattr(each, name, value)
