"""Is an op right? The same arguments in float64 on the CPU, and the error against that."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from accel_micro.explain.capturing.describing import draws, flops_of, is_uninitialised, is_view, tensors_in
from accel_micro.explain.capturing.keeping import Arguments, mapped, spanned, written
from accel_micro.measure import correctness
from accel_micro.measure.records import Check

_LARGEST_FLOPS: Final = 2e10
"""Above this a float64 reference takes some seconds on a CPU."""

_FACTOR: Final = 8.0
"""On the tolerance of `measure.correctness`: an op of a real step sums numbers that cancel."""


@dataclass(frozen=True)
class Checked:
    """An error with its tolerance, or why there is none (`problem`, then without error); see `capture.Row`."""

    error: float | None = None
    tolerance: float | None = None
    problem: str = ""


def check(func: Any, arguments: Arguments, tf32: bool = False) -> Checked:
    """Run a call on its device, and in float64 on the CPU, from the same numbers."""
    reason = _why_not(func)
    if reason:
        return Checked(problem=reason)
    args, kwargs = mapped(arguments, spanned)
    try:
        with torch.no_grad():
            narrow = func(*args, **kwargs)
            results = _floating([narrow, *written(func, args, kwargs)])
            if not results:
                return Checked(problem="no numbers to compare")
            if flops_of(func, args, kwargs, narrow) > _LARGEST_FLOPS:
                return Checked(problem="too large for a float64 reference")
            wide_args, wide_kwargs = mapped(arguments, _widened)
            wide_kwargs = {name: _wide_keyword(value) for name, value in wide_kwargs.items()}
            wide = func(*wide_args, **wide_kwargs)
            references = _floating([wide, *written(func, wide_args, wide_kwargs)])
    except Exception as error:  # an operator without float64, or one that wants two dtypes to agree
        return Checked(
            problem=f"no float64 reference: {str(error).strip().splitlines()[0][:80]}"
            if str(error)
            else "no float64 reference"
        )
    if [each.shape for each in results] != [each.shape for each in references]:
        return Checked(problem="no float64 reference: other shapes")
    given = _floating([args, kwargs])
    dtype = min((each.dtype for each in [*given, *results]), key=lambda dtype: -torch.finfo(dtype).eps)
    length = max(
        correctness.reduction_length(flops_of(func, args, kwargs, narrow), results),
        max((each.numel() for each in given), default=1) / max(1, min(each.numel() for each in results)),
    )
    allowed = correctness.tolerance(dtype, length, _FACTOR, tf32)
    found = correctness.compare(results, references, allowed)
    if correctness.is_wrong(found) is not None:
        conditions = _conditions(func, arguments, references, correctness.unit_roundoff(dtype, tf32))
        compared = [
            correctness.compare([result], [reference], allowed * condition)
            for result, reference, condition in zip(results, references, conditions, strict=True)
        ]
        found = next((one for one in compared if correctness.is_wrong(one)), max(compared, key=_share))
    return Checked(found.error, found.tolerance, correctness.is_wrong(found) or "")


def _share(check: Check) -> float:
    return check.error / check.tolerance


def _conditions(
    func: Any, arguments: Arguments, references: Sequence[torch.Tensor], roundoff: float
) -> list[float]:
    """By how much more than numbers that are rounded once each result of them moves in float64; 1 at least.

    That is the condition number (Higham, Accuracy and Stability of Numerical Algorithms, section 1.6), tried out. What
    a bias gets back through a normalisation that takes it away again is a sum of zero: rounding is all that is left of
    it, in any dtype.
    """
    drawn = torch.Generator().manual_seed(0)

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        wide = _widened(tensor)
        if not wide.is_floating_point():
            return wide
        signs = 2.0 * torch.randint(0, 2, wide.shape, generator=drawn) - 1.0
        return spanned_like(wide * (1.0 + roundoff * signs), wide)

    args, kwargs = mapped(arguments, moved)
    kwargs = {name: _wide_keyword(value) for name, value in kwargs.items()}
    try:
        with torch.no_grad():
            others = _floating([func(*args, **kwargs), *written(func, args, kwargs)])
        moves = [
            correctness.compare([other], [reference], 0.0).error / roundoff
            for other, reference in zip(others, references, strict=True)
        ]
    except Exception:  # a probability above 1, or a result of another shape: then nothing is known of it
        return [1.0] * len(references)
    return [max(1.0, move) if math.isfinite(move) else 1.0 for move in moves]


def _why_not(func: Any) -> str:
    if draws(func):
        return "random"
    if is_uninitialised(func):
        return "uninitialised memory"
    if is_view(func):
        return "a view"
    return ""


def _floating(value: Any) -> list[torch.Tensor]:
    return [each for each in tensors_in(value) if each.is_floating_point() and each.numel()]


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    copy = spanned(tensor).to("cpu")
    if not tensor.is_floating_point():
        return copy
    if copy.layout != torch.strided:
        return copy.to_dense().to(torch.float64)
    wide = copy.to(torch.float64)
    return wide if wide.stride() == tensor.stride() else spanned_like(wide, tensor)


def spanned_like(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The values with the strides of another tensor, where no two of its elements share memory."""
    if 0 in like.stride():
        return values
    placed = torch.empty_strided(like.shape, like.stride(), dtype=values.dtype)
    return placed.copy_(values)


def _wide_keyword(value: Any) -> Any:
    if isinstance(value, torch.dtype) and value.is_floating_point:
        return torch.float64
    if isinstance(value, torch.device):
        return torch.device("cpu")
    return value
