"""The real asv on a tiny suite whose ops answer at once, or do not answer at all."""

import itertools
import json
import re
import signal
import time
from typing import Any

import pytest

from accel_micro.measure.records import Record, read
from tests.asv_plugin.conftest import Suite, press_ctrl_c, wait_for

pytestmark = pytest.mark.slow

GOOD = """
@op(quick=["n=1", "n=2"], full=["n=3"])
def good(t, n):
    pass
"""

BAD = """
@op(quick=["n=1"], backward=False)
def a_wrong(t, n):
    return "wrong result", "relative error 1"


@op(quick=["n=1"], backward=False)
def b_killed(t, n):
    os.kill(os.getpid(), 9)


@op(quick=["n=1"], backward=False)
def c_kills_server(t, n):
    os.kill(os.getppid(), 9)
    time.sleep(30)


@op(quick=["n=1"], backward=False)
def d_hangs(t, n):
    time.sleep(100)


@op(quick=["n=1"], backward=False)
def e_memory(t, n):
    raise MemoryError("none left")


@op(quick=["n=1"], backward=False, unsupported=lambda **_: "needs another moon")
def f_skipped(t, n):
    raise AssertionError


@op(quick=["n=1"], backward=False)
def g_exits(t, n):
    raise SystemExit("so there")


@op(quick=["n=1"], backward=False)
def h_good(t, n):
    pass


d_hangs.timeout = 1
"""


def stored(suite: Suite) -> dict[str, dict[str, Any]]:
    """asv's own results, by benchmark and column."""
    data = json.loads(suite.machine_file("*-existing*.json").read_text())
    return {
        name: dict(zip(data["result_columns"], row, strict=False)) for name, row in data["results"].items()
    }


def records(suite: Suite) -> list[Record]:
    return list(read(suite.machine_file("*.processes.jsonl")))


def numbers(values: list[float | None]) -> list[float | None]:
    """Without those that were not run."""
    return [value for value in values if value is None or value == value]


def test_plain_run_saves_samples_and_records(suite: Suite) -> None:
    suite.add("ops", GOOD)
    done = suite.asv("run", "-a", "rounds=2")
    assert done.code == 0, done.output
    assert "2.13" in done.output or "torch commit" in done.output
    assert "n/a" not in done.output
    assert "(+58 not run here)" in done.output
    results = stored(suite)
    assert set(results) == {"ops.good.time_forward", "ops.good.time_backward"}
    for row in results.values():
        lengths = [len(samples) for samples in row["samples"] if samples]
        assert lengths == [40, 40]
        assert len(numbers(row["result"])) == 2
    found = records(suite)
    assert len(found) == 8
    assert {r.round for r in found} == {1, 2}
    (header,) = map(json.loads, suite.machine_file("sessions.jsonl").read_text().splitlines())
    assert {r.session for r in found} == {header["session"]}
    assert header["host"]
    assert header["torch"]["build"]["version"]
    assert {(r.build, r.machine, r.environment) for r in found} == {
        (header["build"], header["machine"], header["environment"])
    }

    again = suite.asv(
        "run", "-E", "existing", "--set-commit-hash", "HEAD", "--record-samples", "-b", "forward"
    )
    assert again.code == 0, again.output
    lengths = [len(s) for s in stored(suite)["ops.good.time_backward"]["samples"] if s]
    assert lengths == [40, 40], "results of unselected benchmarks are kept"

    for name in ("HEAD", "release", header["build"][:10]):
        shown = suite.asv("show", name)
        assert shown.code == 0
        assert "time_forward" in shown.output
        assert "n/a" not in shown.output
    assert header["build"][:8] in suite.asv("show").output
    compared = suite.asv("compare", "HEAD", header["build"])
    assert compared.code == 0
    assert "ops.good.time_forward('cpu', 'float32', 'n=2')" in compared.output
    assert "n/a" not in compared.output
    assert suite.asv("check", "-E", "existing").code == 0
    assert (
        "needs an environment for each build" in suite.asv("find", "release", "good", "-E", "existing").output
    )
    assert "no release build before" in suite.asv("continuous", "HEAD").output

    published = suite.asv("publish")
    assert published.code == 0, published.output
    assert "Couldn't find" not in published.output
    assert "Skipping results" not in published.output
    page = (suite.path / "html" / "index.html").read_text()
    assert not re.search(r"""(src|href)=["'](https?:)?//""", page)
    assert f'id="{header["build"]}"' in (suite.path / "html" / "builds.html").read_text()
    index = json.loads((suite.path / "html" / "index.json").read_text())
    assert list(index["revision_to_hash"].values()) == [header["build"]]
    assert index["params"]["python"] and "/" not in index["params"]["python"][0]


