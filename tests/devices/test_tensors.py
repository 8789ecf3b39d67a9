"""Bytes and addresses of tensors, where there are any."""

import torch

from accel_micro.devices.tensors import address, size_bytes, storage_address


def test_views_share_their_storage_and_not_their_address() -> None:
    x = torch.zeros(8, 8)
    view = x[2:]
    assert storage_address(view) == storage_address(x) == address(x)
    assert address(view) == address(x) + 2 * 8 * 4
    assert size_bytes(view) == 6 * 8 * 4


def test_an_expanded_tensor_takes_the_memory_of_one_copy() -> None:
    assert size_bytes(torch.zeros(1, 4).expand(100, 4)) == 16


def test_tensors_without_an_address_are_told_apart() -> None:
    x, y = torch.zeros(8, device="meta"), torch.zeros(8, device="meta")
    assert address(x) == storage_address(x) != address(y)
    assert size_bytes(x) == 32
