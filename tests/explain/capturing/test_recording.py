"""What a step calls: phases, modules, arguments; and what stays the same when it is watched."""

import torch
from torch import nn

from accel_micro.explain.capturing.describing import (
    convolution_backend,
    described,
    is_view,
    scalars_of,
    subnormal_share,
)
from accel_micro.explain.capturing.recording import Recording, Timing, Where, record
from accel_micro.models import build
from tests.explain import planted


def test_phases_and_modules_of_a_training_step() -> None:
    model = planted.plain("cpu")
    batch = model.batch(2)
    structure = record(lambda: model.training_step(batch), model.module)
    found = {(call.phase, str(call.func), call.module, call.module_class) for call in structure.calls}
    assert ("forward", "aten.addmm.default", "0", "Linear") in found
    assert ("forward", "aten.tanh.default", "1", "Tanh") in found
    assert ("backward", "aten.tanh_backward.default", "1", "Tanh") in found
    assert ("backward", "aten.mm.default", "4", "Linear") in found
    assert {call.phase for call in structure.calls if "addcdiv" in str(call.func)} == {"optimizer"}
    first = structure.calls[0]
    assert "float32[192,192]" in first.inputs[0]
    assert sum(call.count for call in structure.calls) == sum(number >= 0 for number in structure.sequence)


def test_products_have_flops_and_views_move_nothing() -> None:
    model = planted.plain("cpu")
    batch = model.batch(2)
    structure = record(lambda: model.training_step(batch), model.module)
    product = next(call for call in structure.calls if "addmm" in str(call.func))
    assert product.flops == 2 * 2 * 192 * 192
    assert product.bytes == 4 * (192 * 192 + 192 + 2 * 192 + 2 * 192)
    assert all(call.bytes == 0 for call in structure.calls if is_view(call.func))


def test_parts_of_one_memory_are_moved_each_and_one_tensor_once() -> None:
    """Query, key and value of attention are often parts of one product; one of the three was counted."""
    qkv, layer = torch.ones(8, 30), nn.Linear(1, 1)

    def step() -> torch.Tensor:
        query, key, value = qkv.chunk(3, dim=1)
        value.mul_(value)
        return query + key

    moved = {str(call.func): call.bytes for call in record(step, layer).calls}
    part = 8 * 10 * 4
    assert moved["aten.add.Tensor"] == 3 * part and moved["aten.mul_.Tensor"] == part


def test_a_step_gives_the_same_numbers_when_it_is_watched() -> None:
    losses = []
    for watched in (False, True):
        model = planted.plain("cpu")
        batch = model.batch(2)
        if watched:
            with Timing() as timing:
                losses.append(float(model.training_step(batch)))
            assert len(timing.stamps) == 2 * len(timing.funcs) > 100
            assert timing.stamps == sorted(timing.stamps)
        else:
            losses.append(float(model.training_step(batch)))
    assert losses[0] == losses[1]


def test_hooks_are_gone_afterwards() -> None:
    model = planted.plain("cpu")
    batch = model.batch(2)
    record(lambda: model.training_step(batch), model.module)
    from torch.nn.modules import module as modules
    from torch.optim import optimizer as optimizers

    assert not modules._global_forward_hooks and not modules._global_forward_pre_hooks
    assert not optimizers._global_optimizer_pre_hooks and not optimizers._global_optimizer_post_hooks


def test_tensors_are_described_with_their_layout() -> None:
    image = torch.zeros(2, 3, 4, 5)
    assert described(image) == "float32[2,3,4,5]"
    assert described(image.contiguous(memory_format=torch.channels_last)) == "float32[2,3,4,5] channels_last"
    assert described(torch.zeros(3, 4, dtype=torch.int64).t()) == "int64[4,3] strides 1,4"


