"""`accel-micro ops` on the suite of this project."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from accel_micro.cli import app


def run(tmp_path: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["ops", "--out", str(tmp_path), *arguments])


def test_all_ops_of_a_profile(tmp_path: Path) -> None:
    done = run(tmp_path, "--profile", "quick", "--device", "cpu")
    assert done.exit_code == 0, done.output
    assert "families on cpu. Profile quick: " in done.stdout
    assert "a guess: nothing was measured here yet" in done.stdout
    assert "matmul.mm " in done.stdout


def test_by_name_and_by_operator(tmp_path: Path) -> None:
    done = run(tmp_path, "^matmul", "^conv2d", "--aten", "addmm", "--device", "cpu", "--format", "json")
    found = {row["op"]: row for row in json.loads(done.stdout)["ops"]}
    assert set(found) == {"matmul.addmm", "matmul.linear"}
    assert "aten.addmm" in found["matmul.linear"]["aten"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "the suite has no op of nothing"),
        (["matmul", "--aten", "conv9d"], "the suite has no op of matmul and --aten conv9d"),
        (["("], "'(' is no regular expression"),
        (["--device", "abacus"], "unknown device 'abacus'"),
    ],
)
def test_what_is_not_there_is_said(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = run(tmp_path, *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""
