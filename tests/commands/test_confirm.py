"""`accel-micro compare --confirm` without asv: what is measured, what becomes of proposals, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from accel_micro.asv_plugin.opening import Where
from accel_micro.cli import app
from accel_micro.commands.confirm import outcome_of
from accel_micro.measure.records import Case
from accel_micro.stats.verdict import Verdict
from tests.comparison.fake_asv import Asv, jitter
from tests.comparison.test_history import CASES, nightly, write

STEPS = {"mm": {14: 1.06}, "add": {14: 0.8}}


def run(
    monkeypatch: pytest.MonkeyPatch,
    out: Path,
    asv: Asv,
    *arguments: str,
    here: bool = True,
    format: str = "json",
) -> tuple[Any, dict[str, Any]]:
    monkeypatch.setattr("accel_micro.asv_plugin.interleaving.interleaved", asv.interleaved)
    monkeypatch.setattr("accel_micro.asv_plugin.machine.is_this", lambda name: here)
    command = ["compare", "--confirm", "--format", format, "--out", str(out), *arguments]
    done = CliRunner().invoke(app, command)
    data = json.loads(done.stdout) if done.stdout and format == "json" else {}
    return done, {
        name: row for row in data.get("proposals", []) for name in CASES if CASES[name].op == row["op"]
    }


def only_mm(place: Where, case: Case, number: int) -> float:
    """The matrix product is slower since the 14th; what was stored of the sum was the machine's doing."""
    slower = case == CASES["mm"] and place.build >= nightly(14).id
    return 1e-5 * jitter(number) * (1.06 if slower else 1)


def test_what_is_so_is_confirmed_and_what_is_not_is_refuted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(tmp_path / "results", steps=STEPS)
    asv = Asv(only_mm)
    done, found = run(monkeypatch, tmp_path, asv)
    assert done.exit_code == 0
    assert found["mm"]["outcome"] == "confirmed"
    assert found["mm"]["settlement"]["ratio"] == pytest.approx(1.06, rel=0.01)
    assert found["mm"]["settlement"]["processes"] == 4
    assert found["add"]["outcome"] == "refuted"
    assert found["add"]["settlement"]["kind"] == "invariant"
    assert found["mm"]["settle"] == "", "nothing is left to settle"
    assert {place.build for place, _ in asv.turns} >= {nightly(13).id, nightly(14).id}
    assert {place.environment for place, _ in asv.turns} == {"env"}
    assert asv.options["machine"] == "workshop"
    assert asv.options["clocks"] == ["throughput"]


def test_people_read_what_became_of_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write(tmp_path / "results", steps=STEPS)
    done, _ = run(monkeypatch, tmp_path, Asv(only_mm), format="table")
    assert "Measured anew: 1 confirmed, 1 refuted." in done.stdout
    assert "       confirmed: +6.0 % [" in done.stdout
    assert "       refuted: +0.0 % [" in done.stdout
    assert "4 processes a side, equal within the tolerance" in done.stdout
    assert "--measure" not in done.stdout
    done, _ = run(monkeypatch, tmp_path, Asv(only_mm), format="markdown")
    assert "| fate | measured anew |" in done.stdout
    assert "| confirmed: +6.0 % " in done.stdout


@pytest.mark.parametrize(
    ("asv", "code"),
    [(Asv(only_mm), 1), (Asv(lambda place, case, number: 1e-5 * jitter(number)), 0),
     (Asv(only_mm, lacking={nightly(13).id: "it is gone", nightly(14).id: "it is gone"}), 4)],
)  # fmt: skip
def test_exit_codes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asv: Asv, code: int) -> None:
    write(tmp_path / "results", steps=STEPS)
    assert run(monkeypatch, tmp_path, asv)[0].exit_code == 0
    assert run(monkeypatch, tmp_path, asv, "--fail-on", "regression")[0].exit_code == code


