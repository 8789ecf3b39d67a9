"""Every op against float64 on this CPU, with a comparison of this file's own; and that it tells wrong from right."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from packaging.version import Version

from accel_micro.definition import Op
from accel_micro.dtypes import DTYPES
from accel_micro.measure.inputs import Inputs

from .families import OPS, WIDENED, gradients_of, result_of

CPU = torch.device("cpu")
ONLY_ELSEWHERE = ("attention.sdpa_efficient", "attention.sdpa_cudnn")


TINY = {
    "matmul.bmm": "b=3 m=8 k=16 n=4",
    "matmul.mm_tn": "m=8 k=16 n=4",
    "conv2d.conv3x3": "n=2 c=6 hw=9 out=4",
    "conv2d.conv1x1": "n=2 c=6 hw=9 out=4",
    "conv2d.strided": "n=2 c=6 hw=9 out=4",
    "conv2d.depthwise": "n=2 c=6 hw=9 k=5",
    "conv2d.grouped": "n=2 c=8 hw=9 out=12 groups=4",
    "conv2d.channels_last": "n=2 c=6 hw=9 out=4",
    "conv2d.first_layer": "n=2 hw=20 out=8 k=7 stride=2 pad=3 bias=True",
    "attention.sdpa": "b=2 h=4 q=9 kv=9 d=8 causal=True kv_heads=2",
    "attention.decode": "b=2 h=4 kv=9 d=8 kv_heads=2",
    "models.training_step": "net=mnist n=2",
    "models.inference_step": "net=mnist n=2",
}
"""Smaller than any shape that is timed, and with the arguments that few shapes give."""


def smallest(op: Op) -> str:
    """The tiny shape where there is one, else the shape of least work."""
    if op.name.startswith("optimizer") and op.name != "optimizer.muon":
        return "tensors=3 elements=100 impl=foreach"
    return TINY.get(op.name) or op.smallest_shape


def results(op: Op, shape: str, dtype: str, direction: str, reference: bool) -> Sequence[torch.Tensor]:
    inputs = Inputs(CPU, getattr(torch, dtype), differentiate=direction == "backward", reference=reference)
    built = op.build(inputs, op.arguments(shape))
    return [_tensor(result_of(built))] if direction == "forward" else gradients_of(built, inputs)


def _tensor(result: object) -> torch.Tensor:
    if not isinstance(result, torch.Tensor):
        return torch.tensor(result, dtype=torch.float64)
    return (
        result.double() if result.dtype == torch.float8_e4m3fn else result
    )  # with which torch can calculate


def error(result: torch.Tensor, reference: torch.Tensor) -> float:
    """Relative error in the Frobenius norm."""
    assert result.shape == reference.shape
    assert reference.dtype in (torch.float64, torch.int64) or reference.dtype.itemsize == 1, (
        "in float64, or exact"
    )
    return float((result.double() - reference.double()).norm() / reference.double().norm())


def limit(op: Op, shape: str, dtype: str, result: torch.Tensor) -> float:
    """Rounding of a few intermediate results in the dtype, and of a sum that is accumulated in float32 or float64."""
    work = op.stated_work("forward", dtype, shape)
    terms = work.get("terms") or max(1.0, work.get("flops", 0.0) / (2 * result.numel()))
    shown = getattr(torch, dtype)
    if shown.itemsize == 1:  # exact, as are integers and what is converted
        shown = (
            result.dtype if result.dtype.is_floating_point and result.dtype.itemsize > 1 else torch.float64
        )
    eps = torch.finfo(shown).eps
    return op.tolerance * (4 * eps + 2 * math.sqrt(terms) * min(eps, torch.finfo(torch.float32).eps))


COMPILED = (
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.slow,
)
SLOW = {"compiled": COMPILED, "collectives": (pytest.mark.slow,)}
"""Families whose ops take seconds to start; of each the first op is not so marked."""
FIRST = {"compiled.bias_gelu": COMPILED[:1], "collectives.all_reduce": ()}


def marks(name: str, dtype: str) -> Sequence[pytest.MarkDecorator]:
    """Marks of an op's tests."""
    return FIRST[name] if name in FIRST and dtype == "float32" else SLOW.get(name.partition(".")[0], ())


OLD = Version(torch.__version__) < Version("2.13")
"""What the suite times on such a torch may be missing there, or known to be wrong."""
WRONG_BEFORE = {("pooling.adaptive_max_pool", "backward")}

CASES = [
    pytest.param(name, dtype, direction, id=f"{name}-{dtype}-{direction}", marks=marks(name, dtype))
    for name, op in OPS.items()
    for dtype in DTYPES
    for direction in ("forward", "backward")
    if dtype in op.dtypes
    and (op.backward or direction == "forward")
    and not name.startswith((*ONLY_ELSEWHERE, "transfer", "memory.from_driver"))
]


