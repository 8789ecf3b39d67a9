"""`accel-micro quick` as a user runs it, on the real suite, asv and torch, with one small case."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from accel_micro.measure.records import Case, Record, read_all

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[2]
ONE_CASE = r"matmul.mm.time_forward\('cpu', 'float32', 'm=64"


def run(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "accel_micro", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "COLUMNS": "100", "HOME": str(folder)},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> "tuple[Path, subprocess.CompletedProcess[str]]":
    folder = tmp_path_factory.mktemp("quick")
    finished = run("quick", "--bench", ONE_CASE, "--out", "out", "--format", "json", folder=folder)
    assert finished.returncode == 0, finished.stderr
    return folder, finished


def test_standard_output_is_the_report_and_nothing_else(
    done: "tuple[Path, subprocess.CompletedProcess[str]]",
) -> None:
    report = json.loads(done[1].stdout)
    (row,) = report["rows"]
    assert (row["op"], row["device"], row["dtype"]) == ("matmul.mm", "cpu", "float32")
    assert report["records"][0]["clocks"]["throughput"]["samples"]


def test_progress_and_places_are_on_standard_error(
    done: "tuple[Path, subprocess.CompletedProcess[str]]",
) -> None:
    said = done[1].stderr
    assert "matmul.mm forward float32 m=64 k=64 n=64 on cpu" in said
    assert "/out/html/report.html" in said
    assert "/out/results" in said


def test_results_records_and_pages_are_there(done: "tuple[Path, subprocess.CompletedProcess[str]]") -> None:
    out = done[0] / "out"
    (record,) = read_all(out / "results")
    assert isinstance(record, Record)
    assert record.case == Case("matmul.mm", "forward", "cpu", "float32", "m=64 k=64 n=64")
    assert record.check is not None
    page = (out / "html" / "report.html").read_text()
    assert "matmul.mm" in page
    assert 'src="http' not in page
    assert (out / "html" / "index.json").is_file()


def test_a_second_run_in_another_form_keeps_the_first_and_publishing_keeps_the_report(
    done: "tuple[Path, subprocess.CompletedProcess[str]]",
) -> None:
    folder, _ = done
    finished = run(
        "quick", "--bench", ONE_CASE, "--out", "out", "--format", "csv", "--rounds", "2", folder=folder
    )
    assert finished.returncode == 0, finished.stderr
    (line,) = csv.DictReader(finished.stdout.splitlines())
    assert float(line["seconds_low"]) <= float(line["seconds"]) <= float(line["seconds_high"])
    assert len(list(read_all(folder / "out" / "results"))) == 3


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("--device", "gpu"), 2, "unknown device 'gpu'; known: cpu, cuda, mps, xla, xpu"),
        (("--device", "mps"), 3, "mps needs macOS on an Apple GPU"),
        (("--bench", "no_such_op"), 2, "no_such_op"),
        (("--config", "nowhere.json"), 2, "nowhere.json"),
        (("--profile", "huge"), 2, "huge"),
    ],
)
def test_bad_input_gets_a_sentence(
    arguments: tuple[str, ...], code: int, sentence: str, tmp_path: Path
) -> None:
    finished = run("quick", *arguments, "--out", "out", folder=tmp_path)
    assert finished.returncode == code, finished.stderr
    assert sentence in finished.stderr
    assert "Traceback" not in finished.stderr
