"""Captures written and read back; what is none is refused in one sentence."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.explain import file
from tests.explain.worlds import capture, row


def test_written_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    made = capture(noise=0.1, rows=[row(n, error=1e-7, tolerance=1e-6) for n in range(6)])
    file.write(made, path)
    assert file.read(path) == made
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


def test_infinite_errors_survive(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    file.write(capture(rows=[row(n, error=float("inf"), check="NaN") for n in range(6)]), path)
    error = file.read(path).rows[0].error
    assert error is not None and error > 1e300


@given(st.integers(0, 3000))
def test_a_torn_file_is_refused(tmp_path_factory: pytest.TempPathFactory, at: int) -> None:
    path = tmp_path_factory.mktemp("torn") / "a.json"
    file.write(capture(), path)
    text = path.read_bytes()
    path.write_bytes(text[: min(at, len(text) - 3)])
    with pytest.raises(file.NotACapture, match="not JSON, or torn"):
        file.read(path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"schema": 99}, "later version"),
        ({"readings": []}, "no process"),
        ({"batch": 0}, "batch of 0"),
        ({"batch": "four"}, "damaged capture: Expected `int`"),
        ({"sequence": [7]}, "rows that are not there"),
        ({"rows": [{"op": "a", "phase": "sideways"}]}, "damaged capture"),
        ({"sequence": [0]}, "does not call its rows as often as they say"),
    ],
)
def test_a_damaged_one_says_where(tmp_path: Path, change: dict[str, object], sentence: str) -> None:
    path = tmp_path / "a.json"
    file.write(capture(), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(file.NotACapture, match=sentence):
        file.read(path)


@pytest.mark.parametrize("text", ["{}", "[]", "3", '{"schema": "1"}', "\xff\xfe", '{"schema": 1}'])
def test_a_foreign_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(file.NotACapture):
        file.read(path)


def test_a_negative_step_and_a_short_list_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    made = capture()
    infinite = {"gaps": (math.inf,) * len(made.rows)}
    for change in ({"steps": (-1.0,)}, {"ops": (1.0,)}, infinite, {"host_seconds": 0.0}):
        file.write(replace(made, readings=(replace(made.readings[0], **change),)), path)  # type: ignore[arg-type]
        with pytest.raises(file.NotACapture):
            file.read(path)


def test_one_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as large:
        os.truncate(large.fileno(), file.MOST_BYTES + 1)
    with pytest.raises(file.NotACapture, match="larger than"):
        file.read(path)
