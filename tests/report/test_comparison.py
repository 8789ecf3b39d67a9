"""A comparison as people and programs read it: golden files, and what holds at any width."""

import csv
import io
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from accel_micro.builds import Ledger
from accel_micro.comparison.compared import Compared, Comparison
from accel_micro.comparison.comparing import Request, compare, next_command
from accel_micro.measure.records import Case, Failure
from accel_micro.report import comparison_words as words
from accel_micro.report.comparison import Format, render
from accel_micro.report.comparison_layout import Scale
from accel_micro.stats import Verdict
from tests.comparison.results_folder import NEW, OLD, Results, case, two_builds, two_devices

BUILDS = Request(OLD.version, "nightly")
DEVICES = Request("cpu", "cuda")


def compared(path: Path, request: Request = BUILDS) -> Comparison:
    return compare(request, path, Ledger.beside(path))


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    path = tmp_path_factory.mktemp("builds")
    two_builds(path)
    return compared(path)


@pytest.fixture(scope="module")
def devices(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    path = tmp_path_factory.mktemp("devices")
    two_devices(path)
    return compared(path, DEVICES)


def written(comparison: Comparison, format: Format = "table", width: int = 80, all_rows: bool = False) -> str:
    stream = io.StringIO()
    command = next_command(BUILDS, comparison) if comparison.kind == "build" else ""
    render(comparison, format, stream, width=width, all_rows=all_rows, next_command=command)
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["builds", "devices"])
def test_golden_table(
    name: str, width: int, request: pytest.FixtureRequest, golden: Callable[[str], SnapshotAssertion]
) -> None:
    assert golden("txt") == written(request.getfixturevalue(name), width=width)


@pytest.mark.parametrize("format", ["markdown", "csv", "json"])
def test_golden_form(format: Format, builds: Comparison, golden: Callable[[str], SnapshotAssertion]) -> None:
    text = written(builds, format)
    text = re.sub(r'"made_by": "accel_micro [^"]*"', '"made_by": "accel_micro X"', text)
    # Fifteen digits differ between processors; six are what a reader may build on.
    text = re.sub(r"\d+\.\d{7,}(e[-+]\d+)?|\d\.\d+e[-+]\d+", lambda m: f"{float(m[0]):.6g}", text)
    assert golden({"markdown": "md"}.get(format, format)) == text


@settings(max_examples=25)
@given(width=st.integers(74, 200))
def test_no_line_but_the_command_is_longer_than_the_console(builds: Comparison, width: int) -> None:
    lines = [
        line for line in written(builds, width=width, all_rows=True).splitlines() if "--measure" not in line
    ]
    assert max(map(len, lines)) <= width


@settings(max_examples=25)
@given(width=st.integers(1, 200))
def test_no_change_is_ever_cut(builds: Comparison, width: int) -> None:
    text = re.sub(" +", " ", written(builds, width=width, all_rows=True))
    for row in builds.rows:
        assert words.change_text(row.verdict, "build") in text
        assert words.times_text(row) in text


def test_every_verdict_has_a_word_and_a_sign_without_colour(builds: Comparison) -> None:
    text = written(builds)
    for heading in ("▲ 3 regressions", "▼ 1 improvement", "? 2 inconclusive", "= 13 invariant"):
        assert heading in text
    console = Console(file=io.StringIO(), width=80, force_terminal=True, highlight=False)
    render(builds, console=console)
    assert isinstance(console.file, io.StringIO)
    assert "\x1b[" in console.file.getvalue()
    plain = re.sub(r"\x1b\[[\d;]*m", "", console.file.getvalue())
    assert [line.rstrip() for line in plain.splitlines()] == written(builds).rstrip("\n").replace(
        "   accel-micro compare 2.14.1 nightly --measure", ""
    ).rstrip("\n").splitlines()


def test_what_is_slower_on_a_device_is_no_regression(devices: Comparison) -> None:
    text = written(devices)
    assert "regression" not in text
    assert "▲ 1 slower" in text
    assert "0.572× [0.570, 0.574]" in text
    assert "215× [214, 215]" in text


def test_invariant_rows_are_folded_unless_asked_for(builds: Comparison) -> None:
    assert "elementwise.mul" not in written(builds)
    assert written(builds, all_rows=True).count("elementwise.mul") == 12
    assert "elementwise.mul" not in written(builds, "markdown")
    assert written(builds, "csv").count("elementwise.mul") == 12


