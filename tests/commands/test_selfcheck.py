"""`accel-micro selfcheck`: what fails costs itself alone, and all of it runs."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from accel_micro.asv_plugin.locking import DeviceLocks
from accel_micro.cli import app
from accel_micro.commands import selfcheck, selfcheck_power, selfcheck_scale, selfcheck_truth
from accel_micro.commands.selfcheck import Request
from accel_micro.selfcheck.findings import Column, Row, Section, Table
from accel_micro.selfcheck.peers import worker
from accel_micro.selfcheck.rates import LEVELS
from accel_micro.selfcheck.truth import Reading, Timed


def nothing(text: str) -> None:
    """Told, and forgotten."""


@pytest.fixture
def sections(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[..., Section]]:
    """Sections that answer at once."""

    def answer(part: Any, request: Any, seconds: float, shared: Any, tell: Any) -> Section:
        column = Column("x", "x", "seconds", "low")
        rows = (Row("ours", {"x": 1.0}, ours=True), Row("theirs", {"x": 2.0}))
        return Section(part.key, part.title, part.question, tables=(Table("t", (column,), rows),))

    found = dict.fromkeys(selfcheck.SECTIONS, answer)
    monkeypatch.setattr(selfcheck, "SECTIONS", found)
    return found


def test_the_second_card_is_locked_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[str] = []
    monkeypatch.setattr(DeviceLocks, "acquire", lambda self, names: held.extend(sorted(names)))
    with selfcheck._alone_on("cuda:1"):
        assert held == ["cpu", "cuda:1"]


def test_a_section_that_fails_costs_itself_alone(sections: dict[str, Callable[..., Section]]) -> None:
    def failing(*arguments: Any) -> Section:
        raise RuntimeError("no such luck")

    sections["cost"] = failing
    check = selfcheck.check(Request(), nothing)
    assert [section.failed for section in check.sections] == [
        "",
        "",
        "RuntimeError: no such luck",
        "",
        "",
        "",
    ]
    assert not check.interrupted
    assert dict(check.facts)["device"] == "cpu"


def test_ctrl_c_keeps_what_was_found(sections: dict[str, Callable[..., Section]]) -> None:
    def pressing(*arguments: Any) -> Section:
        raise KeyboardInterrupt

    sections["bisect"] = pressing
    check = selfcheck.check(Request(), nothing)
    assert check.interrupted
    assert [section.key for section in check.sections] == ["truth", "power", "cost"]


def test_the_command_writes_a_page_and_markdown(
    sections: dict[str, Callable[..., Section]], tmp_path: Path
) -> None:
    done = CliRunner().invoke(app, ["selfcheck", "scale", "--format", "json", "--out", str(tmp_path / "new")])
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert [section["key"] for section in data["sections"]] == ["scale"]
    assert "## Scale" in (tmp_path / "new" / "selfcheck.md").read_text(encoding="utf-8")
    assert "<h2>Scale</h2>" in (tmp_path / "new" / "selfcheck.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["speed"], 2, "unknown section 'speed'"),
        (["--device", "gpu"], 2, "gpu"),
        (["--device", "mps"], 3, "mps"),
    ],
)
def test_wrong_use_is_one_sentence(
    sections: dict[str, Callable[..., Section]], tmp_path: Path, arguments: list[str], code: int, text: str
) -> None:
    done = CliRunner().invoke(app, ["selfcheck", *arguments, "--out", str(tmp_path)])
    assert done.exit_code == code
    assert text in done.output
    assert "Traceback" not in done.output


def test_nothing_answered_is_said_by_the_exit_code(
    sections: dict[str, Callable[..., Section]], tmp_path: Path
) -> None:
    def failing(*arguments: Any) -> Section:
        raise OSError("no room")

    sections["scale"] = failing
    done = CliRunner().invoke(app, ["selfcheck", "scale", "--out", str(tmp_path)])
    assert done.exit_code == 3
    assert "no answer: OSError: no room" in done.output


# Gathering


class Fake:
    """An interpreter that answers at once: an op takes as many milliseconds as it is called."""

    asked: list[dict[str, Any]]

    def __init__(self) -> None:
        self.asked = []

    def ask(self, **request: Any) -> dict[str, Any]:
        self.asked.append(request)
        if request["method"] == worker.ASV and request["op"] == worker.OPS[0]:
            return {"failure": "RuntimeError: broken"}
        return {"samples": [1e-3 * request["repeats"]] * 3, "seconds": 0.5}


def test_every_level_has_an_interpreter_of_its_own_in_each_round() -> None:
    made: list[dict[str, Fake]] = []

    @contextmanager
    def workers(levels: Sequence[str]) -> Any:
        made.append({level: Fake() for level in levels})
        yield made[-1]

    times = iter(range(1000))
    rounds = selfcheck_power.gather(
        "cpu", 50.0, nothing, most_rounds=4, now=lambda: float(next(times)), workers=workers
    )
    assert len(made) == 4
    assert all(set(each) == set(LEVELS) for each in made)
    assert len({tuple(each) for each in made}) > 1, "the order is by chance"
    assert {request["repeats"] for request in made[0]["+5 %"].asked} == {105}
    assert len(rounds.pairs(worker.OPS[1], worker.OURS, "+10 %")) == 4
    assert rounds.pairs(worker.OPS[0], worker.ASV, "+10 %") == []
    assert rounds.failures == {worker.ASV: "RuntimeError: broken"}


def test_rows_of_rules_say_why_one_has_no_figures() -> None:
    from accel_micro.selfcheck.rates import Process, Rounds

    rounds = Rounds()
    for level, more in LEVELS.items():
        for number in range(4):
            rounds.add("mm", worker.OURS, level, Process((1e-3 + 1e-5 * more + 1e-8 * number,) * 4, 1.0))
    rows = {row.name: row for row in selfcheck.power_rows(rounds, selfcheck_power.methods())}
    assert rows["ours"].values["+10 %"] == 1.0
    assert rows["ours"].values["alarms"] == 0.0
    assert rows["asv compare"].absent == "fewer than 2 rounds"


def test_readings_beside_which_the_work_changed_are_counted_apart() -> None:
    steady, moved = (Reading(1.1e-5, 1e-5, 1e-5, 0.1, moved=moved) for moved in (0.0, 0.2))
    rows = [
        Timed("a", 1e-5, {"ours, device": steady, "other": moved}),
        Timed("b", 1e-5, {"ours, device": moved, "other": moved}),
    ]
    (table,) = selfcheck_truth.kernel_tables(rows)
    found = {row.name: row for row in table.rows}
    counts = {
        name: [row.values[key] for key in ("cases", "refused", "unsteady")] for name, row in found.items()
    }
    assert counts == {"ours, device": [1, 0, 1], "other": [0, 0, 2]}
    assert [found[name].absent for name in found] == ["", "the work itself became faster or slower meanwhile"]


def test_pyperf_that_is_not_installed_or_has_no_time_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    row = selfcheck_power.pyperf_row("cpu", 100.0, nothing)
    assert "pip install 'accel-micro[peers]'" in row.absent
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert "--budget" in selfcheck_power.pyperf_absent(0.0)
    assert selfcheck_power.pyperf_absent(10.0) == ""


def test_a_worker_answers_and_says_what_failed() -> None:
    assert (
        "ValueError: no op 'none'"
        in worker.answer({"op": "none", "repeats": 1, "method": worker.OURS})["failure"]
    )
    found = worker.answer({"op": worker.OPS[0], "repeats": 2, "method": worker.ASV})
    assert len(found["samples"]) >= 1
    assert found["seconds"] > 0


@pytest.mark.parametrize("op", worker.OPS)
def test_ops_are_the_same_work_each_time(op: str) -> None:
    import torch

    assert torch.equal(worker.build(op, "cpu")(), worker.build(op, "cpu")())


def test_a_step_that_fails_says_so_and_the_others_go_on() -> None:
    def failing(size: int, folder: Path) -> float:
        raise OSError("no room")

    steps = [
        selfcheck_scale.Step("broken", "cases", 2, failing),
        selfcheck_scale.Step("linear", "cases", 2, lambda size, folder: 1e-3 * size),
    ]
    broken, linear = selfcheck_scale.grow(nothing, steps)
    assert broken.absent == "OSError: no room"
    assert linear.values["exponent"] == pytest.approx(1.0)
    assert linear.values["tenfold"] == pytest.approx(10.0)


def test_spins_are_read_by_all_in_turns() -> None:
    (short, *others) = selfcheck_truth.read_spins(0.0, nothing)
    assert len(others) == 2
    assert {len(runs) for runs in short.readings.values()} == {2}
    for runs in short.readings.values():
        for run in runs:
            assert run.reported > 0
            assert 0 < run.counted <= 1.01 * run.spent
            assert all(known > 0 for _, known in run.blocks)
    assert short.full_speed > 0


@pytest.mark.slow
def test_all_of_it_runs_on_a_small_budget(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "accel_micro", "selfcheck", "--budget", "30", "--format", "json"]
    (tmp_path / "runtime").mkdir(mode=0o700)
    done = subprocess.run(
        [*command, "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "runtime")},  # no other run is waited for
    )
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert {section["key"]: section["failed"] for section in data["sections"]} == dict.fromkeys(
        selfcheck.SECTIONS, ""
    )
    assert all(section["tables"] for section in data["sections"])
    bisect = next(section for section in data["sections"] if section["key"] == "bisect")
    assert all(
        one["kind"] != "worse" for one in bisect["standings"] if one["column"] == "innocent build named"
    )
    assert (tmp_path / "selfcheck.html").stat().st_size > 5_000
