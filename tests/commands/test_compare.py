"""`accel-micro compare` as a user runs it on stored results: what it answers, and with which exit code it ends."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asv.machine import Machine, MachineCollection
from click.testing import Result
from typer.testing import CliRunner

from accel_micro.builds import Ledger
from accel_micro.cli import app
from accel_micro.comparison.compared import Compared, Comparison
from accel_micro.comparison.comparing import Request, compare
from accel_micro.host import cards
from tests.comparison.results_folder import NEW, OLD, Results, case, two_builds
from tests.host.machines import TWO_CARDS


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("out")
    two_builds(path / "results")
    return path


def run(out: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["compare", *arguments, "--out", str(out)], env={"COLUMNS": "100"})


def test_the_answer_comes_first(out: Path) -> None:
    done = run(out, "2.14.1", "nightly")
    assert done.exit_code == 0
    first, second = done.stdout.splitlines()[:2]
    assert first == "torch 2.14.1 → torch 2.15.0.dev20261101 on workshop, cpu, throughput"
    assert second.startswith(
        "3 regressions, 1 improvement, 13 invariant, 2 inconclusive of 19; tolerance 2 %"
    )


def test_a_card_s_results_are_those_of_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "listing", lambda kind: TWO_CARDS if kind == "cuda" else [])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(
        MachineCollection, "get_machine_file_path", staticmethod(lambda: str(tmp_path / "none"))
    )
    results = Results(tmp_path / "results")
    host = Machine.get_unique_machine_name()
    for machine, factor in ((host, 1.0), (f"{host}-cuda1", 2.0)):
        for build, seconds in ((OLD, 1e-5), (NEW, 1e-5 * factor)):
            results.trial(build.version, case("add", device="cuda"), seconds, machine=machine)

    def verdict(*arguments: str) -> Result:
        return run(tmp_path, "2.14.1", "nightly", *arguments)

    second = verdict("--device", "cuda:1")
    assert f" on {host}-cuda1, cuda" in second.stdout
    assert "1 regression" in second.stdout
    first = verdict("--device", "cuda:0")
    assert f" on {host}, cuda" in first.stdout
    assert "0 regressions, 0 improvements, 1 invariant" in first.stdout
    contradicting = verdict("--device", "cuda:1", "--machine", host)
    assert contradicting.exit_code == 2
    assert f"results of cuda:1 are of machine {host}-cuda1, and --machine says {host}" in contradicting.stderr
    absent = verdict("--device", "cuda:7")
    assert absent.exit_code == 3
    assert "cuda:7 is not to be seen here" in absent.stderr
    both = run(tmp_path, "cuda:0", "cuda:1")
    assert both.exit_code == 2
    assert "then compare the machines that their results are of" in both.stderr


def test_the_next_command_is_the_same_with_measure(out: Path) -> None:
    arguments = [
        "2.14.1",
        "nightly",
        "--bench",
        "pooling|adam (x)?",
        "--clock",
        "throughput",
        "--alpha",
        "0.05",
    ]
    done = run(out, *arguments)
    (command,) = (line.strip() for line in done.stdout.splitlines() if line.strip().startswith("accel-micro"))
    words = shlex.split(command)
    assert words[0:2] == ["accel-micro", "compare"]
    assert words[-1] == "--measure"
    assert set(arguments) | {"--out", str(out)} <= set(words)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), 1),
        (("--bench", "norm"), 0),
        (("--bench", "elementwise.mul"), 0),
        (("--bench", "adam|pooling"), 4),
        (("--bench", "nothing"), 3),
        (("--tolerance", "0.9"), 0),
    ],
)
def test_failing_on_a_regression(arguments: tuple[str, ...], code: int, out: Path) -> None:
    assert run(out, "2.14.1", "nightly", "--fail-on", "regression", *arguments).exit_code == code
    without = run(out, "2.14.1", "nightly", *arguments).exit_code
    assert without == (3 if code == 3 else 0), "it is an answer, whatever it is, unless asked to fail"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("cpu", "fp32"), 2, "two of a kind can be compared"),
        (("2.14.1", "2.99"), 2, "nothing is called '2.99'"),
        (("2.14.1", "2.14.1"), 2, "are both torch 2.14.1"),
        (("2.14.1", "20261103"), 3, "no nightly of 20261103 is known; measured nearest: 2.15.0.dev20261101"),
        (("2.14.1", "local"), 3, "no local build has results"),
        (("2.14.1", "nightly", "--machine", "moon"), 2, "no machine 'moon' has results"),
        (("2.14.1", "nightly", "--device", "gpu"), 2, "unknown device 'gpu'"),
        (("2.14.1", "nightly", "--bench", "("), 2, "--bench '(' is no regular expression"),
        (("2.14.1", "nightly", "--tolerance", "0"), 2, "--tolerance must be larger than 0"),
        (("2.14.1", "nightly", "--tolerance", "nan"), 2, "--tolerance must be larger than 0"),
        (("2.14.1", "nightly", "--alpha", "0.6"), 2, "--alpha must be larger than 0 and at most 0.5"),
        (("2.14.1", "nightly", "--format", "xml"), 2, "xml"),
        (("2.14.1", "nightly", "--clock", "sundial"), 2, "sundial"),
        (("2.14.1", "nightly", "--config", "nowhere.json"), 2, "nowhere.json"),
    ],
)
def test_bad_input_gets_a_sentence(arguments: tuple[str, ...], code: int, sentence: str, out: Path) -> None:
    done = run(out, *arguments)
    assert done.exit_code == code, done.output
    assert sentence in done.output
    assert not done.stdout or code == 3


def test_no_results_at_all(tmp_path: Path) -> None:
    done = run(tmp_path, "2.14.1", "nightly")
    assert done.exit_code == 3
    assert "holds no results yet; run `accel-micro quick` or `asv run`" in done.output


def test_torn_results_are_named_and_passed_over(tmp_path: Path) -> None:
    results = two_builds(tmp_path / "results", invariant=1)
    results.add_line("workshop", f"{OLD.id[:8]}-torch-py3.11.processes.jsonl", '{"schema": 1, "torn')
    done = run(tmp_path, "2.14.1", "nightly", "--format", "json")
    data = json.loads(done.stdout)
    assert len(data["problems"]) == 1
    assert "not a record" in run(tmp_path, "2.14.1", "nightly").stdout


@pytest.mark.parametrize(
    ("blessed", "tolerance", "told"), [(True, 0.05, False), (False, 0.05, True), (True, 0.001, False)]
)
def test_the_machines_own_tolerance_is_used(
    blessed: bool, tolerance: float, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Found:
        why_not = "" if blessed else "its speed jumps"

    found: Any = Found()
    found.tolerance, found.blessed = tolerance, blessed
    monkeypatch.setattr("accel_micro.results.calibrations.latest", lambda results, machine, device: found)
    two_builds(tmp_path / "results")
    data = json.loads(run(tmp_path, "2.14.1", "nightly", "--format", "json").stdout)
    assert data["tolerances"][0]["value"] == max(0.02, tolerance)
    assert ("its speed jumps" in data["tolerances"][0]["note"]) == told
    chosen = json.loads(run(tmp_path, "2.14.1", "nightly", "--format", "json", "--tolerance", "0.03").stdout)
    assert chosen["tolerances"][0]["value"] == 0.03


def test_what_measures_gets_the_undecided_rows_and_its_verdicts_are_sorted_in(tmp_path: Path) -> None:
    two_builds(tmp_path)
    asked: list[Compared] = []

    def measure(comparison: Comparison, rows: Any) -> list[Compared]:
        asked.extend(rows)
        return [replace(row, verdict=replace(row.verdict, kind="regression", ratio=9.0)) for row in rows]

    request = Request(OLD.version, NEW.version)
    found = compare(request, tmp_path, Ledger.beside(tmp_path), measure=measure)
    assert len(asked) == 2
    assert not any(row.verdict.decided for row in asked)
    assert found.counts == {"regression": 5, "improvement": 1, "invariant": 13, "inconclusive": 0}
    assert [row.verdict.ratio for row in found.rows[:2]] == [9.0] * 2


def test_machines_are_compared_on_the_newest_build(tmp_path: Path) -> None:
    results = Results(tmp_path / "results")
    results.trial(NEW.version, case(), 1e-5, machine="old-laptop", session="a")
    results.trial(NEW.version, case(), 5e-6, machine="server", session="b")
    done = run(tmp_path, "old-laptop", "server")
    assert done.exit_code == 0
    assert done.stdout.startswith("old-laptop → server, torch 2.15.0.dev20261101")
    assert "▼ 1 faster" in done.stdout
    assert "separate sessions" not in done.stdout
    assert "--measure" not in done.stdout
