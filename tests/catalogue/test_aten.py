"""Operators of ATen, as calls run them."""

import tempfile
from pathlib import Path

import pytest
import torch

from accel_micro.catalogue.aten import operators
from accel_micro.suite import op
from tests.benchmarks.families import OPS


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("matmul.linear", {"aten.addmm", "aten.mm"}),
        ("conv2d.conv3x3", {"aten.convolution", "aten.convolution_backward"}),
        ("normalization.layer_norm", {"aten.native_layer_norm", "aten.native_layer_norm_backward"}),
        ("indexing.embedding", {"aten.embedding", "aten.embedding_dense_backward"}),
        ("optimizer.sgd", {"aten._foreach_add_"}),
        ("sorting.unique", {"aten._unique2"}),
    ],
)
def test_what_a_call_and_its_backward_run(name: str, wanted: set[str]) -> None:
    found = operators(OPS[name])
    assert wanted <= set(found)
    assert len(set(found)) == len(found)


def test_inputs_are_no_part_of_it() -> None:
    assert "aten.randn" not in operators(OPS["pointwise.exp"])
    assert operators(OPS["pointwise.exp"])[0] == "aten.exp"


def test_an_op_that_does_not_exist_here_has_none() -> None:
    @op(quick=["n=1"])
    def elsewhere(t, n):  # type: ignore[no-untyped-def]
        """Not here."""
        raise NotImplementedError("no such kernel")

    assert operators(elsewhere.op) == ()
    assert torch.is_grad_enabled()


def test_a_compiled_op_runs_as_it_was_written_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert {"aten.gelu", "aten.gelu_backward"} <= set(operators(OPS["compiled.bias_gelu"]))
    assert not list(tmp_path.iterdir())
