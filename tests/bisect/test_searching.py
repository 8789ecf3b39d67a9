"""The search as a whole, on machines that do not exist."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_micro.bisect import Block, Search, replay, search
from accel_micro.bisect.hunt import GATE_BLOCKS, Hunt, Levels, Measured
from accel_micro.bisect.likelihood import grid
from accel_micro.selfcheck.simulating import guilty
from accel_micro.selfcheck.worlds import NOTHING, WORLDS, Machine, World, stepped

UNIT = 0.02  # noise of a world's processes, in which its levels are told
STEP = World(stepped(24, {9: 4.0}))


def machine(world: World, seed: int = 0) -> Machine:
    return Machine(world, np.random.default_rng([seed, 11]))


def found_in(world: World, seed: int = 0, **options: object) -> object:
    return search(range(len(world.levels)), machine(world, seed), seed=seed, **options)  # type: ignore[arg-type]


# The answer


@pytest.mark.parametrize("name", [name for name in WORLDS if name != "gradual"])
def test_it_names_no_innocent_build_and_mostly_the_culprit(name: str) -> None:
    right, searches = 0, 6
    for seed in range(searches):
        chance = np.random.default_rng([seed, 2])
        world = WORLDS[name](chance, 40, 4.0)
        result = search(range(40), Machine(world, chance), seed=seed)
        assert all(guilty(world, step.good, step.bad) for step in result.steps)
        assert result.runs <= 500 and result.finished
        if result.kind == "culprit":
            right += 1
            assert result.culprit == (result.steps[0].good, result.steps[0].bad)
            assert result.suspects == tuple(range(result.steps[0].good + 1, result.steps[0].bad + 1))
            assert result.ratio.low > 1
    assert right == searches


@pytest.mark.parametrize("factor", [20.0, 50.0, 1e12])
@pytest.mark.parametrize("direction", ["slower", "faster"])
def test_a_step_beyond_all_hypotheses_is_found_like_any_large_one(direction: str, factor: float) -> None:
    world = stepped(24, {9: math.log(factor) / UNIT * (1 if direction == "slower" else -1)})
    for seed in range(2):
        result = search(range(24), machine(World(world), seed), seed=seed, direction=direction)
        assert result.culprit == (8, 9) and result.runs <= 80 and not result.unexplained
        true = factor if direction == "slower" else 1 / factor
        assert result.ratio.low < true < result.ratio.high < 1.1 * result.ratio.low


def test_steps_of_which_each_is_beyond_all_hypotheses_are_both_found() -> None:
    world = World(stepped(24, {6: math.log(30) / UNIT, 15: math.log(40) / UNIT}))
    result = found_in(world)
    assert {(step.good, step.bad) for step in result.steps} == {(5, 6), (14, 15)}  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NOTHING)
def test_where_nothing_happened_nothing_is_named(name: str) -> None:
    kinds = []
    for seed in range(4):
        chance = np.random.default_rng([seed, 3])
        result = search(range(30), Machine(NOTHING[name](chance, 30, 0.0), chance), seed=seed)
        kinds.append(result.kind)
        assert result.culprit is None and result.suspects == () and not result.unexplained
        assert result.ratio.low < 1 < result.ratio.high
    assert kinds == ["not_reproduced"] * 4


def test_many_small_steps_have_no_culprit() -> None:
    result = found_in(World(tuple(4 * i / 29 for i in range(30))), max_runs=200)
    assert result.kind == "undecided" and result.culprit is None
    assert len(result.suspects) > 1 and result.runs <= 200 and result.finished


def test_broken_builds_beside_the_culprit_are_suspects() -> None:
    world = replace(STEP, broken=frozenset({7, 8, 9, 10, 11}))
    result = found_in(world)
    assert result.culprit == (6, 12)
    assert result.suspects == (7, 8, 9, 10, 11, 12)
    assert set(result.broken) == {7, 8, 9, 10, 11}


def test_ends_that_do_not_work_are_left_behind() -> None:
    world = replace(STEP, broken=frozenset({0, 1, 2, 22, 23}))
    result = found_in(world)
    assert result.culprit == (8, 9)
    assert set(result.broken) == {0, 1, 2, 22, 23}


@pytest.mark.parametrize("working", [set(), {3}])
def test_without_two_builds_that_work_there_is_no_answer(working: set[int]) -> None:
    result = found_in(World(stepped(6, {3: 4.0}), broken=frozenset(set(range(6)) - working)))
    assert (result.kind, result.culprit, result.suspects) == ("no_usable_build", None, ())
    assert result.finished and result.runs < 60


def test_a_build_that_fails_now_and_then_is_not_broken() -> None:
    inner, chance = machine(STEP), np.random.default_rng(1)

    def flaky(builds: Sequence[int]) -> list[float | None]:
        return [value if inner.ran < 8 or chance.random() > 0.1 else None for value in inner(builds)]

    result = search(range(24), flaky, seed=1)
    assert result.culprit is not None and result.culprit[0] < 9 <= result.culprit[1]
    assert not {0, 23} & set(result.broken)


def test_two_builds_are_enough_for_a_search() -> None:
    result = search(["old", "new"], lambda builds: machine_of_names(builds, {"old": 0.0, "new": 6.0}))
    assert result.culprit == ("old", "new") and result.suspects == ("new",)


CHANCE = np.random.default_rng(4)


def machine_of_names(builds: Sequence[str], levels: dict[str, float]) -> list[float | None]:
    return [float(np.exp(0.02 * (levels[build] + CHANCE.normal()))) for build in builds]


def test_both_of_two_regressions_are_found() -> None:
    result = found_in(World(stepped(24, {6: 4.0, 17: 4.0})))
    assert {step.bad for step in result.steps} == {6, 17}
    assert not result.unexplained
    for step in result.steps:
        assert step.ratio.low < np.exp(0.08) < step.ratio.high
    assert result.ends.low < np.exp(0.16) < result.ends.high


def test_a_budget_that_ends_after_the_first_says_that_there_is_more() -> None:
    world = World(stepped(24, {6: 4.0, 17: 4.0}))
    whole = found_in(world)
    first = next(
        i for i, event in enumerate(whole.log) if event["event"] == "decided" and event["what"] == "confirmed"
    )
    runs = 4 * sum(event["event"] == "values" for event in whole.log[:first])
    result = found_in(world, max_runs=runs)
    assert result.kind == "culprit" and len(result.steps) == 1 and result.unexplained


@pytest.mark.parametrize(
    ("direction", "steps", "culprits"),
    [
        ("faster", {9: -4.0}, {9}),
        ("faster", {9: 4.0}, set()),
        ("slower", {9: -4.0}, set()),
        ("either", {9: -4.0}, {9}),
        ("either", {9: 4.0}, {9}),
    ],
)
def test_the_direction_is_that_which_was_asked_for(
    direction: str, steps: dict[int, float], culprits: set[int]
) -> None:
    result = found_in(World(stepped(24, steps)), direction=direction)
    assert {step.bad for step in result.steps} == culprits
    assert result.kind == ("culprit" if culprits else "not_reproduced")
    if culprits:
        assert (result.ratio.high < 1) == (steps[9] < 0)


@pytest.mark.parametrize("spread", [0.001, 0.2])
def test_how_noisy_the_machine_is_need_not_be_known(spread: float) -> None:
    for seed in range(3):
        result = found_in(replace(STEP, spread=spread), seed)
        assert result.culprit == (8, 9)


def test_a_smaller_error_rate_costs_more_runs() -> None:
    runs = [sum(found_in(STEP, s, error_rate=rate).runs for s in range(5)) for rate in (0.3, 1e-4)]
    assert runs[0] < runs[1]


# What is run


def test_blocks_hold_both_ends_in_an_order_that_is_drawn() -> None:
    asked: list[tuple[int, ...]] = []
    inner = machine(STEP)

    def measure(builds: Sequence[int]) -> list[float | None]:
        asked.append(tuple(builds))
        return inner(builds)

    result = search(range(24), measure)
    stages = [event["stage"] for event in result.log if event["event"] == "block"]
    for block, stage in zip(asked, stages, strict=True):
        assert len(block) == 4
        if stage == "gate":
            assert sorted(block) == [0, 0, 23, 23]
        elif stage == "search":
            assert {0, 23} <= set(block)
        else:
            assert len(set(block)) == 2 and all(block.count(build) == 2 for build in block)
    assert stages == sorted(stages, key=["gate", "search", "certificate"].index)
    assert len({block for block, stage in zip(asked, stages, strict=True) if stage == "gate"}) > 1


def test_progress_narrows_and_ends() -> None:
    state, inner = Search(range(24)), machine(STEP)
    widths, to_go = [], []
    while (block := state.next_block()) is not None:
        progress = state.progress()
        assert sum(progress.first_bad) == pytest.approx(1) and len(progress.first_bad) == 24
        assert progress.runs == state.runs and 0 < progress.runs_to_go <= 500
        widths.append(len(progress.suspects))
        to_go.append(progress.runs_to_go)
        state.record(block, inner(block.builds))
    assert widths[0] > 20 and widths[-1] == 1 and to_go[-1] < to_go[0]
    assert state.progress().stage == "done" and state.progress().runs_to_go == 0
    assert state.progress().suspects == (9,)


def test_while_the_ends_look_alike_no_more_is_to_go_than_the_gate_may_take() -> None:
    state, most = Search(range(4), max_runs=500), []
    while (block := state.next_block()) is not None:
        most.append(state.runs + state.progress().runs_to_go)
        state.record(block, [1e-3 * (1 + 1e-3 * ((7 * block.number + place) % 5)) for place in range(4)])
    assert state.result().kind == "not_reproduced"
    # The first block tells the noise before the test begins.
    assert len(most) > 4 and most[-1] <= 4 * (GATE_BLOCKS + 1) < state.max_runs


# Going on


def log_of(world: World, seed: int = 0) -> tuple[list[dict[str, object]], object]:
    result = found_in(world, seed)
    return json.loads(json.dumps(result.log)), result  # as it comes back from a file


def test_a_log_that_was_cut_anywhere_goes_on_to_the_same_end() -> None:
    log, whole = log_of(STEP)
    for cut in range(1, len(log) + 1, 3):
        state = replay(log[:cut], range(24))
        recorded = {event["number"]: event["seconds"] for event in log if event["event"] == "values"}
        flying = [*state.pending]
        while flying or (block := state.next_block()) is not None:
            number = flying.pop() if flying else block.number  # type: ignore[union-attr]
            state.record(number, recorded[number])  # type: ignore[arg-type]
        assert state.result() == whole


def test_to_look_how_far_it_is_changes_nothing() -> None:
    watched, inner = Search(range(24), seed=3), machine(STEP, 3)
    watched.progress()
    while (block := watched.next_block()) is not None:
        watched.progress()
        watched.record(block, inner(block.builds))
        watched.progress()
    assert watched.log == found_in(STEP, 3).log  # type: ignore[attr-defined]
    assert replay(watched.log, range(24)).result() == watched.result()


def test_a_search_can_be_given_more_runs_later() -> None:
    whole = found_in(STEP, 3)
    short = found_in(STEP, 3, max_runs=24)
    assert short.kind == "undecided" and short.finished and short.runs == 24
    state, inner = replay(short.log, range(24), max_runs=500), machine(STEP, 3)
    for event in short.log:
        if event["event"] == "block":
            inner([int(build) for build in event["builds"]])  # so that chance stands where it stood
    while (block := state.next_block()) is not None:
        state.record(block, inner(block.builds))
    assert state.result().culprit == whole.culprit == (8, 9)  # type: ignore[attr-defined]
    assert state.runs == whole.runs  # type: ignore[attr-defined]


def test_builds_of_a_log_are_their_names_unless_given() -> None:
    log, _ = log_of(STEP)
    assert replay(log).result().culprit == ("8", "9")
    with pytest.raises(ValueError, match="over other builds"):
        replay(log, range(1, 25))


@pytest.mark.parametrize("spoil", ["version", "builds", "seed", "nothing"])
def test_a_log_that_does_not_fit_is_refused(spoil: str) -> None:
    log, _ = log_of(STEP)
    if spoil == "version":
        log[0]["version"] = 99
    elif spoil == "builds":
        next(event for event in log if event["event"] == "block")["builds"] = [1, 2, 3, 4]
    elif spoil == "seed":
        log[0]["seed"] = 1
    else:
        log = []
    with pytest.raises(ValueError, match=r"not the log|would not have asked"):
        replay(log)


@given(st.lists(st.integers(0, 5), min_size=200, max_size=200), st.integers(0, 3))
@settings(max_examples=8, deadline=None)
def test_several_machines_may_work_at_a_time(choices: list[int], seed: int) -> None:
    state, inner = Search(range(24), seed=seed), machine(STEP, seed)
    flying: list[Block[int]] = []
    for choice in choices:
        block = state.next_block() if len(flying) < 3 else None
        if block is not None:
            flying.append(block)
        elif not flying:
            break
        if choice == 5 and flying:
            state.withdraw(flying.pop())
        elif choice < 4 and flying:
            done = flying.pop(choice % len(flying))
            state.record(done, inner(done.builds))
        assert set(state.pending) == {block.number for block in flying}
    result = state.result()
    assert all(guilty(STEP, step.good, step.bad) for step in result.steps)
    assert replay(json.loads(json.dumps(state.log)), range(24)).result() == result


def test_blocks_in_flight_search_different_builds() -> None:
    state, inner = Search(range(60)), machine(World(stepped(60, {20: 4.0})))
    while state.progress().stage == "gate":
        block = state.next_block()
        assert block is not None
        state.record(block, inner(block.builds))
    blocks = [state.next_block() for _ in range(3)]
    asked = [set(block.builds) - {0, 59} for block in blocks if block is not None]
    assert len(asked) == 3 and len(set.union(*asked)) == 6


@pytest.mark.parametrize("factor", [0.5, 0.8, 0.98])
@pytest.mark.parametrize("noise", [0.0, 1e-4, 0.002])
def test_a_change_the_other_way_is_not_what_is_searched(factor: float, noise: float) -> None:
    draw = np.random.default_rng(1)

    def measure(builds: Sequence[int]) -> list[float]:
        return [
            (factor if build >= 8 else 1.0) * math.exp(noise * draw.standard_normal()) for build in builds
        ]

    assert search(range(11), measure).kind == "not_reproduced"
    assert search(range(11), measure, direction="faster").culprit == (7, 8)


def test_two_workers_that_take_turns_come_to_an_end() -> None:
    truth = [1.0] * 6 + [1.3] * 5
    state = Search(list(range(11)))
    flying = [state.next_block(), state.next_block()]
    for turn in range(100):
        done = flying[turn % 2]
        assert done is not None
        state.record(done, [truth[build] for build in done.builds])
        flying[turn % 2] = state.next_block()
        if flying[turn % 2] is None:
            break
    assert state.result().culprit == (5, 6)
    assert state.runs <= 80


def test_blocks_in_flight_count_for_the_budget() -> None:
    state = Search(range(10), max_runs=10)
    first, second = state.next_block(), state.next_block()
    assert first is not None and second is not None and state.next_block() is None
    assert state.done and not state.result().finished
    state.withdraw(first)
    assert state.next_block() is not None


# Wrong use


def test_wrong_use_is_refused() -> None:
    for wrong in ({"error_rate": 0.0}, {"error_rate": 0.6}, {"direction": "up"}):
        with pytest.raises(ValueError, match=r"error rate|direction"):
            Search([1, 2], **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="two builds, not 1"):
        Search([1])
    state = Search([1, 2])
    block = state.next_block()
    assert block is not None
    for values in ([1.0] * 3, [1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, float("nan")]):
        with pytest.raises(ValueError, match=r"values for a block|not a positive number"):
            state.record(block, values)
    assert state.pending == (block.number,) and state.runs == 0
    state.record(block, [1.0] * 4)
    for again in (lambda: state.record(block, [1.0] * 4), lambda: state.withdraw(block)):
        with pytest.raises(ValueError, match="not in flight"):
            again()


def test_hunts_share_the_evidence_of_a_pair() -> None:
    levels = Levels(0.05)
    first, second = (Hunt(low, 4, grid("slower"), levels) for low in (0, 2))
    for hunt in (first, second):
        hunt.stage, hunt.pair = "certificate", (2, 3)
        hunt.advance([hunt.low, 2, 3, 4] if hunt.low == 0 else [2, 3, 4])
    block = Measured("certificate", (2, 3), (2, 3, 3, 2), np.log([1.0, 1.04, 1.05, 1.01]))
    first.add(block)
    (test,) = levels.tests.values()
    evidence = test.log_evidence
    assert test.blocks == 1 and evidence > 0
    second.know(block)  # it was told already
    assert (test.blocks, test.log_evidence) == (1, evidence)
    level = levels.certificate((2, 3))
    spent = [levels.certificate((i, i + 1)) for i in range(50)]
    assert spent[2] == level and levels.gate + sum(spent) <= 0.05 + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("effect", [1.0, 2.0])
def test_second_hunts_end_well(effect: float) -> None:
    for seed in range(40):
        chance = np.random.default_rng([seed, 60, 17])
        world = WORLDS["two regressions"](chance, 60, effect)
        result = search(range(60), Machine(world, chance), seed=seed)
        assert all(guilty(world, step.good, step.bad) for step in result.steps)
        assert len({step.bad for step in result.steps}) == len(result.steps)


def test_one_block_of_which_all_may_have_strayed_bounds_no_ratio() -> None:
    """Seconds of a real block, of a network's step on a machine that many shared: their ratio had no exponential."""
    state = Search(range(10), direction="either")
    block = state.next_block()
    assert block is not None
    seconds = {0: [0.0152279, 0.0140825], 9: [0.0214129, 0.0148786]}
    state.record(block, [seconds[build].pop() for build in block.builds])
    ends = state.result().ends
    assert (ends.low, ends.high) == (0.0, math.inf) and 1 < ends.value < 1.5