def test_each_failure_costs_its_own_case(suite: Suite) -> None:
    suite.add("bad", BAD)
    done = suite.asv("run", "-a", "rounds=2")
    assert done.code == 2, done.output
    found = {r.case.op.removeprefix("bad."): r for r in records(suite)}
    kinds = {op: r.failure.kind for op, r in found.items() if r.failure is not None}
    assert kinds == {
        "a_wrong": "wrong result",
        "b_killed": "crashed",
        "c_kills_server": "crashed",
        "d_hangs": "timed out",
        "e_memory": "out of memory",
        "g_exits": "failed",
    }
    failures = {op: r.failure.detail for op, r in found.items() if r.failure is not None}
    assert "SIGKILL" in failures["b_killed"]
    assert "fork server died" in failures["c_kills_server"]
    assert failures["g_exits"] == "SystemExit: so there"
    assert found["f_skipped"].skipped == "needs another moon"
    assert found["h_good"].failure is None
    results = stored(suite)
    assert numbers(results["bad.h_good.time_forward"]["result"]) == [pytest.approx(1.0095e-3)]
    assert numbers(results["bad.f_skipped.time_forward"]["result"]) == []
    for op in kinds:
        assert None in (results[f"bad.{op}.time_forward"]["result"] or [None])
        assert f"bad.{op} forward float32 n=1 on cpu: {kinds[op]}" in done.output
    assert len(records(suite)) == len(found) + 2, "what failed is not tried again; skipped and good are"
    assert "Traceback" not in done.output


def test_one_process_answers_all_clocks(suite: Suite) -> None:
    suite.add("ops", GOOD)
    done = suite.asv("run", "-b", "good.time_forward.*float32", "-a", "rounds=1", profile="full")
    assert done.code == 0, done.output
    assert [sorted(r.clocks) for r in records(suite)] == [["latency", "throughput"]] * 3
    results = stored(suite)
    for name in ("ops.good.time_forward", "ops.good.time_forward_latency"):
        assert len(numbers(results[name]["result"])) == 3


@pytest.mark.parametrize("launch", ["auto", "spawn"])
def test_ctrl_c_keeps_what_was_measured(suite: Suite, launch: str) -> None:
    suite.add(
        "ops",
        """
        @op(quick=["n=1", "n=2", "n=3", "n=4"], backward=False)
        def slow(t, n):
            if n == 3:
                time.sleep(100)

        @op(quick=["n=1"], backward=False)
        def zero(t, n):
            pass
        """,
    )
    first = suite.asv("run", "-b", "zero", "-b", "n=[24]")
    assert first.code == 0, first.output
    process = suite.start("run", "--launch-method", launch)
    wait_for(lambda: len(records(suite)) == 3 + 2)
    time.sleep(0.5)
    press_ctrl_c(process)
    output = process.communicate(timeout=30)[0]
    assert process.returncode == 1
    assert "interrupted; 2 cases are saved" in output
    assert re.search(r"ops\.slow\.time_forward +interrupted", output), output
    assert "ops.zero.time_forward" not in output, "the next one is not announced"
    assert "Traceback" not in output
    results = stored(suite)
    assert len(numbers(results["ops.slow.time_forward"]["result"])) == 3, "n=1, 2 are new, n=4 is from before"
    assert len(numbers(results["ops.zero.time_forward"]["result"])) == 1


def test_kill_9_loses_at_most_the_benchmark_in_flight(suite: Suite) -> None:
    suite.add(
        "ops",
        """
        @op(quick=["n=1"], backward=False)
        def a(t, n):
            pass

        @op(quick=["n=1"], backward=False)
        def b(t, n):
            time.sleep(100)
        """,
    )
    process = suite.start("run")
    wait_for(lambda: bool(list(suite.results.glob("*/*.processes.jsonl"))))
    wait_for(lambda: bool(list(suite.results.glob("*/*-existing*.json"))))
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert len(numbers(stored(suite)["ops.a.time_forward"]["result"])) == 1


def test_a_second_run_is_told_who_measures(suite: Suite) -> None:
    suite.add(
        "ops",
        """
        @op(quick=["n=1", "n=2"], backward=False)
        def sleeps(t, n):
            if n == 2:
                time.sleep(100)
        """,
    )
    first = suite.start("run")
    wait_for(lambda: bool(list(suite.results.glob("*/*.processes.jsonl"))))
    second = suite.asv("run")
    press_ctrl_c(first)
    first.communicate(timeout=30)
    assert second.code == 3
    assert f"cpu is being measured by process {first.pid} (" in second.output
    assert suite.asv("run", "-b", "n=1").code == 0


