"""What a call is and does: its tensors in words, its work, whether it draws or only names memory."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import torch

from accel_micro.measure import flops

_WHOLE_CONVOLUTIONS: Final = ("conv1d", "conv2d", "conv3d")
_LONGEST_TEXT: Final = 120
_FEWEST_FOR_SHARE: Final = 16


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors in arguments or results, in order."""
    return list(_tensors(value))


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)


def described(tensor: torch.Tensor) -> str:
    """`float32[4,64,56,56]`, with its layout or strides where it is not contiguous."""
    text = f"{str(tensor.dtype).removeprefix('torch.')}[{','.join(map(str, tensor.shape))}]"
    if tensor.layout != torch.strided:
        return f"{text} {str(tensor.layout).removeprefix('torch.')}"
    if tensor.is_contiguous():
        return text
    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        return f"{text} channels_last"
    return f"{text} strides {','.join(map(str, tensor.stride()))}"


def scalars_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The arguments that are no tensors, as text."""
    texts = [_scalar(value) for value in args if not _is_tensors(value)]
    texts += [f"{name}={_scalar(value)}" for name, value in kwargs.items() if not _is_tensors(value)]
    text = ", ".join(texts)
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"


def _is_tensors(value: Any) -> bool:
    return bool(tensors_in(value))


def _scalar(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (torch.UntypedStorage, torch.TypedStorage)):  # as text it would print every byte
        return "storage"
    return str(value).removeprefix("torch.")


def convolution_backend(func: Any, args: Sequence[Any]) -> str:
    """Which implementation of convolution torch chooses for these arguments; empty for other operators."""
    name = func._overloadpacket.__name__
    select = getattr(torch._C, "_select_conv_backend", None)
    if name in _WHOLE_CONVOLUTIONS:
        args = _as_convolution(args)
    elif name not in ("convolution", "_convolution", "convolution_backward"):
        return ""
    if select is None:
        return ""
    try:
        if name == "convolution_backward":
            # gradient, input, weight, sizes of the bias, then as forward has them
            _, x, weight, sizes, *rest = args[:10]
            chosen = select(x, weight, None, *rest[:5], int(rest[5]), sizes)
        else:
            x, weight, bias, *rest = args[:9]
            chosen = select(x, weight, bias, *rest[:5], int(rest[5]))
    except (RuntimeError, TypeError, IndexError, ValueError):
        return ""
    return str(chosen).rpartition(".")[2]


def _as_convolution(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments of `aten.conv2d`, as inference calls it, to those of `aten.convolution`."""
    x, weight, *rest = args
    places = weight.dim() - 2
    defaults: tuple[Any, ...] = (None, [1] * places, [0] * places, [1] * places, 1)
    bias, stride, padding, dilation, groups = (*rest, *defaults[len(rest) :])
    return (x, weight, bias, stride, padding, dilation, False, [0] * places, groups)


def flops_of(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> float:
    """As torch's counter has them, or our own formulas; 0 for what neither counts."""
    from torch.utils.flop_counter import flop_registry

    packet = func._overloadpacket
    if (
        packet.__name__ in _WHOLE_CONVOLUTIONS
    ):  # inference calls layers whole, and the counter knows their parts
        packet, args = torch.ops.aten.convolution, _as_convolution(args)
    elif packet.__name__ == "linear" and func.namespace == "aten":
        return float(2 * args[0].numel() * args[1].shape[0])
    count = flops.formulas().get(packet) or flop_registry.get(packet)
    if count is None:
        return 0.0
    try:
        return float(count(*args, **kwargs, out_val=out))
    except Exception:  # a formula that fails on some arguments must not cost the capture
        return 0.0


def is_view(func: Any) -> bool:
    """Whether it only gives another name to memory."""
    return any(
        returned.alias_info is not None and not returned.alias_info.is_write
        for returned in func._schema.returns
    )


def draws(func: Any) -> bool:
    """Whether its result is random."""
    return torch.Tag.nondeterministic_seeded in func.tags


def is_uninitialised(func: Any) -> bool:
    """Whether its result is memory as it was found."""
    return str(func._overloadpacket.__name__) in (
        "empty",
        "empty_like",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
    )


def all_finite(tensor: torch.Tensor) -> bool:
    """Whether there is neither NaN nor infinity in it."""
    if not (tensor.is_floating_point() and tensor.layout == torch.strided and tensor.numel()):
        return True
    return bool(torch.isfinite(tensor).all())


def numbers_finite(value: Any) -> bool:
    """Whether no number among arguments is NaN or infinity: a mask of attention is filled with infinity on purpose."""
    if isinstance(value, (list, tuple)):
        return all(map(numbers_finite, value))
    if isinstance(value, dict):
        return all(map(numbers_finite, value.values()))
    return not isinstance(value, float) or math.isfinite(value)


def subnormal_share(tensor: torch.Tensor) -> float:
    """Share of the numbers that are subnormal, of those in the first 2^20."""
    if not (tensor.is_floating_point() and tensor.layout == torch.strided and tensor.dtype.itemsize > 1):
        return 0.0
    if tensor.numel() < _FEWEST_FOR_SHARE:
        return 0.0
    numbers = tensor.detach().reshape(-1)[: 1 << 20].abs()
    small = (numbers > 0) & (numbers < torch.finfo(tensor.dtype).tiny)
    return float(small.count_nonzero()) / numbers.numel()
