"""An attempt that fails, dies or hangs costs its own row, and one that is not as it should be is tried again."""

import os
import time
from multiprocessing.connection import Connection

import pytest

from accel_micro.devices.base import DeviceUnavailable
from benchmarks.harness.reports.row import Attempt, DoesNotApply, Finding, Row
from benchmarks.harness.reports.running import chosen, run, serve, tried


def found(good: bool = True) -> Finding:
    return Finding("this", "1 s", "2 s", "right", good, {"threads": os.environ.get("OMP_NUM_THREADS")})


def raising() -> Finding:
    raise ValueError("no such kernel\nand a long story")


def not_here() -> Finding:
    raise DoesNotApply("there is no moon")


def dying() -> Finding:
    os._exit(11)


def hanging() -> Finding:
    time.sleep(600)
    return found()


ATTEMPTS = (
    Attempt(1, "cpu", "CPU", found),
    Attempt(2, "cpu", "CPU", raising),
    Attempt(3, "cpu", "CPU", dying),
    Attempt(4, "cpu", "CPU", hanging, most_seconds=1.0),
    Attempt(5, "cuda", "CUDA", found),
    Attempt(6, "cpu", "CPU", not_here),
    Attempt(7, "cpu", "CPU", found),
)


def serve_these(pipe: Connection, device: str) -> None:
    serve(pipe, device, ATTEMPTS)


def test_those_of_a_device_and_of_some_reports_are_chosen() -> None:
    assert [place for place, _ in chosen(ATTEMPTS, "cpu", [])] == [0, 1, 2, 3, 5, 6]
    assert [attempt.number for _, attempt in chosen(ATTEMPTS, "cpu", [7, 5])] == [7]
    assert [place for place, _ in chosen(ATTEMPTS, "cuda", [])] == [4]


@pytest.mark.slow
def test_what_goes_wrong_in_one_row_does_not_reach_the_next() -> None:
    told: list[Row] = []
    rows = run(chosen(ATTEMPTS, "cpu", []), "cpu", told.append, serve_these)
    assert told == rows
    assert [row.number for row in rows] == [1, 2, 3, 4, 6, 7]
    problems = {row.number: row.problem for row in rows if row.problem}
    assert problems == {
        2: "failed: ValueError: no such kernel",
        3: "crashed: the process ended with 11",
        4: "timed out after 1 s",
        6: "does not apply: there is no moon",
    }
    for row in rows:
        assert (row.finding is None) == (row.number in problems)
    last = rows[-1]
    assert last.finding is not None
    assert last.finding.figures["threads"] == "1", "the CPU's rows run on one thread"
    assert last.model


@pytest.mark.slow
def test_a_device_that_is_not_here_is_no_row() -> None:
    told: list[Row] = []
    with pytest.raises(DeviceUnavailable, match="without an index"):
        run(chosen(ATTEMPTS, "cpu", []), "cpu:1", told.append, serve_these)
    assert told == []


def in_order(*findings: Finding) -> Attempt:
    left = list(findings)
    return Attempt(1, "cpu", "CPU", lambda: left.pop(0))


def test_what_is_not_as_it_should_be_is_tried_again_and_the_last_counts() -> None:
    row = tried(in_order(found(False), found(), found(False)), "model", tries=3)
    assert row.finding is not None
    assert (row.finding.good, row.tries) == (True, 2)
    row = tried(in_order(*[found(False)] * 3), "model", tries=3)
    assert row.finding is not None
    assert (row.finding.good, row.tries) == (False, 3)
    row = tried(in_order(found(False), found()), "model")
    assert row.finding is not None
    assert (row.finding.good, row.tries) == (False, 1)


def test_there_is_no_further_try_when_the_time_is_up() -> None:
    attempt = in_order(found(False), found())
    row = tried(Attempt(1, "cpu", "CPU", attempt.find, most_seconds=0.0), "model", tries=3)
    assert row.tries == 1


def test_a_try_that_fails_after_one_that_did_not_leaves_its_problem() -> None:
    def find() -> Finding:
        return found(False) if not made.append(None) and len(made) == 1 else raising()

    made: list[None] = []
    row = tried(Attempt(1, "cpu", "CPU", find), "model", tries=3)
    assert (row.finding, row.problem, row.tries) == (None, "failed: ValueError: no such kernel", 2)
