"""`accel-micro quick` with any one of the devices, and what it says of those that are missing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from accel_micro.commands.quick import not_timed
from accel_micro.devices import DEVICE_KINDS, chosen
from accel_micro.measure.records import Case, Record
from tests.asv_plugin.conftest import Suite, suite

__all__ = ["suite"]

HERE = {"unavailable": None, "clocks": ["throughput", "latency"]}
CASE = Case("f.op", "forward", "cuda", "float32", "n=1")

# The device that PAPER_DEVICE names is said to be here. `sitecustomize` is imported by every process of a run.
SITE = """
import os

from accel_micro.devices import registry

paper = os.environ.get("PAPER_DEVICE")
if paper:
    device = type(registry.get(paper))
    device.unavailable = lambda self: None
    device.clocks = ("throughput", "latency")
    device.lacks = {"device": "it is on paper"}
    device.on_cpu = False
"""

OPS = """
@op(quick=["n=1"], backward=False, dtypes=["float32"])
def good(t, n):
    pass
"""


def reports(**devices: object) -> dict[str, dict[str, object]]:
    return {"existing": {"devices": devices}}


def test_each_device_that_is_not_here_gets_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(chosen.VARIABLE, raising=False)
    known = reports(
        cpu=HERE, cuda={**HERE, "unavailable": "no driver"}, mps={**HERE, "unavailable": "no Mac"}
    )
    assert not_timed((), known, ()) == ["cuda is not timed: no driver.", "mps is not timed: no Mac."]
    assert not_timed(("cpu",), known, ()) == []
    assert not_timed(("cpu", "cuda:1"), known, ()) == ["cuda:1 is not timed: no driver."]
    monkeypatch.setenv(chosen.VARIABLE, "mps")
    assert not_timed((), known, ()) == ["mps is not timed: no Mac."]
    assert not_timed((), {}, ()) == []


def test_clocks_that_a_device_lacks_and_clocks_that_are_not_watched_get_a_line_each() -> None:
    lacking = {**HERE, "lacks": {"dispatch": "its spin does nothing", "device": "its spin does nothing"}}
    unwatched = Record(CASE, hardware={"unwatched": "clock and throttling are not watched on ROCm"})
    assert not_timed(("cuda",), reports(cuda=lacking), (unwatched, unwatched, Record(CASE))) == [
        "cuda has no dispatch or device clock: its spin does nothing.",
        "clock and throttling are not watched on ROCm.",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", DEVICE_KINDS)
def test_quick_works_with_any_one_device(suite: Suite, tmp_path: Path, kind: str) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(SITE)
    suite.add("ops", OPS)
    environment = {
        **suite.environment,
        "PYTHONPATH": f"{site}:{suite.environment['PYTHONPATH']}",
        "ASV_PYTHONPATH": str(site),
        "PAPER_DEVICE": "" if kind == "cpu" else kind,
    }

    def quick(*devices: str) -> "subprocess.CompletedProcess[str]":
        chosen = [word for name in devices for word in ("--device", name)]
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "accel_micro",
                "quick",
                "--format",
                "json",
                "--config",
                str(suite.path),
                *chosen,
            ],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )

    done = quick(kind)
    assert done.returncode == 0, done.stderr
    assert [row["device"] for row in json.loads(done.stdout)["rows"]] == [kind]
    assert "is not timed" not in done.stderr
    done = quick()
    assert done.returncode == 0, done.stderr
    assert {row["device"] for row in json.loads(done.stdout)["rows"]} == {"cpu", kind}
    lines = [line for line in done.stderr.splitlines() if " is not timed: " in line]
    assert [line.partition(" ")[0] for line in lines] == [
        each for each in DEVICE_KINDS if each not in ("cpu", kind)
    ]
    assert all(line.endswith(".") and len(line) > 40 for line in lines), lines
    if kind != "cpu":
        assert f"{kind} has no device clock: it is on paper." in done.stderr
