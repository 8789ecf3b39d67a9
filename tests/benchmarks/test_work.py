"""Stated FLOPs and bytes: equal to torch's counter where it counts rightly, to the formula written out elsewhere."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from accel_micro.definition import Op

from .families import OPS, result_of, shape_only

NOT_KNOWN = ("matmul.addbmm", "matmul.addr")
"""Products that torch's counter takes for no work at all."""
COUNTED = [
    name
    for name in OPS
    if (name.startswith(("matmul", "conv2d", "convolution")) and name not in NOT_KNOWN)
    or name == "attention.sdpa_math"
]


def counted(op: Op, shape: str, direction: str) -> int:
    """FLOPs by torch's counter, in shape only."""
    inputs = shape_only(differentiate=direction == "backward")
    built = op.build(inputs, op.arguments(shape))
    if direction == "forward":
        with FlopCounterMode(display=False) as counter:
            result_of(built)
        return counter.get_total_flops()
    with FlopCounterMode(display=False) as counter:
        forward = built()
    before = counter.get_total_flops()
    with FlopCounterMode(display=False) as counter:
        torch.autograd.grad(forward, inputs.leaves, torch.empty_like(forward))
    assert before > 0
    return counter.get_total_flops()


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("name", COUNTED)
def test_stated_flops_are_those_that_torch_counts(name: str, direction: str) -> None:
    op = OPS[name]
    for shape in op.all_shapes:
        arguments = op.arguments(shape)
        if arguments.get("causal"):
            continue  # torch does not count what the mask saves
        groups = arguments["c"] if name == "conv2d.depthwise" else arguments.get("groups", 1)
        stated = op.stated_work(direction, "float32", shape)["flops"]
        if direction == "backward" and groups > 1:
            # torch takes the groups for one in the gradient of the filter: it counts 1 + groups forwards, not 2.
            stated *= (1 + groups) / 2
        assert stated == counted(op, shape, direction), shape


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_batch_of_products_is_the_same_work_when_it_is_added_up(direction: str) -> None:
    shape = "b=3 m=4 k=5 n=6"
    work = OPS["matmul.addbmm"].stated_work(direction, "float32", shape)
    assert work == OPS["matmul.bmm"].stated_work(direction, "float32", shape)
    assert OPS["matmul.addr"].stated_work("forward", "float32", "m=4 n=6") == {"flops": 2 * 4 * 6}


def test_causal_attention_is_counted_pair_by_pair() -> None:
    length, heads, d = 7, 3, 5
    seen = torch.ones(length, length).tril().sum().item()
    stated = OPS["attention.sdpa"].stated_work(
        "forward", "float32", f"b=2 h={heads} q=7 kv=7 d={d} causal=True"
    )
    assert stated["flops"] == 2 * heads * seen * (2 * d + 2 * d)


def test_sharing_keys_among_heads_saves_no_flops() -> None:
    op = OPS["attention.sdpa"]
    shape = "b=1 h=8 q=16 kv=16 d=4"
    assert op.stated_work("forward", "float32", shape) == op.stated_work(
        "forward", "float32", f"{shape} kv_heads=2"
    )


def test_decoding_sees_every_key_once() -> None:
    stated = OPS["attention.decode"].stated_work("forward", "float32", "b=2 h=4 kv=100 d=8")
    assert stated["flops"] == 2 * 4 * 100 * (2 * 8 + 2 * 8)


@pytest.mark.parametrize(
    ("name", "shape", "saving"),
    [
        ("conv2d.conv3x3", "n=1 c=8 hw=8 out=8", (6 * 3) ** 2 / 8**2),
        ("conv2d.grouped", "n=1 c=8 hw=8 out=8 groups=2 k=5 pad=2", 25.0),
        ("conv2d.conv1x1", "n=1 c=8 hw=8 out=8", 1.0),
        ("conv2d.strided", "n=1 c=8 hw=8 out=8", 1.0),
    ],
)
def test_fast_algorithms_save_what_they_are_known_to(name: str, shape: str, saving: float) -> None:
    assert OPS[name].stated_work("forward", "float32", shape)["saving"] == saving


def test_savings_are_never_below_one() -> None:
    for op in OPS.values():
        for shape in op.all_shapes:
            assert op.stated_work("forward", "float32", shape).get("saving", 1.0) >= 1.0


@pytest.mark.parametrize(
    ("name", "states"), [("sgd", 0), ("momentum", 1), ("adam", 2), ("adamw", 2), ("adadelta", 2)]
)
def test_optimizers_move_parameters_gradients_and_averages(name: str, states: int) -> None:
    op = OPS[f"optimizer.{name}"]
    arguments = op.arguments("tensors=3 elements=100 impl=forloop")
    from accel_micro.measure.inputs import Inputs

    optimizer = op.build(Inputs(torch.device("cpu"), torch.float32), arguments).call.__self__
    kept = [
        value
        for state in optimizer.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor) and value.numel() == 100
    ]
    assert len(kept) == 3 * states
    for dtype, itemsize in (("float32", 4), ("bfloat16", 2)):
        work = op.stated_work("forward", dtype, "tensors=3 elements=100 impl=forloop")
        assert work == {"flops": 0.0, "bytes": 300 * itemsize * (1 + 1 + states + 1 + states)}


