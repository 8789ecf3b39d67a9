"""Builds measured by turns through the real asv, in a process of their own: asv and its plugin are global."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accel_micro.asv_plugin.opening import Station
from accel_micro.measure.records import read_all
from tests.asv_plugin.builds import OPS as BUILD_OPS
from tests.asv_plugin.builds import Builds, samples
from tests.asv_plugin.conftest import Suite, ended, press_ctrl_c

slow = pytest.mark.slow

OPS = """
import signal


@op(quick=["n=1"], full=["n=9"], backward=False)
def good(t, n):
    pass


@op(quick=["n=1"], backward=False)
def worse(t, n):
    return "wrong result", "relative error 1"


@op(quick=["n=1"], backward=False)
def once(t, n):
    from pathlib import Path
    import os
    seen = Path(os.environ["HOME"]) / "seen"
    if seen.exists():
        os.kill(os.getpid(), signal.SIGKILL)
    seen.touch()


@op(quick=["n=1"], backward=False)
def server(t, n):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


@op(quick=["n=1"], backward=False)
def parent(t, n):
    return "wrong result", str(os.getppid())


@op(quick=["n=1"], backward=False)
def hangs(t, n):
    time.sleep(100)
"""

PROGRAM = """
import json, sys
from accel_micro.asv_plugin.interleaving import SessionError, interleaved
from accel_micro.asv_plugin.opening import Where
from accel_micro.measure.records import Case

places, turns, options = json.loads(sys.argv[1])
places = [Where(*place) for place in places]

def case(op, dtype="float32", shape="n=1", device="cpu"):
    return Case(op, "forward", device, dtype, shape)

try:
    with interleaved(places=places, listener=lambda event: None, **options) as measure:
        print(json.dumps([str(case) for case in measure.cases(places[0], "quick")]), flush=True)
        for place, arguments, *lane in turns:
            if arguments == "renew":
                measure.renew([places[place]], *lane)
                continue
            record = measure(places[place], case(*arguments), *lane)
            print(json.dumps({
                "build": record.build, "session": record.session, "round": record.round, "skipped": record.skipped,
                "environment": record.environment, "failure": record.failure and record.failure.kind,
                "detail": record.failure and record.failure.detail,
                "seconds": {clock: process.samples[0] for clock, process in record.clocks.items()},
            }), flush=True)
except SessionError as error:
    print(json.dumps(["error", error.exit_code, str(error)]))
except KeyboardInterrupt:
    print(json.dumps("interrupted"))
