"""What a table of reports is made of, and the table."""

import argparse
import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from benchmarks.harness.reports import command, rendering
from benchmarks.harness.reports.attempts import ATTEMPTS
from benchmarks.harness.reports.catalogue import REPORTS
from benchmarks.harness.reports.row import Finding, Row, within

ROWS = [
    Row(
        1,
        "CUDA",
        "Paper H100",
        Finding(
            "mm 4096³, 20 calls",
            "30.0 µs | no wait",
            "2.70 ms",
            "right within 1 %; rejected",
            True,
            {"truth_seconds": 2.7e-3},
        ),
        "",
        3.21,
    ),
    Row(
        4,
        "MPS, simulated",
        "",
        Finding("an event", "no time", "40.0 µs", "WRONG, 0.8 times the truth", False),
        "",
        1.0,
        3,
    ),
    Row(16, "CPU", "", None, "timed out after 90 s", 90.0),
    Row(20, "CUDA", "", None, "does not apply: there is no TF32", 0.1),
]


def test_there_are_twenty_reports_with_addresses_and_each_is_tried() -> None:
    assert list(REPORTS) == list(range(1, 21))
    for report in REPORTS.values():
        assert report.said
        for name, address in report.issues.items():
            repository, _, number = name.partition("#")
            assert address.startswith("https://github.com/")
            assert address.endswith(f"/{repository}/issues/{number}")
            assert number.isdecimal()
    assert {attempt.number for attempt in ATTEMPTS} == set(REPORTS)
    assert [attempt.number for attempt in ATTEMPTS] == sorted(attempt.number for attempt in ATTEMPTS)
    assert {attempt.needs for attempt in ATTEMPTS} == {"cpu", "cuda", "xla"}
    assert len({(attempt.number, attempt.where) for attempt in ATTEMPTS}) == len(ATTEMPTS)


@pytest.mark.parametrize(
    ("read", "limit", "right"),
    [(1.0, 0.15, True), (1.14, 0.15, True), (0.86, 0.15, True), (1.16, 0.15, False), (0.9, 0.05, False)],
)
def test_right_is_what_lies_within_the_limit(read: float, limit: float, right: bool) -> None:
    word, is_right = within(2 * read, 2.0, limit)
    assert is_right == right
    assert word.startswith("right" if right else "WRONG")


def test_never_right_within_nothing() -> None:
    assert within(1.0001)[0] == "right within 1 %"


def test_what_people_see(snapshot: SnapshotAssertion) -> None:
    assert rendering.table(ROWS) == snapshot(name="markdown")
    assert "\n".join(map(rendering.shown, ROWS)) == snapshot(name="terminal")


def test_rows_survive_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rendering.to_json(ROWS, "cuda", "2.11.0")))
    assert rendering.read(path) == ROWS
    first = json.loads(path.read_text())["rows"][0]
    assert first["issues"] == dict(REPORTS[1].issues)
    assert first["reported"] == REPORTS[1].said


def test_tables_of_files_are_put_together_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = []
    for name, rows in (("one", ROWS[2:]), ("two", ROWS[:2])):
        paths.append(tmp_path / name)
        paths[-1].write_text(json.dumps(rendering.to_json(rows, "cuda", "2.11.0")))
    command.reports(parsed("--tables", *map(str, paths)))
    assert capsys.readouterr().out.strip() == rendering.table(ROWS)


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    return parser.parse_args(words)


def test_failures_are_told_from_what_does_not_apply() -> None:
    assert [command.failed(row) for row in ROWS] == [False, True, True, False]


def test_numbers_are_those_of_reports(capsys: pytest.CaptureFixture[str]) -> None:
    assert parsed("--only", "1, 20").only == [1, 20]
    assert parsed().only == []
    for wrong in ("0", "21", "one", "1,,2", "-3"):
        with pytest.raises(SystemExit):
            parsed(f"--only={wrong}")
        assert "numbers of reports are 1 to 20" in capsys.readouterr().err


@pytest.mark.parametrize(("rows", "code"), [(ROWS[:1], None), (ROWS[:2], 1), (ROWS[3:], None)])
def test_the_command_writes_its_rows_and_fails_when_one_is_not_as_it_should_be(
    rows: list[Row],
    code: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command, "run", lambda places, device, tell: [tell(row) or row for row in rows])
    path = tmp_path / "out.json"
    if code is None:
        command.reports(parsed("--out", str(path)))
    else:
        with pytest.raises(SystemExit) as ended:
            command.reports(parsed("--out", str(path)))
        assert ended.value.code == code
    assert rendering.read(path) == rows
    assert f"not as they should be: {code or 0}" in capsys.readouterr().out
