"""Where tensors lie and how many bytes they take, on devices that tell it and on those that do not."""

import contextlib
from typing import Any, Final

NO_ADDRESSES: Final = frozenset({"xla", "lazy", "meta"})
"""Types of device whose tensors have no memory of their own to point to; asking torch_xla's can end the process."""


def address(tensor: Any) -> int:
    """Where a tensor begins; without addresses what tells tensors apart that are alive."""
    return id(tensor) if tensor.device.type in NO_ADDRESSES else int(tensor.data_ptr())


def storage_address(tensor: Any) -> int:
    """Where the memory that a tensor is a view of begins, as `address` else."""
    if tensor.device.type not in NO_ADDRESSES:
        with contextlib.suppress(RuntimeError, NotImplementedError):
            return int(tensor.untyped_storage().data_ptr())
    return address(tensor)


def size_bytes(tensor: Any) -> int:
    """Bytes that a tensor occupies: an expanded one those of a single copy."""
    whole = int(tensor.numel() * tensor.element_size())
    if tensor.device.type not in NO_ADDRESSES:
        with contextlib.suppress(RuntimeError, NotImplementedError):
            return min(whole, int(tensor.untyped_storage().nbytes()))
    return whole


def bytes_of_result(result: Any) -> int:
    """Bytes of the tensors in what a call returned."""
    if isinstance(result, dict):
        return sum(map(bytes_of_result, result.values()))
    if isinstance(result, (list, tuple)):
        return sum(map(bytes_of_result, result))
    try:
        return int(result.numel() * result.element_size())
    except AttributeError:
        return 0
