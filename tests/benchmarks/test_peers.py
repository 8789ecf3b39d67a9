"""The harness of peers without a GPU: what fails costs itself, budgets hold, and the table says what was read."""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accel_micro.selfcheck.peers.reading import read_case
from accel_micro.selfcheck.peers.stopwatches import Stopwatch
from accel_micro.selfcheck.truth import KERNELS, Reading, Timed, errors
from benchmarks.harness import nvbench, peers
from benchmarks.harness.peers import chosen_again, families_of, print_table, take_nvbench


def failing(call: Any) -> float:
    raise RuntimeError("cannot be captured\nlong story")


def test_a_harness_that_raises_costs_itself_alone() -> None:
    row = Timed("a.x")
    truths = iter([10e-6, 10.2e-6, 10.1e-6, 10.3e-6])
    watches = [
        Stopwatch("first", "", lambda call: 11e-6),
        Stopwatch("graph", "", failing, "queued"),
        Stopwatch("cold", "", lambda call: 24e-6, "cold"),
    ]
    states = {"queued": lambda: 9e-6, "cold": lambda: 20e-6, "unseen": lambda: failing(None)}
    read_case(row, watches, lambda: None, lambda: next(truths), states)
    assert row.facts == {"queued": 9e-6, "cold": 20e-6}
    assert row.refused == {"graph": "RuntimeError: cannot be captured"}
    assert row.readings["first"].truth == pytest.approx(10.1e-6)
    assert row.readings["cold"].truth == pytest.approx(10.2e-6)
    assert row.readings["cold"].error_in_regime == pytest.approx(0.2)


def test_a_call_of_which_the_witness_sees_nothing_is_read_all_the_same() -> None:
    row = Timed("a.x")
    read_case(row, [Stopwatch("first", "", lambda call: 5e-6)], lambda: None, lambda: 0.0, {})
    assert row.readings["first"].seconds == 5e-6 and row.readings["first"].is_steady


def test_the_witness_is_read_once_for_harnesses_that_are_read_together() -> None:
    row = Timed("a.x")
    order: list[str] = []

    def watch(name: str) -> Stopwatch:
        return Stopwatch(name, "", lambda call: float(len(order)) if order.append(name) is None else 0.0)

    def truth() -> float:
        order.append("truth")
        return 10e-6

    read_case(row, [watch(name) for name in "abcd"], lambda: None, truth, {}, together=3)
    assert order == ["truth", "a", "b", "c", "truth", "d", "truth"]
    assert list(row.readings) == list("abcd")


def test_cases_are_grouped_by_family() -> None:
    keys = [("matmul.mm", "forward", "float32", "m=1"), ("conv2d.conv", "forward", "float32", "n=1")]
    assert list(families_of([*keys, keys[0]])) == ["matmul", "conv2d"]


def test_what_is_read_again_comes_from_every_band() -> None:
    lengths = [1e-6, 2e-6, 4e-6, 5e-6, 6e-6, 20e-6, 30e-6, 40e-6]
    rows = [Timed(f"a.{place}", seconds) for place, seconds in enumerate(lengths)]
    assert [row.unit_seconds for row in chosen_again(rows, KERNELS, 4)] == [30e-6, 5e-6, 2e-6, 20e-6]
    assert chosen_again([], KERNELS, 4) == []


class FakeCupti:
    kernels = 2.0

    def plain(self) -> float:
        return 20e-6

    def queued(self) -> float:
        return 19e-6

    def cold(self) -> float:
        return 30e-6


@contextmanager
def on_cuda(key: Any, classes: Any, device_name: str, effort: peers.Effort) -> Iterator[Any]:
    if key[0] == "matmul.bmm":
        raise RuntimeError("out of memory")
    assert key[0] in classes
    yield None, lambda: None, FakeCupti()


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from accel_micro.selfcheck.peers import stopwatches

    watches = [Stopwatch("timeit", "", lambda call: 5e-6), Stopwatch("graph", "", failing)]
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "a card")
    monkeypatch.setattr(peers, "_on_cuda", on_cuda)
    monkeypatch.setattr(peers, "usable", lambda device: True)
    monkeypatch.setattr(peers, "nvbench_absent", lambda: "cuda.bench is not installed")
    mine = SimpleNamespace(stopwatches=[Stopwatch("ours", "", lambda c: 20.2e-6)], facts={"over_larger": 0.9})
    monkeypatch.setattr(stopwatches, "Ours", lambda device, budget=0, brief=False: mine)
    monkeypatch.setattr(stopwatches, "stopwatches", lambda kind, brief: watches)


