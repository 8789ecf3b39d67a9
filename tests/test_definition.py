"""An op's definition: its shapes, the work it states, what it says does not exist, its version."""

import contextlib
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch

from accel_micro import definition
from accel_micro.definition import CPU_MOST_FLOPS, CPU_MOST_FLOPS_WIDENED, Op
from accel_micro.measure.inputs import Inputs, Timed

CPU = torch.device("cpu")


def _scaled(t: Inputs, n: int, factor: float = 2.0) -> Any:
    x = t(n)
    return lambda: factor * x


def make(**facts: Any) -> Op:
    return Op(
        **(
            {"name": "family.scaled", "definition": _scaled, "shapes": {"quick": ("n=3", "n=4 factor=3.0")}}
            | facts
        )
    )


def test_functions_get_the_arguments_that_they_name() -> None:
    op = make(
        flops=lambda n: 10 * n,
        backward_flops=lambda n, factor: n * factor,
        bytes=lambda itemsize, **shape: itemsize * shape["n"] * len(shape),
        saving=lambda: 4,
    )
    assert op.stated_work("forward", "float32", "n=3") == {"flops": 30.0, "bytes": 4 * 3 * 2, "saving": 4.0}
    assert op.stated_work("forward", "bfloat16", "n=3")["bytes"] == 2 * 3 * 2
    assert op.stated_work("backward", "float32", "n=3") == {"flops": 6.0, "saving": 4.0}
    assert op.stated_work("backward", "float32", "n=3 factor=5.0")["flops"] == 15.0


def test_backward_flops_as_a_number_is_a_factor() -> None:
    assert make(flops=lambda n: n, backward_flops=2.5).stated_work("backward", "float32", "n=4") == {
        "flops": 10.0
    }
    assert make(flops=lambda n: n).stated_work("backward", "float32", "n=4") == {}


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"dtypes": ("float32", "int4")}, r"unknown dtypes \['int4'\]; known: float32, bfloat16"),
        ({"shapes": {"quick": ()}}, "no shapes"),
        (
            {"shapes": {"quick": ("m=3",)}},
            r"shape 'm=3' does not fit the definition: missing a required argument",
        ),
        ({"shapes": {"full": ("n=3 oops",)}}, "'oops' is not key=value"),
        ({"flops": lambda n, width: n * width}, "does not fit the definition: .*'width'"),
    ],
)
def test_a_faulty_definition_is_refused_when_it_is_made(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**facts)


COLD_SHAPES = {"quick": ("n=3",), "cold": ("n=3 cache=cold",)}


def _cached(t: Inputs, n: int, cache: str = "") -> Any:
    x = t(n)
    return lambda: 2 * x


def _helper(function: Any) -> Any:
    return torch.compile(function)


def _compiled(t: Inputs, n: int) -> Any:
    x = t(n)
    return _helper(lambda: 2 * x)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (
            {"shapes": {"quick": ("n=3",), "cold": ("n=4 cache=cold",)}},
            "cold shape 'n=4' is none of its other",
        ),
        ({"shapes": {"quick": ("n=3",), "cold": ("n=3",)}}, "cold shape 'n=3' is none of its other"),
        ({"shapes": {"quick": ("n=3 cache=cold",)}}, "'n=3 cache=cold' is a cold shape; list it under cold"),
        ({"shapes": COLD_SHAPES, "swept": "n=1..8 cache=cold"}, "'n=1 cache=cold' is a cold shape"),
        ({"shapes": COLD_SHAPES, "link": True}, "crosses a link between devices is not bound by a cache"),
        (
            {"shapes": COLD_SHAPES, "definition": _cached},
            "cache is what cold shapes say, and cannot be an arg",
        ),
        ({"shapes": COLD_SHAPES, "definition": _compiled}, "would be compiled anew for each set"),
    ],
)
def test_cold_shapes_that_mean_nothing_are_refused(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**facts)


def test_a_cold_shape_is_a_case_and_else_the_same() -> None:
    without = make(shapes={"quick": ("n=3", "n=4")})
    op = make(shapes={"quick": ("n=3", "n=4"), "cold": COLD_SHAPES["cold"]}, flops=lambda n: n)
    assert op.all_shapes == ("n=3", "n=4", "n=3 cache=cold"), (
        "behind the others, so that asv keeps their places"
    )
    assert op.lists["cold"] == ("n=3 cache=cold",)
    assert op.version == without.version
    assert op.arguments("n=3 cache=cold") == op.arguments("n=3")
    assert op.stated_work("forward", "float32", "n=3 cache=cold") == {"flops": 3.0}
    assert (op.smallest_shape, op.variants, op.sweep) == (
        without.smallest_shape,
        without.variants,
        without.sweep,
    )


