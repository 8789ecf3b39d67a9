"""Rounding passes, mistakes do not."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_micro.measure.correctness import compare, is_wrong, reduction_length, tensors_of, tolerance

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("length", [16, 512, 4096])
def test_a_correct_product_passes_with_room_to_spare(dtype: torch.dtype, length: int) -> None:
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(32, length, generator=generator).to(dtype)
    b = torch.randn(length, 32, generator=generator).to(dtype)
    check = compare(a @ b, a.double() @ b.double(), tolerance(dtype, length))
    assert is_wrong(check) is None
    assert check.error < check.tolerance / 2


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_wrong_element_in_many_fails(dtype: torch.dtype) -> None:
    reference = torch.randn(512, 512, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    result = reference.to(dtype, copy=True)
    assert is_wrong(compare(result, reference, tolerance(dtype, 512))) is None
    result[17, 300] += 2.0
    problem = is_wrong(compare(result, reference, tolerance(dtype, 512)))
    assert problem is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_result_that_is_off_by_a_thousandth_fails(dtype: torch.dtype) -> None:
    reference = torch.randn(64, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    off = (reference * 1.001).to(dtype)
    assert is_wrong(compare(off, reference, tolerance(dtype, 64))) is not None


def test_tf32_may_be_off_by_a_thousandth_and_not_by_a_hundredth() -> None:
    reference = torch.randn(64, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    allowed = tolerance(torch.float32, 64, tf32=True)
    assert is_wrong(compare((reference * 1.001).float(), reference, allowed)) is None
    assert is_wrong(compare((reference * 1.01).float(), reference, allowed)) is not None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nan_and_infinity_never_pass(bad: float) -> None:
    reference = torch.ones(8, dtype=torch.float64)
    result = torch.ones(8)
    result[3] = bad
    assert is_wrong(compare(result, reference, 1.0)) is not None


def test_zeros_instead_of_values_never_pass() -> None:
    reference = torch.randn(100, dtype=torch.float64)
    for dtype in DTYPES:
        assert is_wrong(compare(torch.zeros(100, dtype=dtype), reference, tolerance(dtype, 100))) is not None


def test_another_shape_is_an_error_not_a_broadcast() -> None:
    with pytest.raises(ValueError, match=r"shape \(1,\) where the reference has \(4,\)"):
        compare(torch.ones(1), torch.ones(4), 1.0)
    with pytest.raises(ValueError, match="1 tensors in the result, 2 in the reference"):
        compare(torch.ones(1), (torch.ones(1), torch.ones(1)), 1.0)


@given(st.floats(1, 1e9), st.floats(1, 1e9))
@settings(max_examples=50)
def test_longer_sums_may_err_more(one: float, other: float) -> None:
    shorter, longer = sorted((one, other))
    for dtype in DTYPES:
        assert tolerance(dtype, shorter) <= tolerance(dtype, longer)


def test_narrower_types_may_err_more() -> None:
    allowed = [
        tolerance(dtype, 100) for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    ]
    assert allowed == sorted(allowed)
    assert (
        tolerance(torch.float32, 100)
        < tolerance(torch.float32, 100, tf32=True)
        < tolerance(torch.bfloat16, 100)
    )


def test_tensors_of_flattens_and_counts_numbers() -> None:
    one, two = torch.ones(1), torch.ones(2)
    assert [t.numel() for t in tensors_of({"a": (one, None), "b": [two, 3]})] == [1, 2, 1]


def test_reduction_length_of_a_product_is_its_inner_size() -> None:
    assert reduction_length(2.0 * 8 * 16 * 32, [torch.empty(8, 16)]) == 32
    assert reduction_length(0.0, [torch.empty(8)]) == 1.0
    assert reduction_length(5.0, []) == 1.0


def test_outputs_that_share_memory_are_compared_and_left_as_they_are() -> None:
    gradient = torch.tensor([1.0, 2.0], dtype=torch.float64)
    expected = [torch.tensor([1.0, 2.0], dtype=torch.float64)] * 2
    assert compare([gradient, gradient], expected, 1e-15).error == 0
    row = torch.ones(1, dtype=torch.float64).expand(3)
    assert compare(row, torch.ones(3, dtype=torch.float64), 1e-15).error == 0
    assert gradient.tolist() == [1.0, 2.0]


def test_imaginary_parts_are_compared_too() -> None:
    values = torch.complex(torch.ones(3), torch.ones(3))
    assert compare(values, values.to(torch.complex128), 1e-6).error == 0
    conjugate = compare(values, values.conj().to(torch.complex128), 1e-6)
    assert conjugate.error == pytest.approx(math.sqrt(2))
    assert conjugate.worst_element_error == pytest.approx(math.sqrt(2))