def test_the_backend_of_convolutions_follows_the_switch() -> None:
    x, w = torch.randn(2, 4, 8, 8), torch.randn(4, 4, 3, 3)
    args = (x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    func = torch.ops.aten.convolution.default
    before = torch.backends.mkldnn.enabled
    try:
        torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
        assert convolution_backend(func, args) in ("Slow2d", "NnpackSpatial")
    finally:
        torch.backends.mkldnn.enabled = before
    assert convolution_backend(torch.ops.aten.mm.default, (x, w)) == ""


def test_backward_of_convolution_has_a_backend_too() -> None:
    model = build("mnist")
    batch = model.batch(2)
    structure = record(lambda: model.training_step(batch), model.module)
    backends = {call.phase: call.backend for call in structure.calls if "convolution" in str(call.func)}
    assert set(backends) == {"forward", "backward"} and all(backends.values())


def test_layers_that_inference_calls_whole_are_known_too() -> None:
    model = build("mnist")
    batch = model.batch(2)
    training = record(lambda: model.training_step(batch), model.module)
    whole = record(lambda: model.inference_step(batch), model.module)
    convolutions = [call for call in whole.calls if "conv2d" in str(call.func)]
    parts = [call for call in training.calls if str(call.func) == "aten.convolution.default"]
    assert [call.flops for call in convolutions] == [call.flops for call in parts] and len(parts) == 2
    assert [call.backend for call in convolutions] == [call.backend for call in parts]
    assert [call.flops for call in whole.calls if "linear" in str(call.func)] == [
        2 * 2 * 9216 * 128,
        2 * 2 * 128 * 10,
    ]


def test_subnormal_numbers_and_infinity_are_seen() -> None:
    small = torch.zeros(100)
    small[:25] = 1e-40
    assert subnormal_share(small) == 0.25 and subnormal_share(small.to(torch.float64)) == 0.0
    model = planted.broken("cpu")
    batch = model.batch(2)
    structure = record(lambda: model.training_step(batch), model.module, look=True)
    order = [structure.calls[n] for n in dict.fromkeys(structure.sequence) if n >= 0]
    first = next(call for call in order if call.non_finite)
    assert (str(first.func), first.module_class) == ("aten.div.Tensor", "Broken")


def test_infinity_that_a_call_is_told_to_write_is_not_its_fault() -> None:
    layer, x = nn.Linear(16, 16), torch.ones(16, 16)
    mask = torch.ones(16, 16, dtype=torch.bool).triu(1)

    def step() -> torch.Tensor:
        hidden = torch.full((16, 16), float("-inf"))
        return layer(x).masked_fill(mask, float("-inf")) + hidden / 0.0

    found = {str(call.func): call.non_finite for call in record(step, layer, look=True).calls}
    assert found.keys() >= {"aten.full.default", "aten.masked_fill.Scalar"}
    assert not any(found.values())


def test_an_optimizer_counts_its_steps_on_the_host_and_waits_for_no_device() -> None:
    model = planted.plain("meta")  # stands for an accelerator: tensors that are not the host's
    batch = model.batch(2)
    structure = record(lambda: model.training_step(batch), model.module)
    asked = [call for call in structure.calls if "_local_scalar_dense" in str(call.func)]
    assert asked and {call.crossing for call in asked} == {"on host"}
    assert {call.crossing for call in structure.calls if call.phase == "backward"} == {""}
    here, there = torch.ones(3), torch.ones(3, device="meta")
    taken = record(lambda: (torch.empty_like(there).copy_(here), there * here[0], here + 1), model.module)
    moves = {str(call.func): call.crossing for call in taken.calls}
    assert moves["aten.copy_.default"] == "to device" and moves["aten.mul.Tensor"] == ""
    assert moves["aten.add.Tensor"] == moves["aten.select.int"] == "on host"
    recording = Recording(Where(model.module))  # meta tensors have no numbers that could be taken back
    assert recording._crossing(torch.ops.aten.copy_.default, (here, there), [here]) == "to host"
    cpu = planted.plain("cpu")
    batch = cpu.batch(2)
    assert {call.crossing for call in record(lambda: cpu.training_step(batch), cpu.module).calls} == {""}


def test_a_custom_function_is_no_obstacle() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return 2 * x

        @staticmethod
        def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
            return 2 * grad

    layer = nn.Linear(4, 4)
    structure = record(lambda: Double.apply(layer(torch.ones(2, 4))).sum().backward(), layer)  # type: ignore[no-untyped-call]
    assert [call.phase for call in structure.calls if "mul" in str(call.func)] == ["forward", "backward"]


def test_a_storage_among_the_arguments_is_named_and_not_printed() -> None:
    storage = torch.zeros(1000).untyped_storage()
    typed = torch.TypedStorage(wrap_storage=storage, dtype=torch.float32, _internal=True)
    assert scalars_of((torch.zeros(2), storage, 0, 0.5), {"source": typed}) == (
        "storage, 0, 0.5, source=storage"
    )
