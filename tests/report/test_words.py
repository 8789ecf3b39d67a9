"""The words: every flag and failure has its mark and remedy, and notes say what was done."""

from dataclasses import replace

from accel_micro.measure.flags import REMEDIES
from accel_micro.measure.records import FAILURES
from accel_micro.report import words
from accel_micro.report.rows import collect
from tests.report.fixtures import cpu_records, h100_records


def test_every_kind_of_failure_has_a_remedy() -> None:
    assert set(words.FAILURE_REMEDIES) == set(FAILURES)


def test_every_flag_has_a_mark_of_its_own() -> None:
    assert set(words.MARKS) == set(REMEDIES)
    assert len(set(words.MARKS.values())) == len(REMEDIES)
    assert all(len(mark) == 1 and mark != "!" for mark in words.MARKS.values())


def test_marks_stay_apart_when_names_share_all_letters() -> None:
    marks = words.assign_marks(["aa", "aa a", "aaa"])
    assert len(set(marks.values())) == 3


def test_the_fixtures_raise_every_flag_and_every_failure() -> None:
    rows = [*collect(cpu_records()).rows, *collect(h100_records()).rows]
    assert {flag.name for row in rows for flag in row.flags} == set(REMEDIES)
    assert {failure.kind for row in rows for failure in row.failures} == set(FAILURES)


def test_notes_say_how_the_intervals_were_made() -> None:
    def notes(rounds: int) -> str:
        return " ".join(words.interval_notes(collect(cpu_records(rounds)).rows))

    assert "6th and 15th of 20 samples" in notes(1)
    assert "From 1 process:" in notes(1)
    assert "both" in notes(2)
    assert "Student" in notes(3)
    assert "From 3 processes:" in notes(3)


def test_the_legend_counts_cases_not_processes() -> None:
    legend = words.legend(collect(h100_records()).rows)
    assert {entry.name: entry.cases for entry in legend}["speed-corrected"] == 1


def test_a_headline_counts_every_case_once() -> None:
    assert words.headline(collect(h100_records())) == "10 cases timed, 8 failed, 3 skipped"
    assert words.headline(collect([])) == "0 cases timed"


def test_text_from_records_cannot_steer_a_terminal() -> None:
    assert words.first_line("\n \n\x1b[31mred\x07 \u202e\nsecond") == "\ufffd[31mred\ufffd \ufffd"


def test_the_bounds_of_a_device_without_a_clock_are_told() -> None:
    assert words.device_interval(12e-6, 34e-6) == "12 to 34 µs"
    assert words.device_interval(890e-9, 1.2e-6) == "890 ns to 1.2 µs"
    assert words.device_interval(0.0, 34e-6) == "up to 34 µs"


def test_the_compiler_s_share_of_the_first_call_is_told_where_it_is_known() -> None:
    (row,) = collect(cpu_records()[:1]).rows
    assert words.first_call(replace(row, first_call_seconds=None)) == ""
    row = replace(row, first_call_seconds=0.112)
    assert words.first_call(row) == "112 ms"
    assert words.first_call(replace(row, compile_seconds=0.1)) == "112 ms, 100 ms compiling"
