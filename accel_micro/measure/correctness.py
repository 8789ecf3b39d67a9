"""Is the result right? Compared with float64 before anything is timed: a fast wrong op is no fast op."""

import math
from collections.abc import Sequence
from typing import Any

from accel_micro.measure.records import Check

_ROUNDING = 4.0  # in- and outputs are rounded a few times, each at most u
_SUMMATION = 8.0
_WORST_ELEMENT = 40.0  # of the norm-wise tolerance, in units of the reference's root mean square


def tensors_of(result: Any) -> list[Any]:
    """The tensors in a result, flattened in order; numbers become tensors, None and other values are left out."""
    import torch

    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (bool, int, float)):
        return [torch.tensor(float(result), dtype=torch.float64)]
    if isinstance(result, dict):
        return [tensor for value in result.values() for tensor in tensors_of(value)]
    if isinstance(result, (list, tuple)):
        return [tensor for value in result for tensor in tensors_of(value)]
    return []


def unit_roundoff(dtype: Any, tf32: bool = False) -> float:
    """Half the machine epsilon of a dtype; that of TF32, 2^-11, where float32 products are computed in it."""
    import torch

    if tf32 and dtype == torch.float32:
        return 2.0**-11
    return float(torch.finfo(dtype).eps) / 2


def rounded_to(dtype: Any, outputs: Sequence[Any]) -> Any:
    """The dtype whose rounding an op's results show: the case's, where that is a usual one.

    Products of narrow numbers (int8, float8) are exact in the sums that hold them; what shows is the dtype of the
    result. One of integers is exact, as far as float64 goes.
    """
    import torch

    if dtype.is_floating_point and dtype.itemsize > 1:
        return dtype
    floating = [out.dtype for out in outputs if out.dtype.is_floating_point and out.dtype.itemsize > 1]
    return floating[0] if floating else torch.float64


def tolerance(dtype: Any, reduction_length: float, factor: float = 1.0, tf32: bool = False) -> float:
    """Largest relative error, in the Frobenius norm, of a correct op.

    Rounding errors of a sum of k terms grow like sqrt(k) in the probabilistic analysis (Higham and Mary, SIAM J. Sci.
    Comput. 41(5), 2019), in the roundoff of the accumulator, float32 for narrower dtypes; the output is rounded to
    its own dtype. So the bound is 4·u + 8·sqrt(k)·u_accumulator, times `factor`.
    """
    import torch

    u = unit_roundoff(dtype, tf32)
    accumulator = max(unit_roundoff(torch.float64), min(u, unit_roundoff(torch.float32)))
    return factor * (_ROUNDING * u + _SUMMATION * math.sqrt(max(1.0, reduction_length)) * accumulator)


def compare(result: Any, reference: Any, allowed: float, where: str = "cpu") -> Check:
    """Relative errors of a result, the worst over its tensors.

    `error` is ‖out − ref‖ / ‖ref‖; `worst_element_error` is max|out − ref| / rms(ref). NaN counts as infinite.

    Raises:
        ValueError: the two differ in structure or shape.
    """
    import torch

    outputs, references = tensors_of(result), tensors_of(reference)
    if not outputs or len(outputs) != len(references):
        raise ValueError(f"{len(outputs)} tensors in the result, {len(references)} in the reference")
    error = worst = 0.0
    for output, expected in zip(outputs, references, strict=True):
        if output.shape != expected.shape:
            raise ValueError(f"shape {tuple(output.shape)} where the reference has {tuple(expected.shape)}")
        # Moved before it is widened: not every device has float64. Not in place: a float64 output
        # is not copied by `to`, and outputs may share memory.
        # A complex number is no real one whose imaginary part may be left out.
        wide = torch.complex128 if output.dtype.is_complex or expected.dtype.is_complex else torch.float64
        expected = expected.detach().to(wide)
        difference = output.detach().to(expected.device).to(wide) - expected
        norm = float(torch.linalg.vector_norm(expected))
        size = max(1, expected.numel())
        scale = norm or 1.0
        error = max(error, _finite(float(torch.linalg.vector_norm(difference)) / scale))
        if difference.numel():
            worst = max(worst, _finite(float(difference.abs().max()) * math.sqrt(size) / scale))
    return Check(error=error, tolerance=allowed, worst_element_error=worst, reference=where)


def is_wrong(check: Check) -> str | None:
    """None when the result agrees with the reference, else a sentence with the figures."""
    if check.error > check.tolerance:
        return f"relative error {check.error:.2g}, at most {check.tolerance:.2g} is rounding"
    if check.worst_element_error > _WORST_ELEMENT * check.tolerance:
        return (
            f"one element is off by {check.worst_element_error:.2g} times the typical value, "
            f"at most {_WORST_ELEMENT * check.tolerance:.2g} is rounding"
        )
    return None


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.inf


def reduction_length(flops: float, outputs: Sequence[Any]) -> float:
    """Most terms summed into one output element, from the op's FLOPs: a product and an addition each.

    Several outputs are taken to share the FLOPs evenly, as the gradients of a product's operands do. A small one
    among them is then a longer sum: a filter's gradient runs over all pixels.
    """
    sizes = [tensor.numel() for tensor in outputs if tensor.numel()]
    return max(1.0, flops / (2.0 * len(sizes) * min(sizes))) if sizes else 1.0
