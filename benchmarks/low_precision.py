"""Low precision: products of 8-bit numbers, layers whose weights are narrower than what goes through them, conversions.

Language models are served so: a token through a layer (m=1) is bound by reading the weights, so half or a quarter of
the bytes is twice or four times the speed. Where a device has no such kernel the case is skipped with torch's reason.
"""

import torch

from accel_micro.suite import op


def _flops(m, k, n):
    return 2 * m * k * n


PRODUCTS = {
    "quick": ["m=1024 k=1024 n=1024"],
    "standard": ["m=64 k=2048 n=2048"],
    "full": ["m=4096 k=4096 n=4096", "m=8192 k=8192 n=8192", "m=32 k=8192 n=8192"],
    "backward": False,
    "flops": _flops,
}
LAYERS = {
    "standard": ["m=1 k=2048 n=2048"],
    "full": ["llama2: m=1 k=4096 n=4096", "m=16 k=4096 n=4096", "m=512 k=4096 n=4096"],
    "dtypes": ("float32", "bfloat16", "float16"),
    "backward": False,
    "flops": _flops,
    "tolerance": 2.0,  # weights times their scales are rounded once more
    "unsupported": lambda device, dtype: (
        "on GPUs the activations have to be bfloat16" if device == "cuda" and dtype != "bfloat16" else None
    ),
}
GROUP = 128
"""Weights of 4 bits that share a scale."""


@op(**PRODUCTS, dtypes=("int8",), bytes=lambda m, k, n: m * k + k * n + 4 * m * n)
def int8_mm(t, m, k, n):
    """Products of 8-bit integers, summed in 32 bits: exact."""
    a, b = t(m, k), t(n, k).t()
    return (lambda: a @ b) if t.reference else (lambda: torch._int_mm(a, b))


@op(**PRODUCTS, dtypes=("float8_e4m3fn",), bytes=lambda m, k, n: m * k + k * n + 2 * m * n)
def float8_mm(t, m, k, n):
    """Products of 8-bit floats with a scale for each operand, into bfloat16."""
    a, b, one = t(m, k), t(n, k).t(), torch.ones((), device=t.here)
    _require_float8(t.here)
    return (
        (lambda: a @ b)
        if t.reference
        else (lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16))
    )


def _require_float8(device):
    if torch.ops.aten._scaled_mm.default._schema.arguments[2].name != "scale_a":
        raise NotImplementedError("this torch multiplies float8 in another, older way")
    if device.type == "cuda" and not torch.version.hip and torch.cuda.get_device_capability(device) < (8, 9):
        raise NotImplementedError("products of float8 need compute capability 8.9 or newer")


@op(**LAYERS, bytes=lambda m, k, n, itemsize: itemsize * (m * k + n + m * n) + n * k)
def weight_int8(t, m, k, n):
    """A layer whose weights are 8-bit integers, with a scale for each output."""
    x, scales = t(m, k), t(n, scale=0.01)
    weight = (t.integers(255, n, k) - 127).to(torch.int8)
    if t.reference:
        return lambda: x @ (weight.to(x.dtype) * scales[:, None]).t()
    return lambda: torch._weight_int8pack_mm(x, weight, scales)


@op(**LAYERS, bytes=lambda m, k, n, itemsize: itemsize * (m * k + 2 * n * k / GROUP + m * n) + n * k / 2)
def weight_int4(t, m, k, n):
    """A layer whose weights are 4-bit integers, with a scale and an offset for each group of 128."""
    x, scales, offsets = t(m, k), t(k // GROUP, n, scale=0.01), t(k // GROUP, n, scale=0.01)
    weight = t.integers(16, n, k).to(torch.int32)
    if t.reference:
        wide = (weight - 8).t().reshape(k // GROUP, GROUP, n) * scales[:, None] + offsets[:, None]
        return lambda: x @ wide.reshape(k, n)
    packed, product = _packed(weight)
    both = torch.stack([scales, offsets], dim=2).contiguous()
    return lambda: product(x, packed, GROUP, both)


def _packed(weight):
    """Weights in the order that the device's kernel wants, and the kernel."""
    if weight.device.type == "cpu":
        if not hasattr(torch, "_convert_weight_to_int4pack_for_cpu"):
            raise NotImplementedError("this torch has no 4-bit weights on the CPU")
        return torch._convert_weight_to_int4pack_for_cpu(weight, 1), torch._weight_int4pack_mm_for_cpu
    pairs = (weight[:, ::2] << 4 | weight[:, 1::2]).to(torch.uint8)
    return torch._convert_weight_to_int4pack(pairs, 8), torch._weight_int4pack_mm


NUMBERS = {"standard": ["n=1000000"], "full": ["n=16777216"], "flops": lambda: 0}


@op(**NUMBERS, dtypes=("float32", "bfloat16", "float16"), backward=False)
def to_float8(t, n):
    """Conversion to 8-bit floats."""
    x = t(n)
    return lambda: x.to(torch.float8_e4m3fn)


@op(**NUMBERS, dtypes=("float8_e4m3fn",), backward=False)
def from_float8(t, n):
    """Conversion of 8-bit floats to bfloat16."""
    x, wide = t(n), torch.float64 if t.reference else torch.bfloat16
    return lambda: x.to(wide)


@op(**NUMBERS, dtypes=("float32",))
def fake_quantize(t, n):
    """Rounded to 8-bit steps and back, as in training for them; the gradient passes."""
    x = t(n)
    return lambda: torch.fake_quantize_per_tensor_affine(x, 0.05, 0, -128, 127)
