"""The table of simulations counts right, and the rules that it compares with do what they are said to do."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from accel_micro.selfcheck.peers.searches import RIVALS, asv_find, bisect_by_ten, pinpoint
from accel_micro.selfcheck.simulating import OURS, Cell, Outcome, cells, guilty, ours, theirs, upper_limit
from accel_micro.selfcheck.worlds import NOTHING, WORLDS, Machine, World, stepped
from tests.bisect import table
from tests.bisect.table import row_of

LOUD = World(stepped(20, {13: 60.0}), broken=frozenset({5, 9, 11}))


def machine(world: World) -> Machine:
    return Machine(world, np.random.default_rng(1))


@pytest.mark.parametrize("rival", [asv_find, bisect_by_ten, pinpoint])
def test_each_rule_finds_what_is_plain_to_see(rival: object) -> None:
    runs = machine(LOUD)
    assert rival(runs, 20, 60.0) == [(12, 13)]  # type: ignore[operator]
    assert (runs.ran < 10) == (rival is asv_find)


def test_asv_find_always_names_a_culprit_and_pinpoint_mostly_none_where_there_is_none() -> None:
    named = {
        name: sum(theirs(name, "plain", 20, 0.0, seed).wrong for seed in range(5))
        for name in ("asv find", "Pinpoint")
    }
    assert named["asv find"] == 5 and named["Pinpoint"] <= 1
    assert set(RIVALS) == {"asv find", "ten runs each", "Pinpoint"}


def test_a_pair_is_guilty_when_it_holds_the_step_and_nothing_that_works() -> None:
    broken = World(LOUD.levels, broken=frozenset({12}))
    assert guilty(broken, 11, 13)
    assert not guilty(broken, 10, 13)  # build 11 works
    assert not guilty(LOUD, 13, 14)
    improved = World(stepped(6, {3: -2.0}))
    assert not guilty(improved, 2, 3)


def test_every_world_has_what_it_is_called_for() -> None:
    chance = np.random.default_rng(0)
    for name, make in WORLDS.items():
        world = make(chance, 40, 2.0)
        assert len(world.levels) == 40 and len(world.culprits) == {"two regressions": 2, "gradual": 39}.get(
            name, 1
        )
        assert not {0, 39} & world.broken
    assert any(NOTHING["runs of five broken"](chance, 40, 0.0).broken for _ in range(5))
    assert all(not NOTHING[name](chance, 40, 0.0).culprits for name in NOTHING)
    slow = machine(World((0.0,) * 2, slow=0.3))
    values = np.log([slow.one(0) or np.nan for _ in range(400)])
    assert 0.2 < np.mean(values > np.median(values) + 0.3) < 0.4


def test_a_cell_counts_and_limits() -> None:
    outcomes = [
        Outcome(40, "culprit", wrong, False, True, covered=1, named=1) for wrong in (True, *[False] * 7)
    ]
    outcomes += [
        Outcome(100, "undecided", False, False, True),
        Outcome(20, "not_reproduced", False, False, False),
    ]
    assert row_of(outcomes) == [
        "10",
        "1 (≤ 39.4 %)",
        "70.0 %",
        "10.0 %",
        "10.0 %",
        "44",
        "46",
        "100 %",
        "1 of 1",
        "0 %",
    ]
    assert upper_limit(0, 200) == pytest.approx(1 - 0.05 ** (1 / 200))


def test_a_search_is_judged() -> None:
    outcome = ours("single broken builds", 20, 6.0, 0)
    assert outcome.right and outcome.held and outcome.named == 1
    assert ours("plain", 20, 0.0, 0).kind == "not_reproduced"


def run(*arguments: str) -> None:
    parser = argparse.ArgumentParser()
    table.add_options(parser)
    table.run(parser.parse_args(arguments))


def test_cells_cover_the_issue_and_have_names_to_choose_by() -> None:
    ours_ = [cell for cell in cells() if cell.rule == OURS]
    assert {(cell.builds, cell.effect) for cell in ours_} == {(b, e) for b in (60, 365) for e in (0, 1, 2, 4)}
    assert len({str(cell) for cell in cells()}) == len(cells()) == (1 + len(RIVALS)) * len(ours_)


def test_a_table_goes_on_from_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "sim.json"
    chosen = ("--cells", "60 builds, plain, effect 4, (this|asv)", "--jobs", "1", "--out", str(out))
    for runs in ("2", "4"):
        with pytest.raises(SystemExit) as end:
            run(*chosen, "--runs", runs)
        assert end.value.code == 0
    printed = capsys.readouterr().out
    assert "| plain | 4 | 4 | 0 (≤ 52.7 %) | 100.0 % |" in printed
    assert "| world | effect | asv find | this search |" in printed
    (_, mine) = json.loads(out.read_text())["cells"]
    assert mine["cell"] == [60, "plain", 4.0, "this search"] and [*mine["outcomes"]] == ["0", "1", "2", "3"]
    known = table.read(out)
    assert known[Cell(60, "plain", 4.0)][3] == Cell(60, "plain", 4.0).outcome(3)

    def never(*_: object) -> None:
        raise AssertionError("all of it is there")

    monkeypatch.setattr(Cell, "outcome", never)
    with pytest.raises(SystemExit):
        run(*chosen, "--runs", "3")
    assert table.read(out) == known
    with pytest.raises(SystemExit):
        run(*chosen, "--runs", "100", "--minutes", "0")  # no time left: what is there is told
    monkeypatch.setattr(table, "fingerprint", lambda: "another")
    with pytest.raises(SystemExit, match="made by other rules"):
        run(*chosen)
    out.write_text("[]")
    with pytest.raises(SystemExit, match="holds no simulated searches"):
        run(*chosen)
    with pytest.raises(SystemExit, match="no cell matches"):
        run("--cells", "sixty")


def test_a_cell_that_is_wrong_too_often_is_a_failure() -> None:
    def of(wrong: int) -> dict[int, Outcome]:
        return {seed: Outcome(40, "culprit", seed < wrong, False, True) for seed in range(100)}

    plain, rival = Cell(60, "plain", 2.0), Cell(60, "plain", 2.0, "asv find")
    assert table.broken_promises({plain: of(5), rival: of(90)}) == []
    assert table.broken_promises({plain: of(20)}) == [
        "60 builds, plain, effect 2, this search: 20 of 100 searches named an innocent build"
    ]
