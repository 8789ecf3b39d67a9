"""What is read back of records, a build at a time and all at once, and of sessions."""

import json
from pathlib import Path

from accel_micro.builds import identify
from accel_micro.measure import Process
from accel_micro.measure.records import SUFFIX, Case, Record, append
from accel_micro.results import read_each, read_results, sessions

DAYS = ("2.15.0.dev20261105", "2.15.0.dev20261106")
CASE = Case("matmul.mm", "forward", "cpu", "float32", "n=1")


def put(results: Path, machine: str, version: str, *medians: float) -> None:
    build = identify(version).id
    for number, median in enumerate(medians):
        values = (median,) * 20
        process = Process("cpu", "throughput", values, values, (1.0,) * 20, 7)
        record = Record(
            CASE, {"throughput": process}, machine=machine, build=build, environment="e", session=f"{number}"
        )
        append(results / machine / f"{build[:8]}-e{SUFFIX}", record)


def test_a_build_at_a_time_gives_the_same_as_all_at_once(tmp_path: Path) -> None:
    for machine in ("alpha", "beta"):
        for version in DAYS:
            put(tmp_path, machine, version, 1e-3, 2e-3)
    with (tmp_path / "alpha" / f"20261105-e{SUFFIX}").open("a") as file:
        file.write('{"torn\n')
    parts = list(read_each(tmp_path))
    assert [{key.build for key in part.trials} for part in parts] == [{identify(day).id} for day in DAYS]
    whole = read_results(tmp_path)
    assert {key: trial for part in parts for key, trial in part.trials.items()} == whole.trials
    assert len(whole.trials) == 4
    assert whole.problems == [problem for part in parts for problem in part.problems] != []
    only = list(read_each(tmp_path, machines=["beta"], clocks=["device"]))
    assert not any(part.trials for part in only)


def test_lines_of_sessions_are_read_and_others_skipped(tmp_path: Path) -> None:
    line = {"session": "a", "started": "2026-11-05T00:00:00+00:00", "build": "b", "host": {"os": {}}}
    (tmp_path / "alpha").mkdir()
    lines = [json.dumps(line), '{"torn', "[]", '{"session": "c"}', json.dumps({**line, "host": 3})]
    (tmp_path / "alpha" / sessions.FILE_NAME).write_text("\n".join(lines))
    assert list(sessions.read(tmp_path)) == [("alpha", line)]
