"""The attempts: those on simulated GPUs find what they should, and would find it if ours were wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from accel_micro.devices import full_speed, store
from accel_micro.devices.base import Call
from accel_micro.devices.mps import Mps
from accel_micro.measure.records import Case, Failure, Record
from benchmarks.harness.reports import itself, metal, naive, precision, throttling, values, warming
from benchmarks.harness.reports.row import Finding, Row
from benchmarks.harness.reports.simulation import own_memory, simulated_gpus, simulated_mps
from tests.devices import simulated_mps as simulation
from tests.fake import Clock, FakeDevice

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "find", [attempt.find for attempt in metal.ATTEMPTS], ids=lambda find: getattr(find, "__name__", "")
)
def test_what_mps_is_reported_to_do_does_not_mislead_ours(find: "type[Finding]") -> None:
    finding = find()  # type: ignore[call-arg]
    assert finding.good, finding


def test_a_timer_that_waits_reads_many_times_one_that_does_not() -> None:
    figures = metal.with_and_without_a_sync().figures
    assert figures["unwaited_seconds"] == pytest.approx(simulation.ENCODE)
    assert figures["waited_seconds"] == pytest.approx(
        simulation.ENCODE + simulation.GPU + simulation.SYNCHRONISE / 10
    )


def test_events_run_backwards_and_pauses_slow_the_gpu() -> None:
    assert metal.events_that_lie().figures["naive_backwards"] > 0
    paused = metal.idle_gaps().figures
    assert paused["naive_seconds"] > 2 * paused["truth_seconds"]


def test_ours_without_a_synchronisation_is_found_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mps, "synchronize", lambda self: None)
    finding = metal.with_and_without_a_sync()
    assert not finding.good
    assert finding.does.startswith("WRONG, 0.4 times the truth")


def test_ours_that_takes_the_fallback_is_found_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mps, "unavailable", lambda self: None)
    finding = metal.fallback_to_the_cpu()
    assert (finding.good, finding.does) == (False, "NOT REFUSED")


def test_ours_that_makes_an_event_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mps, "synchronize", lambda self: torch.mps.Event())
    with pytest.raises(AssertionError, match="never read"):
        metal.an_event_that_is_never_ready()


def test_a_gpu_that_stays_slow_keeps_its_samples_and_is_flagged() -> None:
    finding = throttling.simulated_fall()
    assert finding.good
    assert finding.figures["naive_samples"] == 0
    assert finding.figures["ours_samples"] == 20
    assert any(flag.startswith("low clock (1200 of 2000 MHz)") for flag in finding.figures["flags"])


def test_a_fall_that_nobody_flags_is_found_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_speed, "known", lambda key: None)
    assert throttling.simulated_fall().does == "NOT FLAGGED"


def test_torch_is_as_it_was_after_a_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    before = (torch.cuda, torch.mps.synchronize, os.environ[store.ENVIRONMENT_VARIABLE])
    with simulated_gpus():
        assert torch.cuda is not before[0]
    with simulated_mps(), pytest.raises(ZeroDivisionError):
        1 / 0  # noqa: B018
    assert (torch.cuda, torch.mps.synchronize, os.environ[store.ENVIRONMENT_VARIABLE]) == before


def test_what_a_planted_clock_leaves_behind_is_thrown_away() -> None:
    store.update("speeds", lambda data: data.update(known=[1.0]))
    with own_memory(of_here=True):
        assert store.load("speeds") == {"known": [1.0]}
        store.update("speeds", lambda data: data.update(known=[2.0]))
    assert store.load("speeds") == {"known": [1.0]}
    with own_memory(of_here=False):
        assert store.load("speeds") == {}


def test_the_user_s_own_folder_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(store.ENVIRONMENT_VARIABLE)
    with own_memory(of_here=False):
        assert store.ENVIRONMENT_VARIABLE in os.environ
    assert store.ENVIRONMENT_VARIABLE not in os.environ


def test_nvbench_s_rule_calls_what_differs_by_more_than_its_scatter() -> None:
    steady, moved = [1.0, 1.001, 0.999], [1.01, 1.011, 1.009]
    assert itself.nvbench_says(steady, moved) == "SLOW"
    assert itself.nvbench_says(moved, steady) == "FAST"
    assert itself.nvbench_says(steady, steady) == "SAME"
    assert itself.nvbench_says([0.8, 1.0, 1.2], [0.81, 1.01, 1.21]) == "SAME"


def test_the_planted_clock_falls_and_stays_down() -> None:
    shares = [throttling.falling(probes) for probes in range(30)]
    assert shares == sorted(shares, reverse=True)
    assert (shares[0], shares[-1]) == (1.0, 0.6)
    assert throttling.kept_by_nvbench(shares) == sum(share >= 0.75 for share in shares) < 30


def test_a_call_is_slow_at_first_and_less_with_each() -> None:
    wasted: list[float] = []
    made: list[None] = []
    call = warming.SlowAtFirst(lambda: made.append(None), wasted.append, 1.0, 4)
    for _ in range(6):
        call()
    assert wasted == [1.0, 0.75, 0.5, 0.25]
    assert len(made) == 6


def test_a_fixed_warm_up_is_misled_by_a_call_that_is_slow_for_longer() -> None:
    def read(calls: int) -> float:
        device = FakeDevice(Clock(), host_seconds=1e-3)
        slow = warming.SlowAtFirst(device.call, device.clock.work, 1e-3, calls)
        return naive.fixed_warm_up(device, slow)

    assert read(1) == pytest.approx(1e-3, rel=1e-3)
    assert read(500) > 1.7e-3


def test_ways_are_read_in_turns_and_compared_within_them() -> None:
    device = FakeDevice(Clock())
    speeds = iter([1.0, 1.0, 5.0, 5.0, 2.0, 2.0])
    ways: dict[str, Call] = {"one": lambda: 3.0 * next(speeds), "other": lambda: 2.0 * next(speeds)}
    turns = naive.Turns.read(device, ways, 3)
    assert turns.ratio("one", "other") == 1.5
    assert turns.median("one") == 6.0


@pytest.mark.usefixtures("known_machine")
def test_values_are_compared_on_the_same_op() -> None:
    finding = values.by_value(
        "cpu", "float32", lambda t: _doubled(t(4096)), "4096 numbers", ("zeros", "denormals"), seconds=1e-3
    )
    assert "the same bits each time" in finding.does
    assert {"normal_seconds", "zeros_seconds", "denormals_seconds", "ours_seconds"} <= finding.figures.keys()
    assert finding.figures["ours_over_normal"] > 0


def _doubled(x: torch.Tensor) -> Call:
    return lambda: x * 2


def test_zeros_and_values_that_change_are_told() -> None:
    device = FakeDevice(Clock())
    device.name = "cpu"
    assert values._same_each_time(device, "float32", lambda t: t(64)) == "the same bits each time"
    assert values._same_each_time(device, "float32", lambda t: t.made.append(torch.zeros(8))) == "100 % ZEROS"
    drawn = iter((1.0, 2.0))
    changing = values._same_each_time(
        device, "float32", lambda t: t.made.append(torch.full((8,), next(drawn)))
    )
    assert changing == "NOT THE SAME EACH TIME"


def test_fills_are_what_they_are_called() -> None:
    x = torch.randn(1000)
    assert values.FILLS["zeros"](x).abs().max() == 0
    assert set(values.FILLS["small integers"](x).tolist()) == {-2.0, -1.0, 0.0, 1.0, 2.0}
    tiny = values.FILLS["denormals"](x)
    assert 0 < tiny.max() < torch.finfo(torch.float32).tiny


@pytest.mark.slow
def test_the_command_tries_what_can_be_tried_on_a_cpu(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    numbers = "3,4,5,6,7,8,14,16,18,19,20"
    command = [sys.executable, "-m", "benchmarks.harness", "reports", "--only", numbers, "--out", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    rows = [Row.from_json(_own(row)) for row in json.loads(path.read_text())["rows"]]
    assert len(rows) == 13
    for row in rows:
        assert row.finding is not None, row.problem
        # How near the figures of a busy CPU come to each other is not asserted; what does not depend on it is.
        if row.where.endswith("simulated") or row.number in (4, 16, 20):
            assert row.finding.good, row
    (precision,) = [row for row in rows if row.number == 20]
    assert precision.finding is not None
    assert "float32_matmul_precision" in precision.finding.figures["named"]


def _own(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name not in ("issues", "reported")}


def test_an_honest_op_that_is_refused_is_a_row_to_be_ashamed_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(case: Case, *arguments: object, **named: object) -> Record:
        return Record(case, failure=Failure("implausible", "twice the peak"))

    monkeypatch.setattr(precision, "measure_case", refused)
    finding = precision.flipped("cpu", 8, precision._medium, "medium")
    assert not finding.good
    assert finding.does == "REJECTS AN HONEST TIME: implausible: twice the peak"
