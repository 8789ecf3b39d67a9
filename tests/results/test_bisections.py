"""The file of a bisection: nothing that was written is lost, and what is torn costs itself only."""

import errno
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from accel_micro.measure.records import Case
from accel_micro.results.bisections import SILENCE_SECONDS, Bisection, NoBisection, bisections, find
from accel_micro.results.questions import Named, Question, Script

QUESTION = Question(
    builds=(Named("a" * 40, "2.15.0.dev20261101"), Named("b" * 40, "2.15.0.dev20261102")),
    starts=("a" * 40,),
    case=Case("matmul.mm", "forward", "cpu", "float32", "n=64"),
    left_out={"c" * 40: "broken"},
    machine={"cpu": "one"},
)
SEARCH = {"event": "search", "builds": ["a", "b"]}
BLOCK = {"event": "block", "number": 0, "builds": [0, 1]}
VALUES = {"event": "values", "number": 0, "seconds": [1.0, 2.0]}


def begun(results: Path) -> Bisection:
    return Bisection.begin(results, "matmul.mm", QUESTION.to_json())


def test_a_question_comes_back_as_it_was(tmp_path: Path) -> None:
    assert Question.from_json(begun(tmp_path).question) == QUESTION
    asked = Question(
        QUESTION.builds, QUESTION.starts, regress="error", script=Script("/x.py", ("a", "b"), 3.0)
    )
    assert Question.from_json(json.loads(json.dumps(asked.to_json()))) == asked
    with pytest.raises(ValueError, match="bisection by 'speed'"):
        Question.from_json({**QUESTION.to_json(), "metric": "speed"})


def test_events_come_back_in_order_with_who_wrote_them(tmp_path: Path) -> None:
    one = begun(tmp_path)
    one.write([SEARCH])
    one.write([BLOCK])
    one.note(build="a" * 40, why="slow disk")
    one.write([VALUES, {"event": "decided", "what": "confirmed", "builds": [0, 1]}])
    other = Bisection(one.path)
    assert [event["event"] for event in other.events()] == ["search", "block", "values"]
    assert {event["worker"] for event in other.events()} == {one.worker}
    assert [note["why"] for note in other.notes()] == ["slow disk"]
    assert [event["event"] for event in other.all_events()][-1] == "decided"


def test_a_torn_line_is_skipped_and_takes_no_other_along(tmp_path: Path) -> None:
    one = begun(tmp_path)
    one.write([SEARCH, BLOCK])
    with one.path.open("a") as file:
        file.write('{"event":"values","number":0,"sec')
    one.write([VALUES])
    assert [event["event"] for event in one.events()] == ["search", "block", "values"]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = begun(tmp_path)
    one.write([SEARCH])
    before = one.path.read_bytes()
    write = os.write

    def short(handle: int, data: bytes) -> int:
        return write(handle, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", short)
    with pytest.raises(OSError, match="no room"):
        one.write([BLOCK])
    assert one.path.read_bytes() == before

    def full(handle: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        one.write([BLOCK])
    assert one.path.read_bytes() == before


def test_blocks_of_dead_workers_are_lost_and_those_of_living_ones_not(tmp_path: Path) -> None:
    one = begun(tmp_path)
    here = one.worker.rpartition(".")[0]
    dead, alive, silent, far = f"{here}.4194304", f"{here}.1", "elsewhere.7", "elsewhere.8"
    written: list[dict[str, Any]] = [SEARCH]
    for number, worker in enumerate((dead, alive, silent, far)):
        written.append({**BLOCK, "number": number, "worker": worker})
    with one.path.open("a") as file:
        file.writelines(json.dumps(event) + "\n" for event in written)
    for worker in (dead, alive, silent, far):
        one.path.with_name(f"{one.name}.{worker}").touch()
    old = time.time() - 2 * SILENCE_SECONDS
    os.utime(one.path.with_name(f"{one.name}.{silent}"), (old, old))
    assert one.lost() == [0, 2]
    assert one.workers == [far, alive] or set(one.workers) == {far, alive}


def test_a_worker_gives_signs_of_life_while_it_works(tmp_path: Path) -> None:
    one = begun(tmp_path)
    other = Bisection(one.path)
    other.worker = "elsewhere.1"
    with one.at_work():
        assert other.workers == [one.worker]
    assert other.workers == []


def test_the_file_of_one_ends_with_a_word_of_its_title(tmp_path: Path) -> None:
    begun = Bisection.begin(tmp_path, "forward softmax in mine:net (cpu)", QUESTION.to_json())
    assert begun.name.endswith("-forward-softmax-in-mine-net-cpu")


def test_bisections_are_found_by_how_they_begin(tmp_path: Path) -> None:
    with pytest.raises(NoBisection, match="there are no bisections yet"):
        find(tmp_path)
    first, second = begun(tmp_path), begun(tmp_path)
    assert first.name != second.name
    assert [one.name for one in bisections(tmp_path)] == sorted([first.name, second.name])
    assert find(tmp_path, second.name).name == second.name
    with pytest.raises(NoBisection, match="called 'x'"):
        find(tmp_path, "x")
    (tmp_path / "bisections" / "zz.jsonl").write_text("no JSON\n")
    with pytest.raises(NoBisection, match="not a bisection of this version"):
        _ = find(tmp_path, "zz").question
