"""Every definition: readable in a glance, every shape of it runs, and the profiles hold what they promise."""

import inspect
import math
import subprocess
import sys
import textwrap

import pytest
import torch

from accel_micro.catalogue.aten import operators
from accel_micro.definition import CPU_MOST_FLOPS
from accel_micro.dtypes import NARROW
from accel_micro.measure.cold import MOST_BYTES, MOST_SETS, Footprint
from accel_micro.measure.correctness import tensors_of
from accel_micro.measure.prepared import Prepared
from accel_micro.profiles import PROFILES
from accel_micro.shapes import hot

from .families import FAMILIES, OPS, result_of, shape_only

MIB = 1 << 20

QUICK_CASES_AT_MOST = 75
"""float32 on a CPU: at some two seconds a case `quick` then takes less than three minutes."""

NEEDS_VALUES = (
    "indexing.masked_select",
    "sorting.unique",
    "loss.ctc",
    "overhead.item",
    "low_precision.weight_int4",
    "low_precision.fake_quantize",
    "fft.istft",
)
NEEDS_DEVICE = ("optimizer", "compiled", "collectives", "transfer", "models")
"""Ops and families that torch cannot run in shape only."""


FLOAT32_ONLY = (
    "matmul.mm_denormal",
    "optimizer.muon",
    "loss.ctc",
    "sorting.unique",
    "random.permutation",
    "pointwise.integer",
    "layout.arange",
)
FAMILIES_OF_FEW_DTYPES = ("linalg", "fft", "transfer", "memory", "low_precision")


def cases(profile: str, device: str = "cpu") -> list[tuple[str, str, str, str]]:
    """Op, direction, dtype and shape of the cases of a profile that exist on a device."""
    chosen = PROFILES[profile]
    return [
        (op.name, direction, dtype, shape)
        for op in OPS.values()
        for direction in (("forward", "backward") if op.backward else ("forward",))
        for dtype, shape in chosen.runs(device, op.lists, op.dtypes)
        if op.why_unsupported(device, dtype, shape) is None
    ]


@pytest.mark.parametrize("name", OPS)
def test_a_definition_is_at_most_ten_lines(name: str) -> None:
    source = textwrap.dedent(inspect.getsource(OPS[name].definition))
    lines = source[source.index("\ndef ") + 1 :].strip().splitlines()
    assert 2 <= len(lines) <= 10
    assert inspect.getdoc(OPS[name].definition)


@pytest.mark.parametrize("name", OPS)
def test_each_shape_has_one_name_and_is_short(name: str) -> None:
    op = OPS[name]
    assert max(map(len, op.all_shapes)) <= 70
    assert len({tuple(sorted(op.arguments(shape).items())) for shape in op.hot_shapes}) == len(op.hot_shapes)
    for shapes in op.shapes.values():
        assert len(set(shapes)) == len(shapes)


@pytest.mark.parametrize(
    "name", [name for name in OPS if not name.startswith(NEEDS_DEVICE) and name not in NEEDS_VALUES]
)
def test_every_shape_builds_and_runs(name: str) -> None:
    for shape in OPS[name].all_shapes:
        if name.startswith("attention.sdpa_") and name != "attention.sdpa_math":
            assert OPS[name].arguments(shape)["b"] >= 1  # a backend cannot be had without its device
            continue
        inputs = shape_only(dtype=OPS[name].dtypes[0])
        out = result_of(OPS[name].build(inputs, OPS[name].arguments(shape)))
        assert out.device.type == "meta" or name == "memory.many"
        assert out.numel() > 0


COLD = [(name, shape) for name, op in OPS.items() for shape in op.cold_shapes]


@pytest.mark.parametrize(("name", "shape"), COLD)
def test_a_cold_shape_fits_a_cache_and_its_sets_a_graph_and_a_machine(name: str, shape: str) -> None:
    """In float32: hot it fits the 32 MiB of a processor; cold it can be made on one with 384 MiB, and on an H100."""
    op, inputs = OPS[name], shape_only()
    prepared = Prepared.of(lambda t: op.build(t, op.arguments(shape)), inputs, backward=False)
    outputs = tensors_of(prepared.result(prepared.call()))
    footprint = Footprint.of(prepared, inputs, outputs, op.stated_work("forward", "float32", shape))
    assert 0 < footprint.read_bytes + sum(out.nbytes for out in outputs) < 32 * MIB
    for cache, most_sets in ((384 * MIB, MOST_SETS), (50 * MIB, 500)):
        sets = math.floor(2 * cache / footprint.read_bytes) + 1
        assert sets <= most_sets
        assert name == "indexing.embedding" or sets * footprint.held_bytes <= MOST_BYTES
    assert 101 * MIB / footprint.read_bytes * footprint.held_bytes <= MOST_BYTES


