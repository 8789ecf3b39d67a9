"""The audit on real devices, through the command. No time is asserted, only who is right."""

import importlib.util
import json
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from accel_micro.cli import app


def doctor(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["doctor", *arguments])


def retried(good: Callable[[], bool], times: int = 4) -> bool:
    """Neighbours may have the cores for seconds; a mistake of ours would be there each time."""
    return any(good() for _ in range(times))


@pytest.mark.slow
def test_on_the_cpu_all_ways_read_alike() -> None:
    def alike() -> bool:
        done = doctor("--sync", "--device", "cpu", "--format", "json")
        data = json.loads(done.stdout)
        assert [audit["workload"] for audit in data["audits"]] == ["small", "large"]
        assert done.exit_code == (0 if data["right"] else 3)
        rows = [row for audit in data["audits"] for row in audit["rows"] if row["way"] != "no warm-up"]
        assert {row["way"] for row in rows} >= {"ours", "no sync", "sync each call", "asv time_"}
        return data["right"] and all(row["right"] for row in rows)

    assert retried(alike)


@pytest.mark.slow
def test_for_people() -> None:
    done = doctor("--sync", "--device", "cpu")
    assert "product of two 64×64 float32 matrices" in done.stdout
    assert "What the verdicts rest on" in done.stdout


@pytest.mark.xla
@pytest.mark.filterwarnings("default")
@pytest.mark.skipif(importlib.util.find_spec("torch_xla") is None, reason="torch_xla is not installed")
def test_on_xla_four_wrong_ways_are_wrong_and_ours_is_right() -> None:
    def told_apart() -> bool:
        data = json.loads(doctor("--sync", "--device", "xla", "--format", "json").stdout)
        large = next(audit for audit in data["audits"] if audit["workload"] == "large")
        words = {row["way"]: row["word"] for row in large["rows"]}
        wrong = {way: words[way] for way in ("no sync", "dropped", "marked", "asv time_")}
        small = ("impossible", "too small")
        return data["right"] and words["ours"] == "right" and all(w.startswith(small) for w in wrong.values())

    assert retried(told_apart)


@pytest.mark.cuda
def test_on_a_gpu_ours_is_right_and_not_waiting_is_impossible() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    data = json.loads(doctor("--sync", "--device", "cuda", "--format", "json").stdout)
    assert data["right"]
    words = {
        (audit["workload"], row["way"]): row["word"] for audit in data["audits"] for row in audit["rows"]
    }
    assert words["large", "no sync"].startswith("impossible")
    assert words["small", "event pair"].startswith("too large")
    if torch.version.hip is None:
        assert words["spin", "ours"] == "right"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "cpu", "--device", "cuda"], "without --sync one --device is looked at"),
        (["--sync", "--device", "abacus"], "unknown device 'abacus'"),
    ],
)
def test_wrong_use(arguments: list[str], message: str) -> None:
    done = doctor(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_device_that_is_not_here() -> None:
    done = doctor("--sync", "--device", "cuda:99")
    assert done.exit_code == 3
    assert "cuda:99: " in done.stderr
