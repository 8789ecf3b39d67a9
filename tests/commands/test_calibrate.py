"""Calibrating a machine that does not exist: which cases, in which order, until when, and what is kept."""

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from accel_micro.commands import calibrate as calibrating
from accel_micro.commands.calibrate import Request, calibrate, exit_code
from accel_micro.commands.calibrate_cases import FEWEST, MOST, Definition, definitions, how_many, spread
from accel_micro.commands.calibrate_cli import calibrate as command
from accel_micro.commands.calibrate_run import Turn, run
from accel_micro.measure.flags import Flag
from accel_micro.measure.process import Process
from accel_micro.measure.records import Case, Failure, Record
from accel_micro.results.calibrations import latest, read

app = typer.Typer()
app.command("calibrate")(command)

SUITE = [
    Definition("attention.sdpa", ("q=64", "q=1024"), ("float32",), True),
    Definition("attention.decode", ("kv=1024",), ("float32",), False),
    Definition("conv2d.conv3x3", ("n=1", "n=16"), ("float32",), True),
    Definition("matmul.mm", ("m=64", "m=256", "m=1024"), ("float32",), True),
    Definition("optimizer.adamw", ("many", "few"), ("float32",), False),
]


@dataclass
class FakeBench:
    """A machine whose processes take a second of its own clock."""

    results: Path
    devices: Sequence[str] = ("cpu",)
    torch_version: str = "2.13.0"
    level: Callable[[int], float] = lambda number: 0.0
    broken: frozenset[str] = frozenset()
    end_after: int = 10**9
    clock: float = 0.0
    seconds_a_process: float = 1.0
    measured: list[Case] = field(default_factory=list)
    renewed: list[tuple[tuple[int, ...], int]] = field(default_factory=list)
    lanes: list[int] = field(default_factory=list)
    chance: np.random.Generator = field(default_factory=lambda: np.random.default_rng(5))

    def now(self) -> float:
        return self.clock

    def definitions(self, device: str) -> list[Definition]:
        return SUITE

    def renew(self, lanes: Sequence[int]) -> None:
        self.renewed.append((tuple(lanes), len(self.measured)))

    def measure(self, case: Case, lane: int = 0) -> Record:
        self.lanes.append(lane)
        if len(self.measured) >= self.end_after:
            raise KeyboardInterrupt
        self.measured.append(case)
        self.clock += self.seconds_a_process
        whose = {"machine": "vm", "build": "b" * 40, "session": "s", "started": "2026-11-05T10:00:00+00:00"}
        if case.op in self.broken:
            return Record(case, failure=Failure("crashed", "signal 11"), **whose)
        number = sum(each == case for each in self.measured) - 1
        seconds = 1e-3 * math.exp(self.chance.normal(0, 0.01) + self.level(number))
        process = Process(
            device=case.device,
            clock="throughput",
            samples=(seconds,) * 20,
            raw_samples=(seconds,) * 20,
            speeds=(0.8,) * 5 + (0.95,) * 15,
            calls_per_block=10,
            flags=(Flag("noisy"),) if number % 4 == 0 else (),
        )
        return Record(case, clocks={"throughput": process}, **whose)


def in_step(number: int) -> float:
    """Slow in the middle two of A B B A."""
    return 0.05 * (number % 4 in (1, 2))


def test_cases_are_spread_over_families_sizes_and_directions() -> None:
    chosen = spread(SUITE, "cpu")[:8]
    assert [(case.op, case.direction, case.shape) for case in chosen] == [
        ("attention.sdpa", "forward", "q=64"),
        ("conv2d.conv3x3", "backward", "n=1"),
        ("matmul.mm", "forward", "m=64"),
        ("optimizer.adamw", "forward", "many"),
        ("attention.sdpa", "forward", "q=1024"),
        ("conv2d.conv3x3", "forward", "n=16"),
        ("matmul.mm", "forward", "m=1024"),
        ("optimizer.adamw", "forward", "few"),
    ]


