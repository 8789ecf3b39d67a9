"""Ops that work number by number: activations, arithmetic, broadcasting, conversions.

A thousand numbers are bound by launches, a million fit the caches of most devices, and what is larger is bound by
memory. So all of a size should take the same time on an accelerator, and whatever takes longer computes too much or
reads badly. Strided and expanded operands are variants: kernels for them are others, and were wrong before.
"""

import torch
import torch.nn.functional as F  # noqa: N812

from accel_micro.measure.inputs import Timed
from accel_micro.suite import op

SIZES = {"standard": ["n=1000000"], "full": ["n=1000", "n=100000", "n=16777216"]}
FULL = {"full": [*SIZES["standard"], *SIZES["full"]]}
QUICK = {**SIZES, "quick": ["n=1000000"]}
WORK = {"flops": lambda: 0}
# fmt: off
ANYWHERE = (
    "abs", "atan", "ceil", "cosh", "erf", "erfc", "expm1", "floor", "frac", "hardshrink", "nan_to_num", "neg", "round",
    "sgn", "sign", "sin", "sinh", "square", "tan", "trunc",
)
INSIDE = (
    "acos", "asin", "digamma", "erfinv", "lgamma", "log10", "log1p", "log2", "logit", "reciprocal", "rsqrt", "sqrt",
)
# fmt: on
OF_TWO = ("sub", "fmod", "remainder")
OF_INTEGERS = ("bitwise_left_shift", "bitwise_right_shift", "bitwise_xor", "logical_and")


@op(
    quick=["n=1000", "n=1000000"],
    standard=["n=16777216"],
    full=["n=100000"],
    cold=["n=1000000"],
    sweep="n=1024..16777216",
    **WORK,
)
def add(t, n):
    """Sum of two."""
    a, b = t(n), t(n)
    return lambda: torch.add(a, b)


@op(**FULL, **WORK)
def mul(t, n):
    """Product of two."""
    a, b = t(n), t(n)
    return lambda: torch.mul(a, b)


@op(**SIZES, **WORK)
def addcmul(t, n):
    """Three operands read in one pass."""
    a, b, c = t(n), t(n), t(n)
    return lambda: torch.addcmul(a, b, c, value=0.5)


@op(standard=["rows=1000 width=1000"], full=["rows=16384 width=1024", "rows=1024 width=16384"], **WORK)
def add_row(t, rows, width):
    """A row added to each row: broadcasting along the first dimension, as a bias is."""
    a, b = t(rows, width), t(width)
    return lambda: torch.add(a, b)


@op(standard=["rows=1000 width=1000"], full=["rows=16384 width=1024", "rows=1024 width=16384"], **WORK)
def add_column(t, rows, width):
    """A column added to each column: broadcasting along the last dimension."""
    a, b = t(rows, width), t(rows, 1)
    return lambda: torch.add(a, b)


@op(standard=["rows=1000 width=1000"], full=["rows=4096 width=4096"], **WORK)
def add_transposed(t, rows, width):
    """One operand row by row in memory, the other column by column."""
    a, b = t(rows, width), t(width, rows).t()
    return lambda: torch.add(a, b)


@op(
    standard=["n=1000000"],
    full=["n=16777216"],
    dtypes=("float32", "bfloat16", "float16"),
    bytes=lambda n, itemsize: n * (itemsize + 4 + 4),
    **WORK,
)
def add_mixed(t, n):
    """The dtype of the case and float32: the narrower operand is widened on the way."""
    a, b = t(n), t(n, constant=True).to(torch.float64 if t.reference else torch.float32)
    return lambda: torch.add(a, b)


@op(**SIZES, **WORK)
def relu(t, n):
    """The larger of x and 0."""
    x = t(n)
    return lambda: F.relu(x)


@op(**QUICK, **WORK)
def gelu(t, n):
    """x times the normal distribution function of x, exactly: an error function a number."""
    x = t(n)
    return lambda: F.gelu(x)


@op(**FULL, **WORK)
def gelu_tanh(t, n):
    """Its approximation by tanh, as GPT-2 has it."""
    x = t(n)
    return lambda: F.gelu(x, approximate="tanh")


@op(**SIZES, **WORK)
def silu(t, n):
    """x times its logistic function, as in Llama and EfficientNet."""
    x = t(n)
    return lambda: F.silu(x)


@op(**SIZES, **WORK)
def sigmoid(t, n):
    """Logistic function."""
    x = t(n)
    return lambda: torch.sigmoid(x)


@op(**SIZES, **WORK)
def tanh(t, n):
    """Hyperbolic tangent."""
    x = t(n)
    return lambda: torch.tanh(x)


@op(**FULL, **WORK)
def exp(t, n):
    """Exponential."""
    x = t(n)
    return lambda: torch.exp(x)