def run(tmp_path: Path, **options: Any) -> dict[str, Any]:
    given = {"device": "cuda", "profile": "quick", "bench": "", "repeats": 0, "budget": 60.0, "brief": False}
    given |= {"after": [], "files": [], "harness": ""}
    peers.peers(argparse.Namespace(**{**given, **options}, out=str(tmp_path / "out.json")))
    return json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("no_gpu")
def test_cases_whose_inputs_should_be_cold_are_left_out(tmp_path: Path) -> None:
    """They need several sets of inputs, which no other harness has."""
    found = run(tmp_path, profile="standard", bench=r"pointwise\.add forward float32")
    names = [case["name"] for case in found["cases"]]
    assert names and not any("cache=cold" in name for name in names)


@pytest.mark.usefixtures("no_gpu")
def test_only_the_harnesses_that_are_asked_for_read(tmp_path: Path) -> None:
    found = run(tmp_path, bench=r"pointwise\.add forward", harness="^ours")
    assert found["cases"] and all(set(case["readings"]) == {"ours"} for case in found["cases"])
    assert not any(case["refused"] for case in found["cases"])


def test_who_read_while_the_work_itself_changed_reads_again() -> None:
    row = Timed("a.x", 10e-6)
    truths = iter([10e-6, 12e-6, 12.1e-6, 9e-6, 12e-6])
    reads = iter([9e-6, 12e-6, 11e-6, 11e-6])
    watches = [Stopwatch(name, "", lambda call: next(reads)) for name in ("steady", "never")]
    read_case(row, watches, lambda: None, lambda: next(truths), {})
    assert row.readings["steady"].seconds == 12e-6 and row.readings["steady"].is_steady
    assert not row.readings["never"].is_steady
    again = Timed.from_json(json.loads(json.dumps(row.to_json())))
    found = {one.harness: one for one in errors([again], KERNELS, ["steady", "never"])}
    assert (found["steady"].cases, found["steady"].unsteady) == (1, 0)
    assert (found["never"].cases, found["never"].unsteady) == (0, 1)


def test_the_state_in_which_a_harness_calls_is_read_right_behind_it() -> None:
    row = Timed("a.x", 10e-6)
    order: list[str] = []
    queued = iter([12e-6, 9e-6, 9.1e-6])  # the first reading brings the faster of two speeds about

    def read(name: str, seconds: float) -> Stopwatch:
        return Stopwatch(
            name, "", lambda call: order.append(name) or seconds, "queued" if name == "ours" else ""
        )

    def witness() -> float:
        order.append("queued")
        return next(queued)

    watches = [read("ours", 9.0e-6), read("other", 20e-6)]
    read_case(row, watches, lambda: None, lambda: 10e-6, {"queued": witness}, together=2)
    assert order == ["queued", "ours", "queued", "ours", "queued", "other"]
    assert row.readings["ours"].regime == pytest.approx(9.05e-6)
    assert row.readings["other"].regime == 0.0
    assert row.facts == {"queued": 12e-6}


@pytest.mark.usefixtures("no_gpu")
def test_all_families_are_read_and_failing_cases_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = run(tmp_path, repeats=3)
    out = capsys.readouterr().out
    assert {case["name"].partition(".")[0] for case in facts["cases"]} == {
        "matmul", "conv2d", "attention", "optimizer", "pointwise"
    }  # fmt: skip
    assert "matmul.bmm forward float32" in out
    assert "RuntimeError: out of memory" in out
    assert f"{len(facts['cases'])} of {len(facts['cases'])} cases within 15 %, median 0.900" in out
    assert f"graph refused {len(facts['cases'])}: RuntimeError: cannot be captured" in out
    assert "cuda.bench is not installed" in out
    ours, timeit, graph = facts["errors"]
    assert ours["middle"] == pytest.approx(0.01)
    assert timeit["middle"] == pytest.approx(0.75)
    assert graph["cases"] == 0
    again = [case for case in facts["cases"] if case["again"]]
    assert len(again) == 4
    assert all(len(case["again"]["ours"]) == 3 for case in again)