@pytest.mark.parametrize(("name", "dtype", "direction"), CASES)
def test_an_op_agrees_with_float64_and_wrong_results_do_not(name: str, dtype: str, direction: str) -> None:
    op = OPS[name]
    shape = smallest(op)
    try:
        timed = results(op, shape, dtype, direction, reference=False)
    except NotImplementedError as error_of_torch:
        if OLD:
            pytest.skip(str(error_of_torch))
        raise
    reference = results(op, shape, dtype, direction, reference=True)
    assert len(timed) == len(reference) > 0
    for result, expected in zip(timed, reference, strict=True):
        allowed = limit(op, shape, dtype, result)
        assert result.dtype == getattr(torch, dtype) or (name in WIDENED and direction == "forward")
        assert float(expected.double().norm()) > 0
        if OLD and (name, direction) in WRONG_BEFORE and error(result, expected) > 0.5:
            pytest.xfail("torch before 2.13: gradients of narrow dtypes go to other places")
        assert error(result, expected) < allowed
        for wrong in planted(result, shifted=name not in SMOOTH):
            assert error(wrong, expected) > allowed


NAMED = [
    pytest.param(name, shape, id=f"{name}-{shape}")
    for name, op in OPS.items()
    for shape in op.variants
    if "name=" in shape
]


@pytest.mark.parametrize(("name", "shape"), NAMED)
def test_every_function_of_an_op_that_has_several_agrees_with_float64(name: str, shape: str) -> None:
    op = OPS[name]
    (result,) = results(op, shape, op.dtypes[0], "forward", reference=False)
    (expected,) = results(op, shape, op.dtypes[0], "forward", reference=True)
    assert float(expected.double().norm()) > 0
    assert error(result, expected) < limit(op, shape, op.dtypes[0], result)


SMOOTH = (
    "models.inference_step",
    "sorting.sort",
    "sorting.sort_stable",
    "sorting.sort_rows",
    "sorting.unique",
    "sorting.cumsum",
    "reduction.logsumexp",
)
"""Ops whose neighbouring results are too alike for a shift by one to be more than rounding in narrow dtypes."""


def planted(result: torch.Tensor, shifted: bool) -> list[torch.Tensor]:
    """Results as faulty kernels leave them: unwritten, scaled, shifted by an element, a part left out."""
    flat = result.flatten()
    part = flat.clone()
    written = flat.nonzero().flatten()  # a triangle or a frame is zero elsewhere
    part[written[: max(1, written.numel() // 3)]] = 0
    differs = shifted and bool((flat != flat[0]).any())
    return [
        torch.zeros_like(result),
        result * 1.1,
        part.view_as(result),
        *([flat.roll(1).reshape(result.shape)] if differs else []),
    ]


@pytest.mark.parametrize("name", ONLY_ELSEWHERE)
def test_a_backend_that_is_not_here_is_skipped_in_words(name: str) -> None:
    op = OPS[name]
    with pytest.raises(NotImplementedError, match=r"^no (EFFICIENT|CUDNN)_ATTENTION here: \w"):
        op.build(Inputs(CPU, torch.float32), op.arguments(smallest(op)))


def test_a_backend_taken_in_anothers_place_is_not_timed_as_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "_fused_sdp_choice", lambda *_, **__: 0)
    op = OPS["attention.sdpa_flash"]
    with pytest.raises(NotImplementedError, match="torch takes MATH instead"):
        op.build(Inputs(CPU, torch.float32), op.arguments(smallest(op)))


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in OPS
        if name.startswith(("attention.sdpa", "attention.decode")) and name != "attention.sdpa_of_tokens"
    ],
)
def test_attentions_reference_is_the_math_of_it(name: str) -> None:
    op = OPS[name]
    inputs = Inputs(CPU, torch.float32, reference=True)
    out = result_of(
        op.build(inputs, op.arguments("b=2 h=4 kv=6 d=8 kv_heads=2" + ("" if "decode" in name else " q=6")))
    )
    query, key, value = (tensor.double() for tensor in inputs.made)
    key, value = (tensor.repeat_interleave(2, dim=1) for tensor in (key, value))
    weights = torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(8), dim=-1)
    assert error(out, weights @ value) < 1e-14


@pytest.mark.parametrize("name", ["sdpa", "sdpa_math", "sdpa_flash"])
def test_causal_attention_hides_the_future(name: str) -> None:
    op = OPS[f"attention.{name}"]
    inputs = Inputs(CPU, torch.float32)
    built = op.build(inputs, op.arguments("b=1 h=2 q=6 kv=6 d=8 causal=True"))
    before: Any = built()
    inputs.made[1][:, :, 4:] += 1
    after: Any = built()
    assert torch.equal(before[:, :, :4], after[:, :, :4])
    assert not torch.equal(before[:, :, 4:], after[:, :, 4:])


def test_the_reason_for_a_skip_is_torchs_own_and_that_of_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> int:
        warnings.warn("Flash attention kernel not used because:", stacklevel=1)
        warnings.warn("Expected query to be Half. But got Float instead.", stacklevel=1)
        warnings.warn("CuDNN attention kernel not used because:", stacklevel=1)
        warnings.warn("cuDNN attention has been runtime disabled.", stacklevel=1)
        raise RuntimeError("No available kernel. Aborting execution.")

    monkeypatch.setattr(torch, "_fused_sdp_choice", refuse)
    op = OPS["attention.sdpa_flash"]
    with pytest.raises(NotImplementedError, match=r"^no FLASH_ATTENTION here: Expected query to be Half$"):
        op.build(Inputs(CPU, torch.float32), op.arguments(smallest(op)))