"""


def start(
    suite: Suite, places: list[list[str]], turns: list[Any], **options: object
) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps([places, turns, {"devices": ["cpu"], **options}])],
        cwd=suite.path,
        env=suite.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def lines(process: "subprocess.Popen[str]") -> list[Any]:
    return ended(process, 200).lines()


def stored(suite: Suite) -> dict[str, Any]:
    return dict(json.loads(suite.machine_file("*-existing-*.json").read_text()))


@slow
def test_any_case_is_measured_as_often_as_asked_for(suite: Suite) -> None:
    suite.add("ops", OPS)
    turns = [
        [0, ["ops.good"]],
        [1, ["ops.good"]],
        [1, ["ops.good", "float64", "n=9"]],  # which no profile but `full` runs
        [0, ["ops.good"]],
        [0, ["ops.gone"]],
        [0, ["ops.good", "float32", "m=7"]],
    ]
    first, *records = lines(start(suite, [["HEAD"], ["HEAD"]], turns))
    assert "ops.good forward float32 n=1 on cpu" in first
    assert [record["round"] for record in records[:4]] == [1, 2, 1, 3]
    assert len({record["session"] for record in records}) == 1
    assert all(record["seconds"] == {"throughput": 1e-3} for record in records[:4])
    assert [record["skipped"] for record in records[4:]] == ["the suite has no such case"] * 2
    assert len(samples(only(stored(suite), "n=1"), "ops.good.time_forward")) == 60, "twenty of each process"
    assert len(samples(only(stored(suite), "n=9"), "ops.good.time_forward")) == 20
    assert len(list(read_all(suite.results))) == 4


@slow
def test_processes_of_a_lane_share_a_server_until_it_is_renewed(suite: Suite) -> None:
    suite.add("ops", OPS)
    ask = ["ops.parent"]
    renew: list[Any] = [0, "renew", [0, 1]]
    turns: list[Any] = [
        [0, ask],
        [0, ask],
        [0, ask, 1],
        renew,
        [0, ask, 1],
        renew,
        renew,
        [0, ask],
        [0, ask, 1],
    ]
    parents = [record["detail"] for record in lines(start(suite, [["HEAD"]], turns))[1:]]
    first, again, beside, renewed, *last = parents
    assert first == again
    assert len({first, beside, renewed, *last}) == 5
    for parent in parents:
        assert not Path(f"/proc/{parent}").exists(), "no server is left behind"


def only(result: dict[str, Any], shape: str) -> dict[str, Any]:
    """A result without the samples of other shapes."""
    row = dict(zip(result["result_columns"], result["results"]["ops.good.time_forward"], strict=False))
    shapes = row["params"][2]
    kept = [v if i % len(shapes) == shapes.index(repr(shape)) else None for i, v in enumerate(row["samples"])]
    return {**result, "results": {"ops.good.time_forward": list({**row, "samples": kept}.values())}}


@slow
def test_clocks_that_are_asked_for_are_read_by_one_process(suite: Suite) -> None:
    suite.add("ops", OPS)
    _, record = lines(
        start(suite, [["HEAD"]], [[0, ["ops.good"]]], clocks=["throughput", "latency", "device"])
    )
    assert set(record["seconds"]) == {"throughput", "latency"}, "the CPU has no device clock"
    for name in ("ops.good.time_forward", "ops.good.time_forward_latency"):
        assert len(samples(stored(suite), name)) == 20
    assert len(list(read_all(suite.results))) == 1


@slow
def test_failures_cost_themselves_and_no_sample_that_is_there(suite: Suite) -> None:
    suite.add("ops", OPS)
    turns = [[0, [f"ops.{op}"]] for op in ("worse", "once", "once", "server", "worse", "good")]
    _, *records = lines(start(suite, [["HEAD"]], turns))
    kinds = [record["failure"] for record in records]
    assert kinds[:3] == ["wrong result", None, "crashed"]
    assert kinds[3] is not None
    assert kinds[4:] == ["wrong result", None], "who asks again has it run again, on a new server"
    assert len(samples(stored(suite), "ops.once.time_forward")) == 20, "the process before the crash is kept"
    assert len(list(read_all(suite.results))) == 6


@slow
def test_ctrl_c_keeps_what_was_measured(suite: Suite) -> None:
    suite.add("ops", OPS)
    process = start(suite, [["HEAD"]], [[0, ["ops.good"]], [0, ["ops.hangs"]], [0, ["ops.good"]]])
    assert process.stdout is not None
    _, record = json.loads(process.stdout.readline()), json.loads(process.stdout.readline())
    press_ctrl_c(process)
    assert record["failure"] is None
    assert lines(process) == ["interrupted"]
    assert len(samples(stored(suite), "ops.good.time_forward")) == 20
    assert len(list(read_all(suite.results))) == 1


@slow
@pytest.mark.parametrize(
    ("places", "code", "message"),
    [
        ([["2.99.0"]], 2, "2.99.0"),
        ([["HEAD", "torch-py2.7"]], 3, "torch-py2.7"),
        ([["HEAD", "conda-py3.12"]], 3, "conda-py3.12"),
    ],
)
def test_what_cannot_be_run_is_said_in_a_sentence(
    suite: Suite, places: list[list[str]], code: int, message: str
) -> None:
    suite.add("ops", OPS)
    (error,) = lines(start(suite, places, []))
    assert error[:2] == ["error", code]
    assert message in error[2]


@slow
def test_builds_take_turns_with_environments_of_their_own(suite: Suite, tmp_path: Path) -> None:
    suite.environment["UV_CACHE_DIR"] = str(tmp_path / "uv")
    builds = Builds(suite, Path(suite.environment["ACCEL_MICRO_INDEXES"]))
    (suite.path / "benchmarks" / "ops.py").write_text(BUILD_OPS)
    builds.nightly(1, 1e-3)
    builds.nightly(2, 2e-3)
    turns = [[place, ["ops.plain"]] for place in (0, 1, 1, 0)]
    _, *records = lines(start(suite, [["20261101"], ["20261102"]], turns))
    assert [record["seconds"]["throughput"] for record in records] == [1e-3, 2e-3, 2e-3, 1e-3]
    assert [record["build"][:8] for record in records] == ["20261101", "20261102", "20261102", "20261101"]
    assert [record["round"] for record in records] == [1, 1, 2, 2]
    assert len({record["session"] for record in records}) == 1
    results = builds.results()
    assert {build: len(samples(result)) for build, result in results.items()} == {
        "20261101": 40,
        "20261102": 40,
    }
    headers = suite.machine_file("sessions.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["build"][:8] for line in headers) == ["20261101", "20261102"]
    assert len(suite.machine_file("installs.jsonl").read_text().splitlines()) == 2


def test_results_are_written_as_often_as_that_is_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    time, saves = [100.0], []

    def save(results: Any) -> None:
        saves.append(time[0])
        time[0] += 1.0

    monkeypatch.setattr("accel_micro.asv_plugin.saving.save", save)
    monkeypatch.setattr("time.perf_counter", lambda: time[0])
    station = Station(build=None, environment=None, results=None)  # type: ignore[arg-type]
    for _ in range(100):
        station.save()
        time[0] += 2.0
    assert 4 <= len(saves) <= 6, "writing took a second, so once in fifty"
    station.save(at_once=True)
    assert saves[-1] == time[0] - 1


SWEPT = """
@op(quick=["n=1"], sweep="n=2..64", backward=False)
def swept(t, n):
    if n == 48:
        return "wrong result", f"at {n}"
"""


@slow
def test_sizes_of_a_sweep_leave_records_and_no_result_of_asv(suite: Suite) -> None:
    suite.add("ops", SWEPT)
    turns = [[0, ["ops.swept", "float32", shape]] for shape in ("n=32", "n=32", "n=48", "n=65", "n=1")]
    first, *records = lines(start(suite, [["HEAD"]], turns, clocks=["throughput", "latency"]))
    assert "ops.swept forward float32 n=1 on cpu" in first
    assert not any("n=2 " in case or "n=64 " in case for case in first), "no profile runs them"
    assert [record["round"] for record in records[:2]] == [1, 2]
    assert set(records[0]["seconds"]) == {"throughput", "latency"}
    assert (records[2]["failure"], records[2]["detail"]) == ("wrong result", "at 48")
    assert records[3]["skipped"] == "the suite has no such case"
    shapes = [record.case.shape for record in read_all(suite.results)]
    assert shapes == ["n=32", "n=32", "n=48", "n=1"]
    row = dict(
        zip(stored(suite)["result_columns"], stored(suite)["results"]["ops.swept.time_forward"], strict=False)
    )
    assert row["params"][2] == ["'n=1'"], "parameters are the same whatever is swept"
    assert len([samples for samples in row["samples"] if samples]) == 1
