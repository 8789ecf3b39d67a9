"""Where operators are timed, or why not."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.catalogue import operator_benchmark, reasons, used
from accel_micro.catalogue.coverage import Coverage, Suite, cover, trace
from accel_micro.catalogue.noting import Noting
from accel_micro.catalogue.operator_benchmark import Benchmarked
from accel_micro.catalogue.reasons import Reasons
from accel_micro.catalogue.signatures import exists, is_view
from accel_micro.suite import op
from tests.benchmarks.families import OPS

SUITE = Path(__file__).parents[2] / "benchmarks" / "coverage"

RUNS = {
    "matmul.linear": {"": [("forward", "aten.addmm"), ("forward", "aten.t"), ("backward", "aten.mm")]},
    "matmul.mm": {"": [("forward", "aten.mm")]},
    "pointwise.unary": {"name=cos": [("forward", "aten.cos")], "name=sin": [("forward", "aten.sin")]},
    "convolution.conv1d": {"": [("forward", "aten.convolution")]},
}
REASONS = Reasons(
    untraced=(),
    sentences={"view": "V.", "in_place": "I.", "old": "O.", "unsaid": "U."},
    files={"q_test": "old"},
    operators={"aten.ones_like": "old"},
    entries={"conv_test.Conv1d": ("convolution.conv1d",), "q_test.new": ("aten.mm",)},
)


def covered(
    names: dict[str, str] | None = None, used: dict[str, list[str]] | None = None, reasons: Reasons = REASONS
) -> Coverage:
    listed = [
        Benchmarked(key.partition(".")[0], key.partition(".")[2], call, "c")
        for key, call in (names or {}).items()
    ]
    return cover(listed, used or {}, Suite(RUNS), reasons, is_view=lambda operator: operator == "aten.t")


def only(coverage: Coverage) -> object:
    (row,) = (*coverage.benchmark, *coverage.models)
    return [(place.op, place.words, place.directions) for place in row.places], row.reasons, row.missing


@pytest.mark.parametrize(
    ("key", "call", "wanted"),
    [
        ("unary_test.cos", "torch.cos", ([("pointwise.unary", "name=cos", ("forward",))], (), ())),
        ("mm_test.mm", "", ([("matmul.mm", "", ("forward",)), ("matmul.linear", "", ("backward",))], (), ())),
        ("unary_test.cos_", "torch.cos_", ([], ("in_place",), ())),
        ("unary_test.tan_", "torch.tan_", ([], (), ("aten.tan_",))),
        ("view_test.t", "", ([], ("view",), ())),
        ("q_test.add", "", ([], ("old",), ())),
        ("q_test.new", "", ([("matmul.mm", "", ("forward",)), ("matmul.linear", "", ("backward",))], (), ())),
        ("conv_test.Conv1d", "", ([("convolution.conv1d", "", ("forward",))], (), ())),
    ],
)
def test_an_entry_is_timed_somewhere_or_has_a_reason_or_is_missing(
    key: str, call: str, wanted: object
) -> None:
    found = covered({key: call})
    assert only(found) == wanted
    assert bool(found.missing) == bool(wanted[2])  # type: ignore[index]


def test_an_op_that_is_promised_and_not_there_is_missing() -> None:
    promised = Reasons((), {}, {}, {}, {"a_test.a": ("optimizer.lion",)})
    assert only(covered({"a_test.a": ""}, reasons=promised)) == ([], (), ("optimizer.lion",))


def test_operators_of_models_are_listed_once_with_the_models() -> None:
    found = covered(used={"one": ["aten.mm", "aten.t"], "two": ["aten.mm", "aten.ones_like"]})
    assert [(row.name, row.source, row.reasons) for row in found.models] == [
        ("aten.mm", ("one", "two"), ()),
        ("aten.ones_like", ("two",), ("old",)),
        ("aten.t", ("one",), ("view",)),
    ]
    assert set(found.sentences) == {"old", "view"}


def test_what_is_no_longer_so_is_said() -> None:
    wrong = Reasons(
        (), REASONS.sentences, {"gone_test": "old"}, {"aten.mm": "old", "aten.lu": "old"}, {"x.y": ()}
    )
    assert covered({"mm_test.mm": ""}, reasons=wrong).stale == (
        "aten.mm is said not to be timed (old), and matmul.mm runs it",
        "aten.lu has a reason (old), and nothing runs it",
        "the operator benchmark has no file gone_test",
        "the operator benchmark has no entry x.y",
        *(f"nothing has the reason {name}" for name in ("view", "in_place", "old", "unsaid")),
    )


operators = st.sampled_from(
    ["aten.mm", "aten.mm_", "aten.t", "aten.ones_like", "aten.lu", "aten.cos_", "aten.addmm"]
)


@given(st.lists(operators), st.lists(operators))
def test_every_operator_has_one_answer(one: list[str], other: list[str]) -> None:
    found = covered(used={"one": one, "other": other})
    assert {row.name for row in found.models} == {*one, *other}
    for row in found.models:
        assert (bool(row.places), bool(row.reasons), row.is_missing).count(True) == 1
    assert set(found.missing) <= set(found.models)


def test_reasons_need_sentences_and_their_form(tmp_path: Path) -> None:
    path = tmp_path / "reasons.toml"
    whole = "untraced = []\n[reasons]\nold = 'O.'\n[files]\na = 'old'\n[operators]\n[entries]\n"
    path.write_text(whole)
    assert reasons.read(path).files == {"a": "old"}
    path.write_text(whole.replace("a = 'old'", "a = 'odd'"))
    with pytest.raises(ValueError, match="a has the reason 'odd', which has no sentence"):
        reasons.read(path)
    path.write_text("untraced = []\n")
    with pytest.raises(ValueError, match=r"reasons\.toml is no list of reasons"):
        reasons.read(path)


def noted(call: object) -> list[str]:
    with Noting() as noting:
        call()  # type: ignore[operator]
    return list(noting.found)


def test_a_layer_shows_the_same_operators_in_training_and_in_inference() -> None:
    layer, x = torch.nn.Linear(3, 2), torch.ones(4, 3)
    training = noted(lambda: layer(x))
    with torch.inference_mode():
        inference = noted(lambda: layer(x))
    assert training == inference == ["aten.t", "aten.addmm"]


def test_an_operator_with_a_kernel_of_its_own_is_not_taken_apart() -> None:
    x = torch.ones(4, requires_grad=True)
    assert "aten.silu_backward" in noted(lambda: F.silu(x).sum().backward())
    step = torch.optim.SGD([x], lr=0.1).step
    x.grad = torch.ones(4)
    assert noted(step) == ["aten.add_"]  # and no mark of a profiler


def test_variants_are_told_apart_and_families_can_be_left_alone() -> None:
    @op(full=["name=cos n=4", "name=sin n=4", "name=sin n=2"], backward=False)
    def unary(t, name, n):  # type: ignore[no-untyped-def]
        """One or the other."""
        x = t(n)
        return lambda: getattr(torch, name)(x)

    assert unary.op.variants == ("name=cos n=4", "name=sin n=2")
    (place,) = trace([unary]).places["aten.sin"]
    assert (place.op, place.words, place.directions) == ("test_coverage.unary", "name=sin", ("forward",))
    left = trace([unary], untraced=["test_coverage"])
    assert left.ops == ("test_coverage.unary",) and left.places == {}


def test_views_are_known_by_their_signature() -> None:
    assert is_view("aten.permute") and is_view("aten.split") and is_view("aten.detach")
    assert not any(map(is_view, ("aten.add", "aten.add_", "aten.clone", "aten.no_such_operator")))
    assert exists("aten.add") and not exists("aten.no_such_operator")


def test_a_model_shows_both_of_its_steps() -> None:
    found = used.operators("mnist")
    assert {
        "aten.convolution",
        "aten.convolution_backward",
        "aten.nll_loss_backward",
        "aten.bernoulli_",
    } <= set(found)
    assert "aten.conv2d" not in found


ENTRIES = operator_benchmark.read(SUITE / "operator_benchmark.toml")
KEPT = reasons.read(SUITE / "reasons.toml")


def test_the_lists_name_operators_and_ops_that_exist() -> None:
    named = [*KEPT.operators, *(name for names in KEPT.entries.values() for name in names)]
    assert [name for name in named if not (exists(name) if name.startswith("aten.") else name in OPS)] == []
    assert set(KEPT.entries) <= {entry.key for entry in ENTRIES}
    assert set(KEPT.files) <= {entry.file for entry in ENTRIES}
    assert set(KEPT.untraced) <= {name.partition(".")[0] for name in OPS}


@pytest.mark.parametrize(
    "entry",
    [entry for entry in ENTRIES if entry.file == "unary_test" and entry.call.startswith("torch.")],
    ids=str,
)
def test_unary_entries_run_what_they_are_said_to(entry: Benchmarked) -> None:
    (row,) = cover([entry], {}, Suite({}), KEPT, is_view=lambda _: False).benchmark
    name = "unique" if entry.name == "unique" else entry.call.removeprefix("torch.")
    function = getattr(torch, name)
    x = torch.rand(8) / 2 + 0.25
    assert noted(lambda: function(x)) == list(row.operators)
