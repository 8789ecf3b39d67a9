"""Ten lines are an op: what they give on this machine, and that a wrong one gets no time."""

import csv
import io
import json
import subprocess
import sys
from typing import Any

import pytest
import torch

from accel_micro.dtypes import FLOATS
from accel_micro.measure import CLOCKS
from accel_micro.suite import DEVICES
from tests.asv_plugin.conftest import Done, Suite

pytestmark = pytest.mark.slow

SWISH = '''
@op(
    quick=["n=100000"],
    full=["n=16777216"],
    flops=lambda n: 3 * n,
)
def swish(t, n):
    """x times its logistic function, by hand."""
    x = t(n)
    return lambda: x * torch.sigmoid(x)
'''


def accel_micro(suite: Suite, *arguments: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-m", "accel_micro", *arguments],
        cwd=suite.path,
        env=suite.environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Done(done.returncode, done.stdout or done.stderr)


def quick(suite: Suite, code: int = 0) -> dict[str, Any]:
    done = accel_micro(suite, "quick", "--device", "cpu", "--format", "json")
    assert done.code == code, done.output
    return json.loads(done.output)  # type: ignore[no-any-return]


def test_an_op_of_ten_lines_gets_every_product(suite: Suite) -> None:
    assert len(SWISH.strip().splitlines()) <= 10
    suite.add("mine", SWISH, fake=False)

    rows = {row["direction"]: row for row in quick(suite)["rows"]}
    assert set(rows) == {"forward", "backward"}
    for direction, row in rows.items():
        assert (row["op"], row["device"], row["dtype"], row["shape"]) == (
            "mine.swish",
            "cpu",
            "float32",
            "n=100000",
        )
        estimate = row["estimates"]["throughput"]
        assert 0 < estimate["low"] <= estimate["seconds"] <= estimate["high"]
        assert row["bytes_per_second"] > 0, direction
        assert 0 < row["share_of_peak"] <= 1.05
        assert row["peak_memory_bytes"] >= 4 * 100_000, "the result itself"
        assert row["first_call_seconds"] > 0
        assert 0 <= row["check"]["error"] < row["check"]["tolerance"] < 1e-5
    assert rows["forward"]["flops_per_second"] > 0

    # The same parameters on every machine: all devices, all dtypes, all shapes, each clock a benchmark.
    benchmarks = json.loads((suite.results / "benchmarks.json").read_text())
    benchmarks.pop("version")
    clocks = ["", *(f"_{clock}" for clock in CLOCKS if clock != "throughput")]
    assert set(benchmarks) == {
        f"mine.swish.time_{direction}{clock}" for direction in rows for clock in clocks
    }
    for benchmark in benchmarks.values():
        assert benchmark["params"] == [
            [repr(value) for value in values] for values in (DEVICES, FLOATS, ("n=100000", "n=16777216"))
        ]

    listed = accel_micro(suite, "ops", "--device", "cpu", "--aten", "sigmoid")
    assert listed.code == 0 and "mine.swish" in listed.output, listed.output
    shown = suite.asv("show", torch.__version__.partition("+")[0])
    assert shown.code == 0 and "mine.swish.time_forward" in shown.output, shown.output
    page = (suite.path / "html" / "report.html").read_text()
    assert "swish" in page and "n=100000" in page
    table = accel_micro(suite, "quick", "--device", "cpu", "--format", "csv")
    (line, *_) = csv.DictReader(io.StringIO(table.output))
    assert line["op"] == "mine.swish" and float(line["seconds"]) > 0


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(
            ("x * torch.sigmoid(x)", "x * torch.sigmoid(x if t.reference else 1.001 * x)"), id="a bit"
        ),
        pytest.param(("torch.sigmoid(x)", "(torch.sigmoid(x) if t.reference else 0.0)"), id="nothing"),
    ],
)
def test_a_broken_op_gets_no_time(suite: Suite, broken: tuple[str, str]) -> None:
    suite.add("mine", SWISH.replace(*broken), fake=False)
    data = quick(suite, code=3)
    for row in data["rows"]:
        assert row["estimates"] == {}
        assert [failure["kind"] for failure in row["failures"]] == ["wrong result"], row
    stored = json.loads(suite.machine_file("*-existing*.json").read_text())
    for name, row in stored["results"].items():
        values = dict(zip(stored["result_columns"], row, strict=False))["result"]
        assert not [value for value in values or () if value == value and value is not None], name