def test_quick_is_not_saved(suite: Suite) -> None:
    suite.add("ops", GOOD)
    done = suite.asv("run", "--quick")
    assert done.code == 0, done.output
    assert not list(suite.results.glob("*/*-existing*.json"))
    assert not list(suite.results.glob("*/*.processes.jsonl"))


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["-b", "nothing"], {}, "no benchmark matches nothing; `accel-micro ops` lists the ops"),
        (["-b", "("], {}, "'(' is no regular expression: missing )"),
        (["1.0.0"], {}, "no build is called '1.0.0'; newest known: "),
        ([], {"profile": "fast"}, "ACCEL_MICRO_PROFILE: unknown profile 'fast'; known: quick"),
        ([], {"devices": "gpu"}, "unknown device 'gpu'; known: cpu"),
        (["-b", "float64"], {}, "profile quick does not run float64 on cpu ("),
        ([], {"devices": "xpu"}, "(96 cases)"),
    ],
)
def test_bad_input_gets_a_sentence(
    suite: Suite, arguments: list[str], environment: dict[str, str], message: str
) -> None:
    suite.add("ops", GOOD)
    done = suite.asv("run", *arguments, **environment)
    assert done.code != 0
    assert message in done.output
    assert "Traceback" not in done.output


def test_real_ops_are_measured(suite: Suite) -> None:
    suite.add(
        "real",
        """
        @op(quick=["n=8"], backward=False)
        def add(t, n):
            a, b = t(n), t(n)
            return lambda: a + b


        @op(quick=["n=8"], backward=False)
        def too_big(t, n):
            return lambda: torch.empty(2**50)


        @op(quick=["n=8"], backward=False)
        def wrong(t, n):
            a = t(n)
            return lambda: a + (0 if t.reference else 1)
        """,
        fake=False,
    )
    suite.asv("run")
    add, too_big, wrong = records(suite)
    assert len(add.clocks["throughput"].samples) == 20
    assert add.clocks["throughput"].calls_per_block > 1, "asv_runner would time single calls"
    assert too_big.failure is not None and too_big.failure.kind == "out of memory"
    assert wrong.failure is not None and wrong.failure.kind == "wrong result"


def test_cold_cases_are_measured_beside_hot_ones(suite: Suite) -> None:
    suite.add(
        "real",
        """
        @op(quick=["n=1000000"], cold=["n=1000000"], backward=False)
        def add(t, n):
            a, b = t(n), t(n)
            return lambda: a + b


        @op(standard=["n=8"], cold=["n=8"], backward=False)
        def too_small(t, n):
            a = t(n)
            return lambda: a + a
        """,
        fake=False,
    )
    suite.asv("run", profile="quick")
    assert [record.case.shape for record in records(suite)] == ["n=1000000"], "quick runs none"
    done = suite.asv("run", profile="standard")
    assert done.code == 0, done.output
    # the latest of each case
    by_shape = {(r.case.op, r.case.shape): r for r in records(suite) if r.case.dtype == "float32"}
    cold = by_shape["real.add", "n=1000000 cache=cold"]
    assert cold.cold is not None and cold.cold.sets * cold.cold.read_bytes > 2 * cold.cold.cache_bytes
    assert len(cold.clocks["throughput"].samples) == 20
    assert by_shape["real.add", "n=1000000"].cold is None
    assert "4096 are the most" in str(by_shape["real.too_small", "n=8 cache=cold"].skipped)
    result = stored(suite)["real.add.time_forward"]
    shapes = result["params"][2]
    assert shapes == ["'n=1000000'", "'n=1000000 cache=cold'"]
    timed = dict(zip(itertools.product(*result["params"]), result["result"], strict=True))
    assert all(timed["'cpu'", "'float32'", shape] > 0 for shape in shapes)
    table = suite.asv("show", "--details", records(suite)[0].build).output
    assert "n=1000000 cache=cold" in table


def test_forking_is_faster_than_spawning(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    shapes = ", ".join(f'"n={n}"' for n in range(12))
    suite.add("ops", f"@op(quick=[{shapes}])\ndef good(t, n):\n    pass\n")

    def seconds(method: str) -> float:
        began = time.monotonic()
        done = suite.asv("run", "--launch-method", method)
        assert done.code == 0, done.output
        return time.monotonic() - began

    forked, spawned = seconds("forkserver"), seconds("spawn")
    with capsys.disabled():
        print(
            f"\nasv run, 24 cases: spawn {spawned:.1f} s, forkserver {forked:.1f} s, ratio {spawned / forked:.1f}"
        )
    assert spawned / forked > 2