@pytest.mark.parametrize(
    ("name", "shape", "moved"),
    [  # elements of the case's dtype, and bytes of others
        ("pointwise.where", "n=100", (300, 100)),
        ("pointwise.unary_inside", "name=log n=100", (200, 0)),
        ("pointwise.binary", "name=div n=100", (300, 0)),
        ("pointwise.addcdiv", "n=100", (400, 0)),
        ("pointwise.add_mixed", "n=100", (100, 800)),
        ("pointwise.integer", "name=bitwise_xor n=100", (0, 2400)),
        ("pointwise.integer", "name=logical_and n=100", (0, 1700)),
        ("indexing.masked_fill", "n=100", (200, 100)),
        ("indexing.masked_select", "n=100", (150, 100)),
        ("loss.bce", "n=100", (200, 0)),
        ("loss.bce_with_logits", "n=100", (200, 0)),
        ("compiled.scaled_softmax", "rows=10 width=10 by=eager", (200, 100)),
        ("reduction.truth", "name=all n=100", (0, 100)),
        ("layout.zero", "n=100", (100, 0)),
        ("layout.diag", "n=100", (200, 0)),
        ("random.normal", "n=100", (100, 0)),
        ("random.uniform", "n=100", (100, 0)),
        ("random.bernoulli", "n=100", (200, 0)),
        ("random.in_place", "name=normal_ n=100", (100, 0)),
        ("random.integers", "n=100", (100, 0)),
    ],
)
def test_bytes_are_of_what_the_call_takes_and_not_of_what_its_inputs_were_made_from(
    name: str, shape: str, moved: tuple[int, int]
) -> None:
    for dtype, itemsize in (("float32", 4), ("float16", 2)):
        stated = OPS[name].stated_work("forward", dtype, shape).get("bytes")
        assert stated == moved[0] * itemsize + moved[1], dtype


@pytest.mark.parametrize(
    ("name", "shape", "flops"),
    [
        ("max_pool", "n=1 c=1 hw=8", 9 * 4 * 4),
        ("max_pool_channels_last", "n=1 c=1 hw=7", 9 * 4 * 4),
        ("avg_pool", "n=2 c=3 hw=8", 2 * 3 * 8 * 8),
        ("global_pool", "n=2 c=3 hw=7", 2 * 3 * 7 * 7),
        ("nearest", "n=1 c=1 hw=8", 0),
        ("bilinear", "n=1 c=1 hw=8", 2 * 4 * 16 * 16),
        ("bicubic", "n=1 c=1 hw=8", 2 * 16 * 16 * 16),
        ("resize", "name=nearest3d n=1 c=1 hw=4", 0),
        ("resize", "name=linear1d n=1 c=1 hw=8", 2 * 2 * 16),
        ("resize", "name=trilinear3d n=1 c=1 hw=4", 2 * 8 * 8**3),
        ("volumes", "name=avg_pool3d n=1 c=1 hw=4", 4**3),
    ],
)
def test_pooling_is_counted_by_the_numbers_in_its_windows(name: str, shape: str, flops: int) -> None:
    assert OPS[f"pooling.{name}"].stated_work("forward", "float32", shape)["flops"] == flops


@pytest.mark.parametrize(
    ("name", "factor"),  # Golub and Van Loan, Matrix Computations: leading terms for square matrices
    [("cholesky", 1 / 3), ("qr", 4 / 3 + 4 / 3), ("svdvals", 8 / 3), ("eigvalsh", 4 / 3), ("inverse", 2)],
)
def test_factorisations_are_counted_by_what_they_compute(name: str, factor: float) -> None:
    stated = OPS[f"linalg.{name}"].stated_work("forward", "float32", "n=30 b=2")["flops"]
    assert stated == pytest.approx(factor * 2 * 30**3)


def test_what_goes_there_and_back_crosses_the_link_twice() -> None:
    one_way = OPS["transfer.to_device"].stated_work("forward", "float32", "n=100")["bytes"]
    assert OPS["transfer.there_and_back"].stated_work("forward", "float32", "n=100")["bytes"] == 2 * one_way


def test_a_collective_that_adds_nothing_has_no_flops() -> None:
    flops = {
        name: OPS[f"collectives.{name}"].stated_work("forward", "float32", "n=100")["flops"]
        for name in ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
    }
    assert flops == {"all_reduce": 100, "reduce_scatter": 100, "all_gather": 0, "broadcast": 0}
