"""Records survive writing and reading; what is no record is named and skipped."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.measure import CLOCKS, Flag, Process
from accel_micro.measure.flags import REMEDIES
from accel_micro.measure.records import (
    FAILURES,
    SUFFIX,
    Case,
    Check,
    Cold,
    Failure,
    Peak,
    Record,
    Work,
    append,
    read,
    read_all,
)

seconds = st.floats(1e-9, 1e3)
text = st.text(max_size=20)
flags = st.builds(Flag, st.sampled_from(sorted(REMEDIES)), text)
processes = st.integers(1, 5).flatmap(
    lambda n: st.builds(
        Process,
        device=text,
        clock=st.sampled_from(CLOCKS),
        samples=st.lists(seconds, min_size=n, max_size=n).map(tuple),
        raw_samples=st.lists(seconds, min_size=n, max_size=n).map(tuple),
        speeds=st.lists(seconds, min_size=n, max_size=n).map(tuple),
        calls_per_block=st.integers(1, 10**6),
        flags=st.lists(flags, max_size=3).map(tuple),
        first_call_seconds=st.none() | seconds,
        warmup_seconds=seconds,
        blocks_taken=st.integers(1, 100),
        sensitivity=st.floats(0, 1),
        probe=st.dictionaries(text, seconds, max_size=2),
    )
)
records = st.builds(
    Record,
    case=st.builds(Case, text, text, text, text, text),
    clocks=st.dictionaries(st.sampled_from(CLOCKS), processes, max_size=2),
    failure=st.none() | st.builds(Failure, st.sampled_from(sorted(FAILURES)), text),
    skipped=st.none() | text,
    check=st.none() | st.builds(Check, seconds, seconds, seconds, text),
    work=st.none() | st.builds(Work, seconds, seconds, st.none() | seconds),
    peak=st.none() | st.builds(Peak, st.none() | seconds, st.none() | seconds),
    peak_memory_bytes=st.none() | st.integers(0, 10**12),
    cold=st.none()
    | st.builds(Cold, st.integers(2, 4096), seconds, st.integers(1, 10**9), text, st.booleans()),
    precision=st.dictionaries(text, st.booleans() | text, max_size=2),
    seconds=st.dictionaries(text, seconds, max_size=2),
    machine=text,
    round=st.integers(1, 9),
)


@given(records)
def test_json_round_trip(record: Record) -> None:
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record


def small(shape: str) -> Record:
    return Record(Case("matmul.mm", "forward", "cpu", "float32", shape), skipped="a test")


def test_files_are_appended_and_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "machine" / f"20261105-env{SUFFIX}"
    for shape in ("m=1", "m=2"):
        append(path, small(shape))
    assert [record.case.shape for record in read(path)] == ["m=1", "m=2"]
    assert [record.case.shape for record in read_all(tmp_path)] == ["m=1", "m=2"]


@pytest.mark.parametrize("line", ['{"schema": 1, "case": {"op"', "[]", "null", '{"schema": 99}', "torn"])
def test_a_torn_or_foreign_line_is_named_and_skipped(tmp_path: Path, line: str) -> None:
    path = tmp_path / f"x{SUFFIX}"
    append(path, small("m=1"))
    with path.open("a") as file:
        file.write(line + "\n")
    append(path, small("m=2"))
    problems: list[str] = []
    assert [record.case.shape for record in read(path, problems)] == ["m=1", "m=2"]
    assert len(problems) == 1
    assert f"{path}:2: not a record" in problems[0]


def test_whatever_is_wrong_with_a_line_it_costs_itself_alone(tmp_path: Path) -> None:
    path = tmp_path / f"x{SUFFIX}"
    whole = small("m=1").to_json()
    with path.open("w") as file:
        file.write("[" * 100_000 + "\n")
        file.write(json.dumps({**whole, "device_interval": [1.0]}) + "\n")
    append(path, small("m=2"))
    problems: list[str] = []
    assert [record.case.shape for record in read(path, problems)] == ["m=2"]
    assert len(problems) == 2


def test_a_record_after_a_line_cut_short_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / f"x{SUFFIX}"
    append(path, small("m=1"))
    with path.open("a") as file:
        file.write('{"schema": 1, "case"')
    append(path, small("m=2"))
    assert [record.case.shape for record in read(path)] == ["m=1", "m=2"]


def test_case_names_itself_and_its_family() -> None:
    case = small("m=64").case
    assert case.family == "matmul"
    assert str(case) == "matmul.mm forward float32 m=64 on cpu"


def test_an_unknown_flag_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="unknown flag 'odd'"):
        Flag("odd")


def test_a_flag_of_another_version_does_not_cost_the_record() -> None:
    assert str(Flag.stored("too hot", "91 °C")) == "of another version (too hot: 91 °C)"
    assert Flag.stored("noisy", "9 %") == Flag("noisy", "9 %")


@pytest.mark.parametrize("name", sorted(REMEDIES))
def test_every_flag_has_a_remedy_and_prints_its_detail(name: str) -> None:
    assert Flag(name).remedy
    assert str(Flag(name, "7 of 20")) == f"{name} (7 of 20)"


def test_a_record_of_warm_inputs_says_nothing_of_cold_ones() -> None:
    """So that versions which know no cold inputs read it."""
    case = Case("matmul.mm", "forward", "cpu", "float32", "m=64 k=64 n=64")
    assert "cold" not in Record(case).to_json()
    assert Record.from_json(Record(case).to_json()).cold is None
