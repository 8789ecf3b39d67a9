"""What an operator's signature says of it. Imports torch."""

from typing import Any

import torch


def is_view(operator: str) -> bool:
    """Whether the result shares memory with an input that it leaves as it is.

    Args:
        operator: such as `aten.permute`; False of one that this torch does not have.
    """
    return any(
        result.alias_info is not None and not result.alias_info.is_write
        for schema in _schemas(operator)
        for result in schema.returns
    )


def exists(operator: str) -> bool:
    """Whether this torch has it."""
    return bool(_schemas(operator))


def _schemas(operator: str) -> list[Any]:
    namespace, _, name = operator.partition(".")
    packet = getattr(getattr(torch.ops, namespace), name, None)
    return [] if packet is None else [getattr(packet, each)._schema for each in packet.overloads()]
