"""Inputs: fixed values, never zero, the same rounded ones for the reference, and known leaves."""

from typing import Any

import pytest
import torch

from accel_micro.measure.inputs import Inputs, Timed

CPU = torch.device("cpu")
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


def inputs(dtype: torch.dtype = torch.float32, **options: Any) -> Inputs:
    return Inputs(CPU, dtype, **options)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_reference_has_the_same_rounded_values_in_float64(dtype: torch.dtype) -> None:
    timed, reference = inputs(dtype), inputs(dtype, reference=True)
    for shape in ((5,), (3, 4), (2, 3, 4, 5)):
        a, b = timed(*shape), reference(*shape)
        assert (a.dtype, b.dtype) == (dtype, torch.float64)
        assert torch.equal(a.double(), b)
    assert torch.equal(timed.integers(10, 7), reference.integers(10, 7))


def test_values_are_fixed_whatever_the_global_seed() -> None:
    torch.manual_seed(1)
    first = inputs()(100)
    torch.manual_seed(2)
    assert torch.equal(first, inputs()(100))


def test_each_tensor_has_values_of_its_own() -> None:
    t = inputs()
    a, b, c = t(100), t(100), t.fill(torch.empty(100))
    assert not torch.equal(a, b)
    assert not torch.equal(b, c)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_narrow_dtypes_round_the_very_values_of_float32(dtype: torch.dtype) -> None:
    assert torch.equal(inputs(dtype)(1000), inputs()(1000).to(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_are_normal_and_never_zero(dtype: torch.dtype) -> None:
    values = inputs(dtype)(100_000).double()
    assert abs(float(values.mean())) < 0.02
    assert float(values.std()) == pytest.approx(1, abs=0.02)
    assert int((values == 0).sum()) == 0
    assert float(inputs(dtype)(100_000, scale=0.1).double().std()) == pytest.approx(0.1, abs=0.002)


def test_integers_are_uniform_below_their_bound() -> None:
    drawn = inputs().integers(3, 10_000)
    assert drawn.dtype == torch.int64
    counts = torch.bincount(drawn)
    assert counts.shape == (3,)
    assert int(counts.min()) > 3000


def test_leaves_are_what_gets_gradients_in_order() -> None:
    t = inputs(differentiate=True)
    x, constant = t(4, 3), t(2, 3, constant=True)
    weight = t.fill(torch.nn.Parameter(torch.empty(2, 3)))
    gradient = t.fill(torch.empty(2, 3))
    index = t.integers(2, 4)
    assert [id(leaf) for leaf in t.leaves] == [id(x), id(weight)]
    assert all(leaf.is_leaf and leaf.requires_grad for leaf in t.leaves)
    assert not (constant.requires_grad or gradient.requires_grad or index.requires_grad)
    assert [id(tensor) for tensor in t.made] == [id(v) for v in (x, constant, weight, gradient, index)]


def test_without_a_backward_nothing_requires_gradients() -> None:
    t = inputs()
    tensors = [t(3), t.fill(torch.nn.Parameter(torch.empty(3)))]
    assert t.leaves == []
    assert not any(tensor.requires_grad for tensor in tensors)


@pytest.mark.parametrize("reference", [False, True])
def test_channels_last_is_a_leaf_that_lies_so_in_memory(reference: bool) -> None:
    plain = inputs(reference=reference)(2, 3, 4, 5)
    t = inputs(reference=reference, differentiate=True)
    x = t(2, 3, 4, 5, channels_last=True)
    assert x.is_contiguous(memory_format=torch.channels_last)
    assert not x.is_contiguous()
    assert torch.equal(x.detach(), plain)
    assert x.is_leaf and t.leaves == [x]


def test_the_reference_is_made_where_it_is_asked_for() -> None:
    t = Inputs(CPU, torch.float32, reference=True, reference_device=torch.device("meta"))
    assert t(3).device.type == "meta"
    assert t.integers(3, 3).device.type == "meta"


def test_within_makes_a_fresh_context_each_time() -> None:
    t = inputs()
    t.within(torch.no_grad)  # set_grad_enabled acts when it is made, and would outlive this test
    (make,) = t.contexts
    assert make() is not make()
    with torch.enable_grad(), make():
        assert not torch.is_grad_enabled()


def test_timed_keeps_its_call_and_its_result() -> None:
    state = [0]
    timed = Timed(call=lambda: state.append(1), result=lambda: len(state))
    timed.call()
    assert timed.result() == 2