@given(st.permutations(SUITE))
def test_the_same_suite_gives_the_same_cases_each_once(suite: list[Definition]) -> None:
    cases = spread(suite, "cpu")
    assert cases == spread(SUITE, "cpu")
    assert len(set(cases)) == len(cases)
    assert all(case.direction == "forward" for case in cases if case.family == "optimizer")


def test_of_many_families_those_with_most_shapes_come_first() -> None:
    small = [Definition(f"{name}.op", ("one",), ("float32",), False) for name in ("a", "b", "z")]
    chosen = spread([*small, *SUITE], "cpu")
    assert chosen[:8] == spread(SUITE, "cpu")[:8]
    assert [case.op for case in chosen[-3:]] == ["a.op", "b.op", "z.op"]


def test_ops_that_the_profile_quick_leaves_out_come_last() -> None:
    slow = Definition("matmul.addmm", ("a", "b", "c", "d"), ("float32",), True, quick=False)
    shapes = [case.shape for case in spread([slow, SUITE[3]], "cpu")]
    assert shapes[:3] == ["m=64", "m=1024", "m=256"]
    assert {"a", "b", "c", "d"} <= set(shapes)


def test_a_second_dtype_is_taken_for_the_large_shapes() -> None:
    cases = spread([Definition("a.b", ("small", "large"), ("float32", "bfloat16"), False)], "cuda")
    assert [(case.dtype, case.shape) for case in cases[:2]] == [("float32", "small"), ("bfloat16", "large")]


def test_ops_are_read_from_what_the_suite_attaches_to_benchmarks() -> None:
    shapes = {"quick": ["m=64", "m=1024"], "standard": ["m=256"], "full": []}
    mm = {"op": "matmul.mm", "shapes": shapes, "dtypes": ["float32", "bfloat16"]}
    nt = {"op": "matmul.mm_nt", "shapes": {**shapes, "quick": []}, "dtypes": ["float32"]}
    facts = [{**mm, "direction": "backward"}, {**mm, "direction": "forward"}, {**nt, "direction": "forward"}]
    assert definitions(facts, "cpu") == [
        Definition("matmul.mm", ("m=64", "m=1024"), ("float32",), True),
        Definition("matmul.mm_nt", ("m=256",), ("float32",), False, quick=False),
    ]
    assert definitions(facts, "cuda")[0].dtypes == ("float32", "bfloat16")


def test_a_suite_without_cases_gives_none() -> None:
    assert spread([], "cpu") == []
    assert spread([Definition("a.b", (), ("float32",), True)], "cpu") == []


@given(st.floats(0.6, 1e5))
def test_short_runs_have_fewer_cases(seconds: float) -> None:
    assert FEWEST <= how_many(seconds) <= how_many(2 * seconds) <= MOST


def test_cases_take_turns_two_processes_at_a_time(tmp_path: Path) -> None:
    bench = FakeBench(tmp_path)
    done = run(
        spread(SUITE, "cpu"),
        bench.measure,
        cases=3,
        seconds=None,
        processes=4,
        renew=bench.renew,
        now=bench.now,
    )
    assert done.stopped == "processes"
    assert bench.renewed == [((0, 1), 0), ((0, 1), 6)], "no server serves a case twice"
    assert bench.lanes == [0, 1] * 6
    ops = [case.family for case in bench.measured]
    turn = ["attention", "attention", "conv2d", "conv2d", "matmul", "matmul"]
    assert ops == turn + turn
    assert [len(case.records) for case in done.cases] == [4, 4, 4]
    assert done.cases[0].times == [0, 1, 6, 7]


@pytest.mark.parametrize("processes", [1, 3, 5])
def test_an_odd_number_of_processes_is_kept_to(tmp_path: Path, processes: int) -> None:
    bench = FakeBench(tmp_path)
    done = run(spread(SUITE, "cpu"), bench.measure, cases=3, seconds=None, processes=processes, now=bench.now)
    assert [len(case.records) for case in done.cases] == [processes] * 3