@op(**FULL, **WORK)
def hardswish(t, n):
    """x times a clipped line, as in MobileNetV3."""
    x = t(n)
    return lambda: F.hardswish(x)


@op(**FULL, **WORK)
def leaky_relu(t, n):
    """x, or a hundredth of it where it is negative."""
    x = t(n)
    return lambda: F.leaky_relu(x)


@op(**FULL, **WORK)
def clamp(t, n):
    """What lies outside -1 to 1 becomes its nearer end."""
    x = t(n)
    return lambda: torch.clamp(x, -1.0, 1.0)


@op(**SIZES, **WORK, bytes=lambda n, itemsize: n * (1 + 3 * itemsize))
def where(t, n):
    """One of two, by a mask."""
    a, b = t(n), t(n)
    mask = t.integers(2, n).bool()
    return lambda: torch.where(mask, a, b)


@op(**SIZES, **WORK)
def strided(t, n):
    """Every second number of a tensor."""
    x = t(2 * n)[::2]
    return lambda: torch.add(x, 1.0)


@op(**SIZES, dtypes=("float32", "bfloat16", "float16"), **WORK)
def denormal(t, n):
    """Numbers next to zero, of which some processors make exceptions: a product can take a hundred times as long."""
    x = t(n, scale=torch.finfo(t.dtype).tiny / 8)
    return lambda: torch.mul(x, 2.0)


@op(standard=["rows=1000 width=1000"], full=["rows=8192 width=8192"], **WORK)
def expanded(t, rows, width):
    """A row that stands for many equal ones, without a copy, and a matrix."""
    x, y = t(width).expand(rows, width), t(rows, width)
    return lambda: torch.mul(x, y)


@op(standard=["n=1000000"], full=["n=16777216"], dtypes=("float32", "bfloat16", "float16"), **WORK)
def to_float32(t, n):
    """Conversion from the dtype of the case to float32; from float32 a copy."""
    x = t(n)
    wide = torch.float64 if t.reference else torch.float32
    return lambda: x.to(wide, copy=True)


@op(
    standard=["name=cos n=1000000"],
    full=[f"name={name} n=1000000" for name in ANYWHERE],
    backward=False,
    **WORK,
)
def unary(t, name, n):
    """The function of that name, of any number."""
    x, function = t(n), getattr(torch, name, None) or getattr(F, name)
    return lambda: function(x)


@op(
    standard=["name=log n=1000000"],
    full=[f"name={name} n=1000000" for name in INSIDE],
    backward=False,
    bytes=lambda n, itemsize: 2 * n * itemsize,
    **WORK,
)
def unary_inside(t, name, n):
    """The function of that name, of numbers between 0 and 1, where each of these is defined."""
    x = t.integers(62, n).add(1).div(64).to(t.floating)  # which every dtype holds exactly
    function = getattr(torch, name)
    return lambda: function(x)


@op(
    standard=["name=div n=1000000"],
    full=[f"name={name} n=1000000" for name in OF_TWO],
    backward=False,
    bytes=lambda n, itemsize: 3 * n * itemsize,
    **WORK,
)
def binary(t, name, n):
    """The function of that name, of any number and one between 1/16 and 4."""
    a, b = t(n), t.integers(64, n).add(1).div(16).to(t.floating)
    function = getattr(torch, name)
    return lambda: function(a, b)


@op(
    full=[f"name={name} n=1000000" for name in OF_INTEGERS],
    dtypes=("float32",),
    backward=False,
    bytes=lambda name, n: n * (8 + 8 + (1 if name.startswith("logical") else 8)),
    **WORK,
)
def integer(t, name, n):
    """The function of that name, of two integers of 64 bits."""
    a, b = t.integers(1000, n), t.integers(8, n)
    function = getattr(torch, name)
    return Timed(lambda: function(a, b), lambda: function(a, b).long())


@op(
    full=["n=1000000", "n=16777216"],
    backward=False,
    bytes=lambda n, itemsize: 4 * n * itemsize,
    **WORK,
)
def addcdiv(t, n):
    """A quotient added, in one pass."""
    a, b, c = t(n), t(n), t.integers(64, n).add(1).div(16).to(t.floating)
    return lambda: torch.addcdiv(a, b, c, value=0.5)


@op(full=["n=1000000"], **WORK)
def hardsigmoid(t, n):
    """A clipped line, as in MobileNetV3's scales of channels."""
    x = t(n)
    return lambda: F.hardsigmoid(x)


@op(full=["n=1000000"], **WORK)
def relu6(t, n):
    """x between 0 and 6, as in MobileNetV2."""
    x = t(n, scale=4.0)
    return lambda: F.relu6(x)
