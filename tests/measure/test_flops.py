"""Our FLOP formulas: as torch's counter where that is right, and as forward's where it is not."""

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from accel_micro.measure.flops import formulas


def counted(call: Any, ours: bool) -> int:
    with FlopCounterMode(display=False, custom_mapping=formulas() if ours else None) as counter:
        call()
    return int(counter.get_total_flops())


def layer(groups: int, transposed: bool, stride: int = 1) -> tuple[Any, torch.Tensor]:
    kind = torch.nn.ConvTranspose2d if transposed else torch.nn.Conv2d
    return kind(8, 12, (3, 2), stride=stride, groups=groups), torch.randn(5, 8, 9, 7, requires_grad=True)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
def test_without_groups_as_torch_has_them(transposed: bool, stride: int) -> None:
    module, x = layer(1, transposed, stride)

    def step() -> None:
        module(x).sum().backward()

    assert counted(step, ours=True) == counted(step, ours=False)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [2, 4])
def test_each_gradient_has_as_many_as_forward(groups: int, transposed: bool) -> None:
    module, x = layer(groups, transposed)
    forward = counted(lambda: module(x), ours=True)
    assert counted(lambda: module(x).sum().backward(), ours=True) == 3 * forward
    assert counted(lambda: module(x.detach()).sum().backward(), ours=True) == 2 * forward