def test_what_comes_from_memory_in_networks_is_measured_cold() -> None:
    families = {name.partition(".")[0] for name, _ in COLD}
    assert families == {
        "matmul", "conv2d", "attention", "pointwise", "reduction", "normalization", "indexing", "layout"
    }  # fmt: skip
    assert not any(shape in OPS[name].shapes["quick"] for name, shape in COLD), (
        "quick stays below three minutes"
    )
    assert all(hot(shape) not in OPS[name].shapes["full"] for name, shape in COLD), "beside it in standard"


STATED = [name for name, op in OPS.items() if op.swept is not None]


def test_ops_of_every_kind_state_a_sweep() -> None:
    families = {name.partition(".")[0] for name in STATED}
    assert families >= {
        "matmul", "conv2d", "attention", "pointwise", "reduction", "optimizer", "normalization"
    }  # fmt: skip
    assert len(STATED) <= 10, "they are what `accel-micro crossover` takes without being told"


@pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.sweep is not None])
def test_a_sweep_goes_from_launch_bound_to_large(name: str) -> None:
    op = OPS[name]
    assert op.sweep is not None
    assert op.sweep.high >= 64 * op.sweep.low
    assert all(len(op.sweep.shape(size)) <= 70 for size in op.sweep.grid())
    smallest = op.arguments(op.sweep.shape(op.sweep.low))
    assert op.stated_work("forward", "float32", op.sweep.shape(op.sweep.low)).get("flops", 0.0) < 5e7
    if name in STATED and not name.startswith("optimizer"):
        assert result_of(op.build(shape_only(), smallest)).numel() > 0


def test_quick_has_few_cases_and_they_are_small() -> None:
    quick = cases("quick")
    assert 20 <= len(quick) <= QUICK_CASES_AT_MOST
    assert {name.partition(".")[0] for name, *_ in quick} == set(FAMILIES) - {
        "transfer",
        "collectives",
        "compiled",
    }
    for name, direction, dtype, shape in quick:
        assert OPS[name].stated_work(direction, dtype, shape).get("flops", 0.0) < 1e10, (name, shape)


@pytest.mark.parametrize("family", ["matmul", "conv2d", "attention"])
def test_quick_spans_three_orders_of_magnitude(family: str) -> None:
    flops = [
        OPS[name].stated_work(direction, dtype, shape)["flops"]
        for name, direction, dtype, shape in cases("quick")
        if name.startswith(family)
    ]
    assert min(flops) < 5e6, "no launch-bound case"
    assert max(flops) > 1e3 * 2e5, "no compute-bound case"


def test_profiles_grow_and_full_reaches_beyond_a_cpu() -> None:
    quick, standard, full = (set(cases(profile)) for profile in ("quick", "standard", "full"))
    assert quick < standard < full
    accelerator = set(cases("full", "cuda"))
    too_large = [
        (name, shape)
        for name, direction, dtype, shape in accelerator - full
        if OPS[name].stated_work("forward", dtype, shape).get("flops", 0.0) > CPU_MOST_FLOPS
    ]
    assert ("matmul.mm", "m=8192 k=8192 n=8192") in too_large


def test_standard_shapes_suit_a_cpu() -> None:
    for name, direction, dtype, shape in cases("standard"):
        flops = OPS[name].stated_work(direction, dtype, shape).get("flops", 0.0)
        assert flops < 5e10, f"{name} {shape}: half a second on two cores is some 50 GFLOP"


def test_importing_the_families_runs_no_op_and_starts_no_thread() -> None:
    program = """
        import importlib, sys, psutil, torch
        from torch.utils._python_dispatch import TorchDispatchMode

        class Noted(TorchDispatchMode):
            ops = []
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                self.ops.append(func)
                return func(*args, **(kwargs or {}))

        threads = psutil.Process().num_threads()
        with Noted():
            for family in sys.argv[1:]:
                importlib.import_module(f"benchmarks.{family}")
            assert Noted.ops == [], Noted.ops
            assert psutil.Process().num_threads() == threads, "a thread was started"
            torch.ones(2)
        assert Noted.ops, "the mode notes nothing"
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program), *FAMILIES], check=True, timeout=120)


def test_accelerator_dtypes_are_covered() -> None:
    for name, op in OPS.items():
        wanted = (
            {"float32"}
            if name in FLOAT32_ONLY or name.startswith(FAMILIES_OF_FEW_DTYPES)
            else {"float32", "bfloat16"}
        )
        assert wanted <= set(op.dtypes) or set(op.dtypes) <= set(NARROW), name
        assert all(hasattr(torch, dtype) for dtype in op.dtypes)


def test_what_is_taken_apart_is_not_put_together_again_in_the_timed_call() -> None:
    assert operators(OPS["layout.chunk"]) == ("aten.split", "aten.clone")