def test_no_process_is_started_after_the_time(tmp_path: Path) -> None:
    bench = FakeBench(tmp_path)
    done = run(spread(SUITE, "cpu"), bench.measure, cases=3, seconds=10.5, now=bench.now)
    assert (done.stopped, len(bench.measured), done.seconds) == ("time", 11, 11.0)


@pytest.mark.parametrize(("most", "measured", "stopped"), [(30, 30, "time"), (500, 64, "time")])
def test_where_there_are_too_few_comparisons_it_goes_on_for_a_while(
    tmp_path: Path, most: float, measured: int, stopped: str
) -> None:
    bench = FakeBench(tmp_path)
    done = run(
        spread(SUITE, "cpu"),
        bench.measure,
        cases=4,
        seconds=10,
        most_seconds=most,
        comparisons=8,
        now=bench.now,
    )
    assert (len(bench.measured), done.stopped) == (measured, stopped)


def test_by_default_a_slow_machine_gets_enough_time_and_a_fast_one_five_minutes(tmp_path: Path) -> None:
    slow = FakeBench(tmp_path, seconds_a_process=5.0)
    (outcome,) = calibrate(Request(), slow, now=slow.now)
    assert outcome.stored
    assert 300 < slow.clock < 900
    fast = FakeBench(tmp_path)
    calibrate(Request(), fast, now=fast.now)
    assert fast.clock == 300


def test_a_case_without_a_time_is_replaced_by_the_next(tmp_path: Path) -> None:
    bench = FakeBench(tmp_path, broken=frozenset({"conv2d.conv3x3"}))
    done = run(spread(SUITE, "cpu"), bench.measure, cases=3, seconds=None, processes=2, now=bench.now)
    assert {case.case.family for case in done.cases} == {"attention", "matmul", "optimizer"}
    assert [record.case.op for record in done.failed] == ["conv2d.conv3x3"]


def test_where_nothing_has_a_time_it_ends(tmp_path: Path) -> None:
    bench = FakeBench(tmp_path, broken=frozenset(each.op for each in SUITE))
    done = run(spread(SUITE, "cpu"), bench.measure, cases=3, seconds=1000, now=bench.now)
    assert (done.stopped, done.cases) == ("nothing left", ())
    assert len(done.failed) == len(bench.measured) == len(spread(SUITE, "cpu"))


def test_a_bar_is_told_of_every_process_and_about_how_many_there_will_be(tmp_path: Path) -> None:
    bench = FakeBench(tmp_path)
    turns: list[Turn] = []
    run(spread(SUITE, "cpu"), bench.measure, cases=3, seconds=60, now=bench.now, tell=turns.append)
    assert [turn.number for turn in turns] == list(range(1, 61))
    assert all(turn.total >= turn.number for turn in turns)
    assert all(abs(turn.total - 60) <= 1 for turn in turns[1:])


def test_a_run_without_an_end_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="seconds or processes"):
        run([], FakeBench(tmp_path).measure, cases=3, seconds=None)


def test_a_quiet_machine_is_blessed_and_that_is_stored(tmp_path: Path) -> None:
    bench = FakeBench(tmp_path)
    (outcome,) = calibrate(Request(minutes=5, most_minutes=None), bench, now=bench.now)
    assert outcome.stored
    found = outcome.calibration
    assert found is not None
    assert found.blessed, found.why_not
    assert exit_code([outcome]) == 0
    assert latest(tmp_path, "vm", "cpu") == found
    assert (found.processes, len(found.cases), found.torch_version) == (300, 8, "2.13.0")
    assert found.below_full_speed == 0.25
    assert found.flags == {"noisy": sum(math.ceil(case.processes / 4) for case in found.cases)}
    assert found.cases[0].seconds_a_process == 1.0
    assert found.comparisons >= 16


