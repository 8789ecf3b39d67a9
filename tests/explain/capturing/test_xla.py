"""Captures on the real torch_xla: weights put back, steps whole, programs that are compiled anew each step counted."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from accel_micro.cli import app

pytestmark = [pytest.mark.xla, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _torch_xla() -> None:
    pytest.importorskip("torch_xla", reason="torch_xla is not installed")


def captured(model: str, path: Path, *options: str) -> dict[str, Any]:
    done = CliRunner().invoke(
        app,
        ["capture", f"tests.explain.planted:{model}", "--device", "xla", "--processes", "2", "--budget", "0.5",
         "-o", str(path), *options],
        catch_exceptions=False,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def causes_of(one: Path, other: Path) -> set[str]:
    done = CliRunner().invoke(app, ["explain", str(one), str(other), "--json"], catch_exceptions=False)
    return {cause["name"] for cause in json.loads(done.stdout)["causes"]}


def test_a_program_that_is_compiled_each_step_is_named_and_a_steady_one_is_not(tmp_path: Path) -> None:
    plain = captured("plain", tmp_path / "plain.json")
    growing = captured("growing", tmp_path / "growing.json")
    assert {reading["compilations"] for reading in plain["readings"]} == {0.0}
    assert all(reading["compilations"] > 0.8 for reading in growing["readings"])
    assert all(reading["compile_seconds"] > 0 for reading in growing["readings"])
    assert "recompilation" in causes_of(tmp_path / "growing.json", tmp_path / "plain.json")
    assert "recompilation" not in causes_of(tmp_path / "plain.json", tmp_path / "plain.json")


def test_inference_runs_too(tmp_path: Path) -> None:
    found = captured("plain", tmp_path / "plain.json", "--inference")
    assert all(reading["finite"] and reading["compilations"] == 0.0 for reading in found["readings"])
