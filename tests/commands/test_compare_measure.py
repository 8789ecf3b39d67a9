"""`accel-micro compare --measure` without asv: who is measured, what becomes of rows, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from accel_micro.asv_plugin.opening import Where
from accel_micro.cli import app
from accel_micro.measure.records import Case, Failure
from tests.comparison.fake_asv import Asv, jitter
from tests.comparison.results_folder import NEW, OLD, Results, case


@pytest.fixture
def out(tmp_path: Path) -> Path:
    results = Results(tmp_path / "results")
    for version, factor in ((OLD.version, 1.0), (NEW.version, 1.3)):
        results.trial(version, case("open"), 1e-5 * factor, processes=1, session=version)
        results.trial(version, case("same"), 1e-5, processes=7, spread=0.1, session="both")
    return tmp_path


def run(
    monkeypatch: pytest.MonkeyPatch, out: Path, asv: Asv, *arguments: str, here: bool = True
) -> tuple[Any, dict[str, Any]]:
    monkeypatch.setattr("accel_micro.asv_plugin.interleaving.interleaved", asv.interleaved)
    monkeypatch.setattr("accel_micro.asv_plugin.machine.is_this", lambda name: here)
    command = [
        "compare",
        OLD.version,
        NEW.version,
        "--measure",
        "--format",
        "json",
        "--out",
        str(out),
        *arguments,
    ]
    done = CliRunner().invoke(app, command)
    return done, json.loads(done.stdout) if done.stdout else {}


def slower(place: Where, case: Case, number: int) -> float:
    return 1e-5 * jitter(number) * (1.1 if place.build == NEW.id else 1)


def test_only_what_is_open_is_measured_and_judged_by_fresh_processes(
    monkeypatch: pytest.MonkeyPatch, out: Path
) -> None:
    asv = Asv(slower)
    done, data = run(monkeypatch, out, asv)
    assert done.exit_code == 0
    assert {turned.op for _, turned in asv.turns} == {case("open").op}
    places = [place.build for place, _ in asv.turns]
    assert places == [OLD.id, NEW.id, NEW.id, OLD.id] * 2
    assert asv.renewed == [(number, [OLD.id, NEW.id]) for number in (0, 2, 4, 6)], (
        "no server serves a pair twice"
    )
    assert {place.environment for place, _ in asv.turns} == {"torch-py3.11"}
    assert asv.options["results"] == out / "results"
    assert asv.options["devices"] == ["cpu"]
    assert asv.options["clocks"] == ["throughput"]
    assert asv.options["machine"] == "workshop"
    rows = {row["op"]: row for row in data["rows"]}
    found = rows[case("open").op]
    assert found["kind"] == "regression"
    assert found["ratio"] == pytest.approx(1.1, rel=0.01), "of fresh processes alone: stored ones said 1.3"
    assert (found["baseline_processes"], found["conditions"]) == (4, "interleaved")
    assert rows[case("same").op]["kind"] == "invariant"
    assert not any("separate sessions" in caution for caution in data["cautions"])


def test_a_failure_leaves_the_row_open_and_says_why(monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
    done, data = run(monkeypatch, out, Asv(slower, failure=Failure("crashed", "ended by SIGSEGV")))
    assert done.exit_code == 0
    (row,) = (row for row in data["rows"] if row["op"] == case("open").op)
    assert row["kind"] == "inconclusive"
    assert row["reason"] == "baseline: crashed: ended by SIGSEGV"


@pytest.mark.parametrize(("at", "kind", "ratio"), [(3, "inconclusive", 1.3), (7, "regression", 1.1)])
def test_ctrl_c_ends_it_with_what_there_is(
    monkeypatch: pytest.MonkeyPatch, out: Path, at: int, kind: str, ratio: float
) -> None:
    done, data = run(monkeypatch, out, Asv(slower, interrupts_at=at))
    assert done.exit_code == 130
    (row,) = (row for row in data["rows"] if row["op"] == case("open").op)
    assert row["kind"] == kind
    assert row["ratio"] == pytest.approx(ratio, rel=0.02), "stored processes count until fresh ones can tell"


def test_a_regression_fails_where_it_shall(monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
    done, _ = run(monkeypatch, out, Asv(slower), "--fail-on", "regression")
    assert done.exit_code == 1


def test_another_machine_cannot_be_measured_here(monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
    asv = Asv(slower)
    done, _ = run(monkeypatch, out, asv, here=False)
    assert done.exit_code == 2
    assert "machine workshop, which is not this one" in done.stderr
    assert asv.turns == []


def test_progress_names_the_case_and_how_much_is_left(monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
    done, _ = run(monkeypatch, out, Asv(slower))
    assert str(case("open")) in done.stderr
    assert "[1/80]" in done.stderr, "forty processes a side at most"
    assert "8 of" in done.stderr
