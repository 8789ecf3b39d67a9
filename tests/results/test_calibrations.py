"""Calibrations are kept and found again; lines that are none cost themselves."""

from dataclasses import replace
from pathlib import Path

import pytest

from accel_micro.results import calibrations
from accel_micro.results.calibrations import FILE_NAME, CalibratedCase, Calibration
from tests.results.calibrated import BLESSED, REFUSED


def test_what_was_added_is_read_back(tmp_path: Path) -> None:
    calibrations.append(tmp_path, BLESSED)
    calibrations.append(tmp_path, REFUSED)
    problems: list[str] = []
    assert list(calibrations.read(tmp_path, "vm", problems)) == [BLESSED, REFUSED]
    assert problems == []
    assert isinstance(BLESSED.cases[0], CalibratedCase)
    assert calibrations.machines(tmp_path) == ["vm"]


def test_the_last_of_a_device_holds(tmp_path: Path) -> None:
    newer = replace(BLESSED, tolerance=0.04)
    other = replace(BLESSED, device="cuda")
    for one in (BLESSED, newer, other):
        calibrations.append(tmp_path, one)
    assert calibrations.latest(tmp_path, "vm", "cpu") == newer
    assert calibrations.latest(tmp_path, "vm", "cuda") == other
    assert calibrations.latest(tmp_path, "vm", "mps") is None
    assert calibrations.latest(tmp_path, "elsewhere", "cpu") is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"schema": 1, "machine": "vm", "tol',
        b'{"schema": 2}',
        b"[1]",
        b"\xff\xfe",
        b'{"schema": 1, "machine": "vm"}',
    ],
)
def test_torn_and_foreign_lines_are_named_and_skipped(tmp_path: Path, line: bytes) -> None:
    calibrations.append(tmp_path, BLESSED)
    path = tmp_path / "vm" / FILE_NAME
    with path.open("ab") as file:
        file.write(line)
    calibrations.append(tmp_path, REFUSED)
    problems: list[str] = []
    assert list(calibrations.read(tmp_path, "vm", problems)) == [BLESSED, REFUSED]
    assert len(problems) == 1
    assert problems[0].startswith(f"{path}:2: not a calibration, skipped (")


@pytest.mark.parametrize("tolerance", [0.0, -1.0, float("inf"), float("nan")])
def test_a_tolerance_that_is_none_is_refused(tolerance: float) -> None:
    with pytest.raises(ValueError, match="a tolerance of"):
        replace(BLESSED, tolerance=tolerance)


@pytest.mark.parametrize("machine", ["", ".", "..", "a/b", "/etc"])
def test_a_machine_is_a_folder_of_the_results(tmp_path: Path, machine: str) -> None:
    with pytest.raises(ValueError, match="no name of a machine"):
        calibrations.latest(tmp_path, machine, "cpu")


def test_asv_does_not_take_the_file_for_a_result() -> None:
    assert not FILE_NAME.endswith(".json")


def test_plain_data_has_text_for_keys() -> None:
    data: Calibration = BLESSED
    assert data.to_json()["detectable"] == {"1": 0.05, "5": 0.031, "30": 0.024}
    assert data.to_json()["schema"] == 1
