"""`accel-micro reproduce` on the suite of this project."""

import ast
from typing import Any

import pytest
from typer.testing import CliRunner

from accel_micro.cli import app

NAME = "matmul.mm.time_backward_latency('cpu', 'float32', 'm=64 k=64 n=64')"


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["reproduce", *arguments])


def test_a_name_of_asv_with_its_clock() -> None:
    done = run(NAME, "--note", "slower since Monday")
    assert done.exit_code == 0, done.output
    assert ast.parse(done.stdout)
    assert "Latency: each call is waited for." in done.stdout
    assert "# slower since Monday\n" in done.stdout
    assert f'# Made by: accel-micro reproduce "{NAME}"\n' in done.stdout


def test_the_command_in_the_heading_makes_the_script() -> None:
    once = run("matmul.mm forward .* m=64 k=64 n=64", "--device", "cpu", "--dtype", "fp32").stdout
    (line,) = (line for line in once.splitlines() if line.startswith("# Made by: "))
    name = line.removeprefix("# Made by: accel-micro reproduce ").strip("'")
    assert name == "matmul.mm forward float32 m=64 k=64 n=64 on cpu"
    assert run(name).stdout == once


def test_a_profile_narrows() -> None:
    done = run(r"^normalization\.layer_norm forward", "--device", "cpu", "--profile", "quick")
    assert done.exit_code == 0, done.output
    assert "layer_norm(t, rows=1024, width=768)" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["matmul.mm", "--device", "cpu"],
            "match 'matmul.mm', and one is needed; write the whole name of one:\n  matmul",
        ),
        (["abacus"], "no case on cpu matches 'abacus'"),
        (["("], "'(' is no regular expression"),
        (["matmul.mm", "--device", "abacus"], "unknown device 'abacus'"),
        (["matmul.mm", "--dtype", "fp7"], "unknown dtype 'fp7'; known: float32, bfloat16"),
        (["collectives.all_reduce forward float32 n=1000 on cpu"], "it needs accel_micro.measure.ranks"),
    ],
)
def test_what_cannot_be_is_said(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""
