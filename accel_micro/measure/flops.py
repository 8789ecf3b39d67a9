"""FLOP formulas where torch's counter has none that is right."""

from collections.abc import Sequence
from math import prod
from typing import Any


def convolution_backward(
    gradient: Any,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
    **_: Any,
) -> int:
    """FLOPs of the gradients that are asked for, those of input and weight as many each as forward has.

    torch's counter (2.13) leaves the groups out of the weight's: of a depthwise layer of 576 channels it has 290 times
    too many.

    Args:
        gradient: of the output, (batch, channels, places…). x: the input, likewise.
        weight: (outputs, inputs ÷ groups, filter…), or of a transposed convolution (inputs, outputs ÷ groups, filter…).
    """
    places = prod((x if transposed else gradient).shape[2:])
    return int(2 * x.shape[0] * places * weight.numel() * (int(output_mask[0]) + int(output_mask[1])))


convolution_backward._get_raw = True  # type: ignore[attr-defined]  # the counter then hands tensors over, not shapes


def formulas() -> dict[Any, Any]:
    """By operator, for `FlopCounterMode(custom_mapping=…)`."""
    import torch

    return {torch.ops.aten.convolution_backward: convolution_backward}