def test_where_the_place_is_uncertain_the_builds_around_it_are_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(tmp_path / "results", steps={"mm": {14: 1.021}})
    done, found = run(monkeypatch, tmp_path, asv := Asv(only_mm), "--tolerance", "0.01")
    row = found["mm"]
    builds = [build.id for build in map(nightly, range(1, 25))]
    before = builds[builds.index(row["earliest"]["id"]) - 1]
    assert {place.build for place, _ in asv.turns} == {before, row["latest"]["id"]}
    assert row["earliest"] != row["latest"], "else this tests nothing"
    text = run(monkeypatch, tmp_path, Asv(only_mm), "--tolerance", "0.01", format="table")[0].stdout
    versions = [found["mm"]["settlement"][side]["version"] for side in ("baseline", "contender")]
    assert f"({versions[0]} → {versions[1]})" in text
    assert done.exit_code == 0


def test_a_build_that_is_gone_costs_its_own_proposals(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(tmp_path / "results", steps={"mm": {9: 1.06}, "add": {17: 1.2}})
    everywhere = Asv(lambda p, c, n: 1e-5 * jitter(n) * (1.1 if p.build >= nightly(9).id else 1))
    everywhere.lacking = {nightly(17).id: "torch 2.14.0.dev20261117 could not be installed"}
    _, found = run(monkeypatch, tmp_path, everywhere)
    assert found["mm"]["outcome"] == "confirmed"
    assert found["add"]["outcome"] == "not measured"
    assert "could not be installed" in found["add"]["settlement"]["reason"]
    assert found["add"]["settle"], "whoever has it can still settle it"


def test_the_share_of_false_ones_is_that_which_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(tmp_path / "results", steps=STEPS)
    done, _ = run(monkeypatch, tmp_path, Asv(only_mm), "--alpha", "0.2", format="table")
    assert "of those confirmed at most 20 % are false on average." in done.stdout


def test_ctrl_c_keeps_what_was_settled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write(tmp_path / "results", steps=STEPS)
    done, found = run(monkeypatch, tmp_path, Asv(only_mm, interrupts_at=14))
    assert done.exit_code == 130
    assert found["mm"]["outcome"] == "confirmed"
    done, found = run(monkeypatch, tmp_path, Asv(only_mm, interrupts_at=0))
    assert done.exit_code == 130
    assert {row["outcome"] for row in found.values()} == {"not measured"}
    assert "interrupted" in found["mm"]["settlement"]["reason"]


def test_other_machines_and_equal_commits_are_not_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(tmp_path / "results", steps=STEPS, commits={13: "c" * 40, 14: "c" * 40})
    _, found = run(monkeypatch, tmp_path, asv := Asv(only_mm))
    assert found["mm"]["settlement"]["reason"] == "both builds are of one PyTorch commit"
    write(tmp_path / "other" / "results", steps=STEPS)
    _, found = run(monkeypatch, tmp_path / "other", asv, here=False)
    assert found["mm"]["settlement"]["reason"] == "workshop is not this machine"
    assert asv.turns == []


def test_nothing_proposed_measures_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write(tmp_path / "results", steps={})
    done, _ = run(monkeypatch, tmp_path, asv := Asv(only_mm), "--fail-on", "regression", format="table")
    assert (done.exit_code, asv.turns) == (0, [])
    assert done.stdout.startswith("No change proposed")


@pytest.mark.parametrize(
    "arguments", [("--measure",), ("--build", "nightly"), ("20261101", "20261102"), ("--budget", "0")]
)
def test_wrong_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    write(tmp_path / "results", steps={})
    assert run(monkeypatch, tmp_path, Asv(only_mm), *arguments)[0].exit_code == 2


@pytest.mark.parametrize(
    ("kind", "slower", "outcome"),
    [("regression", True, "confirmed"), ("improvement", True, "refuted"), ("invariant", True, "refuted"),
     ("inconclusive", True, "open"), ("improvement", False, "confirmed"), ("regression", False, "refuted")],
)  # fmt: skip
def test_outcomes(kind: Any, slower: bool, outcome: str) -> None:
    assert outcome_of(Verdict(kind, 1.0, 0.9, 1.1, 0.5, None), slower) == outcome