@pytest.mark.usefixtures("no_gpu")
def test_a_later_run_goes_on_where_files_of_earlier_ones_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(tmp_path, bench=r"^matmul\.", repeats=2)
    file = tmp_path / "first.json"
    file.write_text(json.dumps(first), encoding="utf-8")
    read: list[str] = []
    whole = peers._cuda_case

    def noted(key: Any, *rest: Any) -> Any:
        read.append(" ".join(key))
        return whole(key, *rest)

    monkeypatch.setattr(peers, "_cuda_case", noted)
    second = run(tmp_path, after=[str(file)], repeats=2)
    known = [case["name"] for case in first["cases"]]
    assert not set(read) & set(known) and len(read) > len(known)
    assert [case["name"] for case in second["cases"]][: len(known)] == known
    assert f"{len(known)} were read earlier" in capsys.readouterr().out
    repeated = {case["name"] for facts in (first, second) for case in facts["cases"] if case["again"]}
    assert len(repeated) == 8, "those that were repeated are not repeated again while others wait"
    assert run(tmp_path, after=[str(file)], budget=0.0)["errors"] == first["errors"]


@pytest.mark.usefixtures("no_gpu")
def test_cuda_bench_begins_with_all_families_also_when_they_were_read_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for family in ("matmul", "conv2d", "pointwise"):
        file = tmp_path / f"{family}.json"
        file.write_text(json.dumps(run(tmp_path, bench=rf"^{family}\.")), encoding="utf-8")
        files.append(str(file))
    asked: list[str] = []
    monkeypatch.setattr(peers, "nvbench_absent", lambda: None)
    monkeypatch.setattr(
        peers, "_read_nvbench", lambda rows, *rest: asked.extend(row.name.partition(".")[0] for row in rows)
    )
    facts = run(tmp_path, bench=r"^(matmul|conv2d|pointwise)\.", after=files, harness="^cuda")
    assert len(asked) == len(facts["cases"]) > 6
    assert set(asked[:3]) == {"matmul", "conv2d", "pointwise"}


@pytest.mark.usefixtures("no_gpu")
def test_files_of_several_processes_make_one_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = run(tmp_path, bench=r"^matmul\.")
    part = json.loads(json.dumps(whole))
    part["cases"] = part["cases"][:1]
    part["cases"][0]["readings"]["ours"]["seconds"] *= 1.5
    for name, data in (("whole", whole), ("part", part), ("other", {**part, "torch": "1.0"})):
        (tmp_path / name).write_text(json.dumps(data), encoding="utf-8")
    capsys.readouterr()
    peers.peers(argparse.Namespace(files=[str(tmp_path / "whole"), str(tmp_path / "part")]))
    printed = capsys.readouterr().out
    cases = len(whole["cases"])
    assert f"{cases} cases in 2 processes, 1 of them in more than one" in printed
    (row,) = [line.split() for line in printed.splitlines() if line.startswith("ours ")]
    assert row[:2] == ["ours", str(cases + 1)] and row[8] == "+51.5", "the worst of any process"
    assert re.search(r"ours +1 cases, median  40.00 %, worst   40.0 %  matmul", printed)
    assert re.search(r"timeit +1 cases, median   0.00 %", printed)
    with pytest.raises(SystemExit, match=r"not of one card and torch: a card, torch 1\.0, a card, torch 2"):
        peers.peers(argparse.Namespace(files=[str(tmp_path / "whole"), str(tmp_path / "other")]))


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "is no file of this command"),
        ("nothing", "is no file of this command"),
        ('{"cases": [], "card": "another", "torch": "1.0"}', "is of another with torch 1.0, not of a card"),
    ],
)
def test_files_of_something_else_are_refused(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "file.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match=says):
        run(tmp_path, after=[str(file)])


@pytest.mark.usefixtures("no_gpu")
def test_no_budget_reads_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, budget=0.0)["cases"] == []
    assert "0 cases in" in capsys.readouterr().out


