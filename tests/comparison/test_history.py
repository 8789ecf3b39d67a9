"""Histories out of stored results, and what is proposed in them."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from accel_micro.builds import Ledger
from accel_micro.builds.identity import Build, identify
from accel_micro.cli import app
from accel_micro.comparison.history import Changes, propose, read_histories
from accel_micro.comparison.searching import HistoryRequest, NothingMeasured, find
from accel_micro.measure import Process
from accel_micro.measure.records import SUFFIX, Case, Failure, Record, append

CASES = {
    "mm": Case("matmul.mm", "forward", "cpu", "float32", "m=64 k=64 n=64"),
    "add": Case("pointwise.add", "forward", "cpu", "float32", "n=1000"),
}
DAYS = 24


def nightly(day: int, commit: str | None = None) -> Build:
    build = identify(f"2.14.0.dev202611{day:02d}")
    return Build(build.id, build.channel, build.version, build.date_milliseconds, commit)


def record(build: Build, case: Case, seconds: float, session: str, **changed: object) -> Record:
    read = {"throughput": Process("cpu", "throughput", (seconds,) * 3, (seconds,) * 3, (1.0,) * 3, 7)}
    facts = {"clocks": read, "machine": "workshop", "build": build.id, "environment": "env", **changed}
    return Record(case, session=session, started=f"2026-11-30T00:00:{len(session):02d}", **facts)  # type: ignore[arg-type]


def write(
    results: Path,
    *,
    steps: dict[str, dict[int, float]],
    unmeasured: tuple[int, ...] = (),
    commits: dict[int, str] | None = None,
    session: str = "",
    days: int = DAYS,
) -> Ledger:
    """Nightlies of November, noise 0.5 %; from each day in `steps` on the case is that many times as slow."""
    rng = np.random.default_rng(3)
    ledger = Ledger.beside(results)
    builds = [nightly(day, (commits or {}).get(day)) for day in range(1, days + 1)]
    ledger.remember_all(builds)
    for day, build in enumerate(builds, start=1):
        for name, case in CASES.items():
            level = [factor for first, factor in steps.get(name, {}).items() if day >= first][-1:] or [1.0]
            for _ in range(3):
                seconds = 1e-5 * level[0] * float(np.exp(0.005 * rng.standard_normal()))
                if day not in unmeasured:
                    path = results / "workshop" / f"{build.id[:8]}-env{SUFFIX}"
                    append(path, record(build, case, seconds, session or f"session of {day}"))
    return ledger


def changes(results: Path, ledger: Ledger) -> Changes:
    return propose(read_histories(results, ledger), ledger)


def test_a_step_in_two_cases_is_one_pair_of_builds(tmp_path: Path) -> None:
    ledger = write(tmp_path, steps={"mm": {14: 1.06}, "add": {14: 0.8}})
    found = changes(tmp_path, ledger)
    (step,) = found.steps
    assert (step.before, step.after) == (nightly(13), nightly(14))
    assert [p.history.whose.case for p in step.proposals] == [CASES["mm"], CASES["add"]], "slower ones first"
    assert [p.fate for p in step.proposals] == ["present", "present"]
    assert all(
        p.change.ratio_low < r < p.change.ratio_high for p, r in zip(step.proposals, (1.06, 0.8), strict=True)
    )
    assert (step.cases, found.histories, found.short, len(found.builds)) == (2, 2, 0, DAYS)
    assert not step.same_commit
    assert all(p.apart for p in step.proposals)


@pytest.mark.parametrize("samples", [[0.0, 1e-5], [-1e-5], []])
def test_what_is_no_time_is_named_and_left_out(tmp_path: Path, samples: list[float]) -> None:
    ledger = write(tmp_path, steps={"mm": {14: 1.06}})
    path = tmp_path / "workshop" / f"{nightly(4).id[:8]}-env{SUFFIX}"
    whole = path.read_text().splitlines()
    foreign = json.loads(whole[0])
    foreign["clocks"]["throughput"]["samples"] = samples
    path.write_text("\n".join([*whole, json.dumps(foreign)]) + "\n")
    found = find(HistoryRequest(), tmp_path, ledger)
    assert [step.after for step in found.steps] == [nightly(14)]
    (problem,) = found.problems
    assert "matmul.mm" in problem and "2.14.0.dev20261104" in problem and "not a positive number" in problem
    assert nightly(4) not in found.proposals[0].history.builds


def test_nothing_is_proposed_where_nothing_changed(tmp_path: Path) -> None:
    ledger = write(tmp_path, steps={})
    assert changes(tmp_path, ledger).steps == ()


def test_what_was_undone_says_by_which_build(tmp_path: Path) -> None:
    ledger = write(tmp_path, steps={"mm": {8: 1.1, 16: 1.0}})
    newest, oldest = changes(tmp_path, ledger).steps
    assert (newest.after, oldest.after) == (nightly(16), nightly(8)), "newest first"
    assert (oldest.proposals[0].fate, oldest.proposals[0].undone_by) == ("undone", nightly(16))
    assert (newest.proposals[0].fate, newest.proposals[0].slower) == ("present", False)


def test_what_came_back_is_present(tmp_path: Path) -> None:
    ledger = write(tmp_path, steps={"mm": {7: 1.1, 13: 1.0, 19: 1.1}})
    found = changes(tmp_path, ledger)
    assert [step.after for step in found.steps] == [nightly(19), nightly(13), nightly(7)]
    assert found.proposals[-1].fate == "present"


def test_builds_that_were_not_measured_in_between_are_suspects(tmp_path: Path) -> None:
    ledger = write(tmp_path, steps={"mm": {13: 1.06}}, unmeasured=(12, 13))
    (step,) = changes(tmp_path, ledger).steps
    assert (step.before, step.unmeasured, step.after) == (
        nightly(11),
        (nightly(12), nightly(13)),
        nightly(14),
    )


def test_builds_of_one_commit_are_told(tmp_path: Path) -> None:
    ledger = write(tmp_path, steps={"mm": {13: 1.06}}, commits={12: "a" * 40, 13: "a" * 40})
    (step,) = changes(tmp_path, ledger).steps
    assert step.same_commit


def test_builds_of_one_session_are_not_apart(tmp_path: Path) -> None:
    ledger = write(tmp_path, steps={"mm": {13: 1.06}}, session="the only one")
    (proposal,) = changes(tmp_path, ledger).proposals
    assert not proposal.apart


def test_releases_among_nightlies_are_another_history(tmp_path: Path) -> None:
    ledger = write(tmp_path, steps={})
    release = Build(identify("2.13.0").id, "release", "2.13.0", nightly(12).date_milliseconds)
    ledger.remember(release)
    append(tmp_path / "workshop" / f"{release.id[:8]}-env{SUFFIX}", record(release, CASES["mm"], 2e-5, "s"))
    histories = read_histories(tmp_path, ledger)
    assert sorted({h.whose.channel for h in histories}) == ["nightly", "release"]
    found = propose(histories, ledger)
    assert (found.steps, found.short) == ((), 1)


def test_withheld_times_are_no_point(tmp_path: Path) -> None:
    ledger = write(tmp_path, steps={})
    wrong = record(nightly(5), CASES["mm"], 1e-5, "s", clocks={}, failure=Failure("wrong result"))
    append(tmp_path / "workshop" / f"{nightly(5).id[:8]}-env{SUFFIX}", wrong)
    histories = {h.whose.case: h for h in read_histories(tmp_path, ledger)}
    assert nightly(5) not in histories[CASES["mm"]].builds
    assert nightly(5) in histories[CASES["add"]].builds


def test_builds_of_no_ledger_are_known_by_their_ids(tmp_path: Path) -> None:
    write(tmp_path, steps={"mm": {14: 1.06}})
    (tmp_path / "builds.jsonl").unlink()
    (step,) = changes(tmp_path, Ledger.beside(tmp_path)).steps
    assert step.after.id == nightly(14).id


def test_a_request_chooses_builds_cases_and_the_floor(tmp_path: Path) -> None:
    ledger = write(tmp_path, steps={"mm": {14: 1.06}, "add": {14: 1.06}})
    (step,) = find(HistoryRequest(bench=("mm",)), tmp_path, ledger).steps
    assert step.cases == 1
    assert find(HistoryRequest(tolerance=0.1), tmp_path, ledger).steps == ()
    assert len(find(HistoryRequest(range="20261101..20261110"), tmp_path, ledger).builds) == 9
    with pytest.raises(NothingMeasured, match="no results of elsewhere"):
        find(HistoryRequest(machine="elsewhere"), tmp_path, ledger)


def test_lines_that_are_no_records_are_named(tmp_path: Path) -> None:
    ledger = write(tmp_path, steps={}, days=3)
    with (tmp_path / "workshop" / f"{nightly(2).id[:8]}-env{SUFFIX}").open("a") as file:
        file.write(json.dumps({"schema": 99}) + "\n")
    found = find(HistoryRequest(), tmp_path, ledger)
    assert (len(found.problems), found.short) == (1, 2)


def test_the_command_lists_changes(tmp_path: Path) -> None:
    write(tmp_path / "results", steps={"mm": {14: 1.06}})
    run = CliRunner().invoke(app, ["compare", "--history", "--out", str(tmp_path), "--format", "csv"])
    assert run.exit_code == 0, run.output
    assert run.stdout.count("\n") == 2
    shorter = CliRunner().invoke(app, ["compare", "--history", "20261101..20261112", "--out", str(tmp_path)])
    assert shorter.stdout.startswith("No change proposed in 2 histories over 11 builds")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--history", "a", "b"], 2, "one range"),
        (["--history", "--fail-on", "regression"], 2, "not --build"),
        (["--history", "--device", "cuda"], 3, "no results of cuda"),
        (["--history", "20271101..20271102"], 3, "no results of 20271101..20271102"),
        (["--history", "nonsense"], 2, "nonsense"),
        (["only-one"], 2, "two sides"),
    ],
)
def test_wrong_use_is_told(tmp_path: Path, words: list[str], code: int, says: str) -> None:
    write(tmp_path / "results", steps={}, days=3)
    run = CliRunner().invoke(app, ["compare", *words, "--out", str(tmp_path)])
    assert (run.exit_code, says in run.stderr) == (code, True), run.output