def test_json_has_every_field_of_the_verdicts(builds: Comparison) -> None:
    data = json.loads(written(builds, "json"))
    assert data["schema"] == 1
    assert data["counts"] == {"regression": 3, "improvement": 1, "invariant": 13, "inconclusive": 2}
    assert len(data["rows"]) == 19
    for row, found in zip(data["rows"], builds.rows, strict=True):
        for name, value in vars(found.verdict).items():
            shown = list(value) if isinstance(value, tuple) else value
            if isinstance(value, float) and not math.isfinite(value):
                shown = None
            assert row[name] == shown
    assert {group["reason"] for group in data["uncompared"]} == {
        "crashed", "wrong result", "skipped", "not measured",
    }  # fmt: skip
    assert data["differences"]["found"][0]["name"] == "gpu.devices.0.driver"
    assert data["next_command"].endswith("--measure")


def test_csv_has_a_line_a_row_and_one_a_case_that_was_not_compared(builds: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(written(builds, "csv"))))
    assert [row["verdict"] for row in rows].count("") == 5 == len(rows) - 19
    assert {row["uncompared"] for row in rows[19:]} == {"crashed", "wrong result", "skipped", "not measured"}
    assert float(rows[0]["ratio"]) == builds.rows[0].verdict.ratio


def verdict(ratio: float, low: float, high: float) -> Verdict:
    return Verdict("inconclusive", ratio, low, high, 0.5, 3)


@pytest.mark.parametrize(
    ("found", "build", "device"),
    [
        (verdict(1.051, 1.042, 1.06), "+5.1 % [+4.2, +6.0]", "0.951× [0.943, 0.960]"),
        (verdict(1.0, 0.9999, 1.0001), "+0.00 % [-0.01, +0.01]", "1.000× [1.000, 1.000]"),
        (verdict(0.9999, 0.9, 1.1), "+0 % [-10, +10]", "1.00× [0.91, 1.11]"),
        (verdict(3.0, 2.0, 4.0), "+200 % [+100, +300]", "0.33× [0.25, 0.50]"),
        (verdict(0.01, 0.009, 0.011), "-99.00 % [-99.10, -98.90]", "100× [91, 111]"),
        (verdict(1.5, 0.0, math.inf), "+50.0 % [?]", "0.67× [?]"),
        (verdict(math.nan, 0.0, math.inf), "–", "–"),
    ],
)
def test_changes_in_words(found: Verdict, build: str, device: str) -> None:
    assert words.change_text(found, "build") == build
    assert words.change_text(found, "device") == device


@given(
    log=st.floats(-3, 3), half=st.floats(0, 1), width=st.sampled_from([13, 17, 21, 25]), speed=st.booleans()
)
def test_a_plot_shows_its_point_on_its_side(
    builds: Comparison, log: float, half: float, width: int, speed: bool
) -> None:
    found = verdict(math.exp(log), math.exp(log - half), math.exp(log + half))
    row = Compared(builds.rows[0].pair, found, 0.02)
    drawn = Scale(0.5, speed).plot(row, width)
    assert len(drawn) == width
    place = drawn.find("●")
    if place >= 0 and abs(log) > 0.1:
        assert (place > width // 2) == ((log > 0) != speed)
    if abs(log) > 0.5:
        assert ("›" if (log > 0) != speed else "‹") in drawn


def test_text_from_results_is_neither_markup_nor_a_command_to_the_terminal(tmp_path: Path) -> None:
    results = Results(tmp_path)
    hostile = Case("matmul.[red]mm|", "forward", "cpu", "float32", "n=1\x1b[2J [/bold] <b>")
    for build in (OLD, NEW):
        facts = {"host": {"cpu": {"model": f"\x1b[31m{build.version}"}}, "torch": {}}
        results.trial(build.version, hostile, 1e-5, facts=facts)
        results.without_time(build.version, case(), Failure("crashed", "\x1b]0;x\x07<script>\nsecond"))
    comparison = compared(tmp_path)
    for format in ("table", "csv", "markdown"):
        assert "\x1b" not in written(comparison, format, all_rows=True)  # type: ignore[arg-type]
    assert "[red]mm" in written(comparison, all_rows=True)
    assert "<script" not in written(comparison, "markdown")


@pytest.mark.parametrize("format", ["table", "json", "markdown", "csv"])
def test_a_stream_of_ascii_loses_signs_and_not_the_report(format: Format, builds: Comparison) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    render(builds, format, stream)
    stream.flush()
    assert b"regression" in raw.getvalue()


def test_nothing_to_compare_says_why(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for build in (OLD, NEW):
        results.trial(build.version, case(), 1e-5)
    text = written(compared(tmp_path, replace(BUILDS, bench=("nope",))), width=200)
    both = "torch 2.14.1 and torch 2.15.0.dev20261101"
    assert f"nothing can be compared: {both} have no results that match" in text
    text = written(compared(tmp_path, DEVICES))
    assert "nothing can be compared: cuda has no results of torch 2.15.0.dev20261101" in text