def test_what_cuda_bench_read_is_entered_with_its_own_witness() -> None:
    result = {
        "benchmarks": [
            {
                "states": [
                    {
                        "axis_values": [{"name": "case", "value": "1"}],
                        "summaries": [
                            {"tag": "nv/cold/time/gpu/mean", "data": [{"name": "value", "value": "1.5e-05"}]},
                            {"tag": "nv/cold/sample_size", "data": [{"name": "value", "value": "3000"}]},
                            {"tag": "nv/batch/time/gpu/mean", "data": [{"name": "value", "value": "1e-05"}]},
                        ],
                    },
                    {"axis_values": [{"name": "case", "value": "0"}], "summaries": None},
                ]
            }
        ]
    }
    assert nvbench.read_states(result) == {1: {"cold": 1.5e-5, "batch": 1e-5}, 0: {}}
    row = Timed("a.x", facts={"cold": 1.5e-5})
    take_nvbench(row, {"truth": 1e-5, "cold": 1.5e-5})
    assert row.readings["cuda.bench, cold"].error == pytest.approx(0.5)
    assert row.readings["cuda.bench, cold"].error_in_regime == pytest.approx(0.0)
    assert row.refused == {"cuda.bench, batch": "it read nothing"}


@pytest.mark.parametrize(("device", "card"), [("cuda", "0"), ("cuda:1", "1")])
@pytest.mark.parametrize(("seconds", "begun"), [("60", {0, 1, 2}), ("0", set())])
def test_cuda_bench_skips_what_begins_after_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: str, begun: set[int], device: str, card: str
) -> None:
    skipped: list[str] = []

    class State:
        def __init__(self, number: int) -> None:
            self.number = number

        def get_int64(self, name: str) -> int:
            return self.number

        def get_stream(self) -> Any:
            raise RuntimeError("no card")

        def skip(self, reason: str) -> None:
            skipped.append(reason)

    def run_all(arguments: list[str]) -> None:
        assert arguments[arguments.index("--devices") + 1] == card
        for number in range(3):
            registered[0](State(number))
        Path(arguments[arguments.index("--json") + 1]).write_text('{"benchmarks": [{"states": []}]}')

    registered: list[Any] = []

    def register(case: Any) -> Any:
        registered.append(case)
        return SimpleNamespace(add_int64_axis=lambda name, values: None)

    bench = SimpleNamespace(register=register, run_all_benchmarks=run_all)
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(bench=bench))
    monkeypatch.setitem(sys.modules, "cuda.bench", bench)
    keys = [("matmul.mm", "forward", "float32", f"m={size}") for size in (1, 2, 3)]
    todo, done = tmp_path / "todo.json", tmp_path / "done.json"
    todo.write_text(json.dumps(keys), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["nvbench", device, str(todo), str(done), seconds, "brief"])
    nvbench.main()
    read = json.loads(done.read_text(encoding="utf-8"))
    assert set(read) == {" ".join(keys[number]) for number in begun}
    assert all("no card" in one["refused"] for one in read.values())
    assert skipped == ["no card"] * len(begun) + ["no time is left"] * (3 - len(begun))


def test_the_table_has_a_row_for_each_harness_and_band(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        Timed("a.x", 20e-6, {"ours": Reading(20.2e-6, 20e-6, spent=1.0)}, {"graph": "no"}),
        Timed("a.y", 5e-6, {"ours": Reading(4.5e-6, 5e-6, spent=1.0)}, again={"ours": [1.0, 1.1]}),
    ]
    print_table(rows, KERNELS, ["ours", "graph"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["ours", "1", "0", "0", "1.00", "%", "1.00", "%", "+1.0", "%", "+1.0", "%", "1.00", "a.x"] in lines
    assert [
        "ours",
        "1",
        "0",
        "0",
        "10.00",
        "%",
        "10.00",
        "%",
        "-10.0",
        "%",
        "-10.0",
        "%",
        "1.00",
        "a.y",
    ] in lines
    assert ["graph", "refused", "1:", "no"] in lines
    assert ["ours", "9.52", "%", "of", "2", "runs"] in lines
    assert not any("shorter kernels" in " ".join(line) for line in lines)


def test_on_the_cpu_spins_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from accel_micro.commands import selfcheck_truth
    from tests.selfcheck.checks import spins

    monkeypatch.setattr(selfcheck_truth, "read_spins", lambda budget, tell: spins())
    facts = run(tmp_path, device="cpu")
    (readings,) = facts.values()
    assert len(readings["ours"]) == 3
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["ours", "0.10", "%", "+0.20", "%", "1.90", "%", "0.10", "%", "3"] in lines