def test_a_machine_disturbed_in_step_is_stored_as_refused(tmp_path: Path) -> None:
    bench = FakeBench(tmp_path, level=in_step)
    (outcome,) = calibrate(Request(minutes=5, most_minutes=None), bench, now=bench.now)
    assert exit_code([outcome]) == 4
    stored = latest(tmp_path, "vm", "cpu")
    assert stored is not None
    assert not stored.blessed
    assert stored.why_not


def test_a_run_too_short_to_tell_replaces_nothing(tmp_path: Path) -> None:
    bench = FakeBench(tmp_path)
    calibrate(Request(minutes=5, most_minutes=None), bench, now=bench.now)
    (outcome,) = calibrate(Request(minutes=0.5, most_minutes=None), bench, now=bench.now)
    assert (outcome.stored, exit_code([outcome])) == (False, 4)
    assert len(list(read(tmp_path, "vm"))) == 1


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    bench = FakeBench(tmp_path, devices=("cpu", "cuda"), end_after=280)
    outcomes = calibrate(Request(minutes=5, most_minutes=None), bench, now=bench.now)
    assert [outcome.device for outcome in outcomes] == ["cpu"]
    assert exit_code(outcomes) == 130
    assert outcomes[0].stored
    stored = latest(tmp_path, "vm", "cpu")
    assert stored is not None
    assert stored.processes == 280


def test_each_device_is_calibrated_by_itself(tmp_path: Path) -> None:
    bench = FakeBench(tmp_path, devices=("cpu", "cuda"))
    outcomes = calibrate(Request(minutes=5, most_minutes=None), bench, now=bench.now)
    assert [(each.device, each.stored) for each in outcomes] == [("cpu", True), ("cuda", True)]
    assert [each.device for each in read(tmp_path, "vm")] == ["cpu", "cuda"]


def test_nothing_timed_exits_with_3(tmp_path: Path) -> None:
    bench = FakeBench(tmp_path, broken=frozenset(each.op for each in SUITE))
    outcomes = calibrate(Request(minutes=5, most_minutes=None), bench, now=bench.now)
    assert exit_code(outcomes) == 3
    assert exit_code([]) == 3
    assert list(read(tmp_path, "vm")) == []


def invoked(monkeypatch: pytest.MonkeyPatch, bench: FakeBench, *arguments: str):  # type: ignore[no-untyped-def]
    @contextlib.contextmanager
    def opened(request: Request) -> Iterator[FakeBench]:
        yield bench

    monkeypatch.setattr(calibrating, "bench", opened)
    return CliRunner().invoke(app, list(arguments))


def test_json_holds_the_calibration_and_its_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = invoked(monkeypatch, FakeBench(tmp_path), "--processes", "40", "--format", "json")
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["calibrations"]
    assert (found["blessed"], found["stored"], found["processes"]) == (True, True, 320)
    assert found["headline"].startswith("vm, cpu, torch 2.13.0: comparisons can be trusted")


def test_text_says_first_whether_it_is_blessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = invoked(monkeypatch, FakeBench(tmp_path, level=in_step), "--processes", "40")
    assert done.exit_code == 4
    assert done.stdout.startswith("! vm, cpu, torch 2.13.0: comparisons cannot be trusted\n")
    assert "What to do" in done.stdout
    assert "calibrations.jsonl" in done.stderr


def test_a_short_run_says_that_it_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = invoked(monkeypatch, FakeBench(tmp_path), "--processes", "3")
    assert done.exit_code == 4
    assert "not enough was measured to tell" in done.stdout
    assert "Not stored for cpu" in done.stderr


def test_what_has_no_time_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = FakeBench(tmp_path, broken=frozenset(each.op for each in SUITE))
    done = invoked(monkeypatch, bench, "--processes", "3")
    assert done.exit_code == 3
    assert "cpu: no case has a time: signal 11" in done.stderr


@pytest.mark.parametrize(
    "arguments", [["--minutes", "0"], ["--processes", "0"], ["--format", "xml"], ["--minutes", "x"]]
)
def test_wrong_use_exits_with_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, list(arguments)).exit_code == 2
