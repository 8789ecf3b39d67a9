"""Progress: what is running, how far, how long still; short in logs."""

import io
import re

import pytest
from rich.console import Console

from accel_micro.measure.records import Case, Failure, Record
from accel_micro.report import progress


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def case(number: int) -> Case:
    return Case("matmul.mm", "forward", "cpu", "float32", f"n={number}")


def failed(number: int, kind: str = "crashed") -> Record:
    return Record(case(number), failure=Failure(kind, "signal 11\nmore"))


def run(
    listener: progress.Listener, clock: Clock, cases: int, seconds: float, failing: tuple[int, ...] = ()
) -> None:
    for index in range(1, cases + 1):
        listener.case_started(case(index), index, cases)
        clock.seconds += seconds
        listener.case_finished(failed(index) if index in failing else Record(case(index)))
    listener.finished()


def lines_of(cases: int, seconds: float, failing: tuple[int, ...] = ()) -> list[str]:
    clock, stream = Clock(), io.StringIO()
    run(progress.Lines(stream, now=clock), clock, cases, seconds, failing)
    return stream.getvalue().splitlines()


def test_a_log_gets_a_line_at_once_then_one_every_few_seconds_and_one_at_the_end() -> None:
    lines = lines_of(cases=100, seconds=0.25)
    assert lines[0] == "[1/100] 0 s  matmul.mm forward float32 n=1 on cpu"
    assert lines[1] == "[21/100] 5 s, about 20 s left  matmul.mm forward float32 n=21 on cpu"
    assert lines[-1] == "100 of 100 processes in 25 s"
    assert len(lines) == 1 + 4 + 1


def test_slow_cases_get_a_line_each() -> None:
    assert len(lines_of(cases=7, seconds=60.0)) == 7 + 1


def test_failures_are_counted_and_the_last_is_named_once() -> None:
    lines = lines_of(cases=40, seconds=1.0, failing=(2, 3))
    named = [line for line in lines if "last failure" in line]
    assert named == ["  last failure: crashed: matmul.mm forward float32 n=3 on cpu (signal 11)"]
    assert lines[-1] == "40 of 40 processes in 40 s, 2 cases failed"
    assert "2 failed" in lines[1]


def test_a_case_that_fails_in_every_process_counts_once() -> None:
    tally = progress.Tally(Clock())
    for _ in range(3):
        tally.finish(failed(1))
    tally.finish(failed(2))
    assert tally.failures == 2


def test_processes_are_not_called_cases_where_a_case_has_several() -> None:
    stream = io.StringIO()
    lines = progress.Lines(stream, now=Clock())
    for index in (1, 2, 3):
        lines.case_started(case(1), index, 3)
        lines.case_finished(failed(1))
    lines.finished()
    assert stream.getvalue().splitlines()[-1] == "3 of 3 processes in 0 s, 1 case failed"


def test_a_case_that_was_broken_off_is_not_counted_as_done() -> None:
    stream = io.StringIO()
    lines = progress.Lines(stream, now=Clock())
    lines.case_started(case(1), 1, 3)
    lines.case_finished(Record(case(1)))
    lines.case_started(case(2), 2, 3)
    lines.finished()
    assert stream.getvalue().splitlines()[-1] == "1 of 3 processes in 0 s"


def test_a_run_that_was_broken_off_in_its_first_case_has_none() -> None:
    stream = io.StringIO()
    lines = progress.Lines(stream, now=Clock())
    lines.case_started(case(1), 1, 3)
    lines.finished()
    assert stream.getvalue().splitlines()[-1] == "0 of 3 processes in 0 s"


def test_the_rest_is_the_mean_of_the_cases_done_times_those_that_are_not() -> None:
    clock = Clock()
    tally = progress.Tally(clock)
    tally.start(case(1), 1, 10)
    assert tally.rest_seconds is None, "nothing is known before a case is done"
    clock.seconds += 6
    tally.start(case(2), 2, 10)
    assert tally.rest_seconds == pytest.approx(54)
    clock.seconds += 4
    assert tally.rest_seconds == pytest.approx(50)
    clock.seconds += 1000
    assert tally.rest_seconds == 0


def test_a_run_without_cases_says_nothing() -> None:
    stream = io.StringIO()
    progress.Lines(stream).finished()
    assert stream.getvalue() == ""


def test_the_listener_fits_where_it_writes_to() -> None:
    assert isinstance(progress.listener(Console(file=io.StringIO(), force_terminal=True)), progress.Bar)
    assert isinstance(progress.listener(Console(file=io.StringIO())), progress.Lines)


def test_the_bar_names_the_case_keeps_failures_and_leaves_nothing_else_behind() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)
    bar = progress.Bar(console)
    bar.case_started(case(1), 1, 3)
    bar.case_finished(Record(case(1)))
    bar.case_started(Case("matmul.[b]mm", "forward", "cpu", "float32", "n=2 " * 40), 2, 3)
    bar.case_finished(failed(2, "timed out"))
    bar.finished()
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "0/3" in text
    assert "1/3" in text
    assert "1 failed" in text
    assert "matmul.[b]mm forward" in text
    assert "✗ timed out: matmul.mm forward float32 n=2 on cpu (signal 11)" in text
    drawn = re.split(r"[\r\n]", re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", text))
    assert max(map(len, drawn)) <= 100, "one line, whatever the case is called"
    assert text.rstrip().endswith("\x1b[2K") or text.rstrip().endswith("\x1b[?25h")


def test_the_bar_draws_without_a_thread() -> None:
    # A refreshing thread would take the interpreter from a call that is being timed.
    import threading

    before = threading.active_count()
    bar = progress.Bar(Console(file=io.StringIO(), force_terminal=True))
    bar.case_started(case(1), 1, 1)
    assert threading.active_count() == before
    bar.finished()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3599.6, "1 h 00 min"), (7384, "2 h 03 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert progress.duration(seconds) == text