@pytest.mark.parametrize(
    ("swept", "message"), [("m=2..4", "does not fit"), ("n=2", "one range"), ("n=4..2", "does not ascend")]
)
def test_a_sweep_must_fit_the_definition(swept: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Op(name="a.b", definition=lambda t, n: None, shapes={"quick": ("n=1",)}, swept=swept)


def test_a_sweep_does_not_change_the_version() -> None:
    def definition_(t: Any, n: int) -> None:
        pass

    shapes = {"quick": ("n=1",)}
    without, with_one = (Op("a.b", definition_, shapes, swept=swept) for swept in (None, "n=1..64"))
    assert without.version == with_one.version
    assert without.sweep is None


def test_what_does_not_exist_is_said_in_words() -> None:
    op = make(
        dtypes=("float32", "float64"),
        unsupported=lambda device, n: "too odd" if device == "xla" and n % 2 else None,
    )
    assert op.why_unsupported("cpu", "float16", "n=3") == "family.scaled does not exist in float16"
    assert op.why_unsupported("mps", "float64", "n=3") == "MPS has no float64"
    assert op.why_unsupported("xla", "float32", "n=3") == "too odd"
    assert op.why_unsupported("xla:1", "float32", "n=3") == "too odd"
    assert op.why_unsupported("xla", "float32", "n=4") is None
    assert op.why_unsupported("cpu", "float32", "n=3") is None


@pytest.mark.parametrize("fast", [True, False])
def test_shapes_too_long_for_a_cpu_are_left_to_accelerators(
    fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definition, "_has_fast_kernels", lambda dtype: fast)
    op = make(flops=lambda n: n)
    beyond, widened = f"n={int(CPU_MOST_FLOPS) + 1}", f"n={int(CPU_MOST_FLOPS_WIDENED) + 1}"
    for dtype in definition.FLOATS:
        assert "300 GFLOP, too long for a CPU" in str(op.why_unsupported("cpu", dtype, beyond))
        assert op.why_unsupported("cuda", dtype, beyond) is None
        narrow = dtype in {"bfloat16", "float16"}
        reason = op.why_unsupported("cpu", dtype, widened)
        assert (reason is not None) == (narrow and not fast)
        assert reason is None or f"no fast {dtype} kernels" in reason


def test_fast_kernels_are_asked_of_torch_and_missing_when_it_cannot_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert definition._has_fast_kernels("bfloat16") in {True, False}
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True, raising=False)
    assert definition._has_fast_kernels("bfloat16")

    def refuse() -> bool:
        raise RuntimeError("built without oneDNN")

    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", refuse, raising=False)
    assert not definition._has_fast_kernels("bfloat16")


entered: list[str] = []


@contextlib.contextmanager
def noted(name: str) -> Iterator[None]:
    entered.append(name)
    try:
        yield
    finally:
        entered.remove(name)


def _inside(t: Inputs, n: int) -> Any:
    t.within(noted, "reference" if t.reference else "timed")
    return lambda: list(entered)


@pytest.mark.parametrize("timed", [False, True])
def test_a_call_runs_inside_the_context_it_asked_for(timed: bool) -> None:
    def wrapped(t: Inputs, n: int) -> Any:
        call = _inside(t, n)
        return Timed(call, lambda: "read") if timed else call

    def call_of(built: Any) -> Any:
        if timed:
            assert built.result() == "read"
            return built.call
        return built

    op = Op(name="family.inside", definition=wrapped, shapes={"quick": ("n=1",)})
    with contextlib.ExitStack() as stack:
        call = call_of(op.build(Inputs(CPU, torch.float32), {"n": 1}, stack))
        reference = call_of(op.build(Inputs(CPU, torch.float32, reference=True), {"n": 1}, stack))
        assert entered == ["timed"], "entered before timing, so that it costs the call nothing"
        assert call() == ["timed"]
        assert reference() == ["timed", "reference"]
        assert reference() == ["timed", "reference"], "a context can be entered for every call"
        assert call() == ["timed"]
    assert entered == []
    alone = call_of(op.build(Inputs(CPU, torch.float32), {"n": 1}))
    assert (alone(), alone(), entered) == (["timed"], ["timed"], [])


def module_of(text: str, tmp_path: Any, name: str) -> ModuleType:
    """A module of that text."""
    import importlib.util

    path = tmp_path / f"{name}.py"
    path.write_text(textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FAMILY = '''
def decorate(*shapes):
    return lambda function: function

def unrelated(): return 0

def deep(x): return x + 1

def helper(x):
    """Adds."""
    return deep(x)

@decorate(
    "n=1",
)
def op(t, n):
    """Op."""
    x = t(n)
    return lambda: helper(x)
'''


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ('"n=1"', '"n=1", "n=2"', False),
        ('"""Op."""', '"""The op."""', False),
        ('"""Adds."""', '"""Adds one,\n    and no more."""', False),
        ("return 0", "return 1", False),
        ("x = t(n)", "x = t(n, n)", True),
        ("return deep(x)", "return deep(deep(x))", True),
        ("x + 1", "x + 2", True),
        ("op(t, n)", "op(t, n=3)", True),
    ],
)
def test_versions_follow_what_is_timed(old: str, new: str, changes: bool, tmp_path: Any) -> None:
    versions = []
    for name, text in (("before", FAMILY), ("after", FAMILY.replace(old, new))):
        function = module_of(text, tmp_path, name).op
        versions.append(Op(name="family.op", definition=function, shapes={"quick": ("n=1",)}).version)
    assert (versions[0] != versions[1]) == changes


def test_the_source_shows_the_definition_and_what_it_calls(tmp_path: Any) -> None:
    op = Op(name="family.op", definition=module_of(FAMILY, tmp_path, "shown").op, shapes={"quick": ("n=1",)})
    assert op.source.startswith('def op(t, n):\n    """Op."""\n')
    assert op.source.count("def helper(x):") == op.source.count("def deep(x):") == 1
    assert "decorate" not in op.source
    assert "unrelated" not in op.source


def test_a_change_of_protocol_changes_every_version(monkeypatch: pytest.MonkeyPatch) -> None:
    op = make()
    before = op.version
    monkeypatch.setattr(definition, "PROTOCOL_VERSION", definition.PROTOCOL_VERSION + 1)
    assert op.version != before


def test_further_inputs_enter_no_context_again() -> None:
    op = make(definition=_inside, shapes={"quick": ("n=3",)})
    with contextlib.ExitStack() as stack:
        built = [
            op.build(Inputs(CPU, torch.float32, further=further), {"n": 3}, stack)
            for further in (False, True)
        ]
        assert [call() for call in built] == [["timed"]] * 2
