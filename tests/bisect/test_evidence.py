"""Evidence that two builds differ: it holds its level on any machine, however often one looks."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_micro.bisect.evidence import Evidence
from accel_micro.bisect.likelihood import Grid, grid
from accel_micro.selfcheck.worlds import WORLDS, Machine, World

WHOLE = grid("slower")
GRID = Grid(WHOLE.steps[::3], WHOLE.noises[::2], WHOLE.shares)  # its level does not depend on the hypotheses


def evidence() -> Evidence:
    return Evidence(GRID, GRID.flat_prior())


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=5), st.data())
@settings(max_examples=50)
def test_without_a_difference_a_block_brings_none_on_average(
    values: list[float], data: st.DataObject
) -> None:
    bad = data.draw(
        st.lists(st.booleans(), min_size=len(values), max_size=len(values)).filter(
            lambda b: 0 < sum(b) < len(b)
        )
    )
    before = np.array([0.0, 0.03, 0.04, 0.01]), [False, True, True, False]
    ratios = []
    for labels in sorted(set(itertools.permutations(bad))):
        test = evidence()
        test.add(*before)
        already = test.log_evidence
        test.add(np.array(values), labels)
        ratios.append(math.exp(test.log_evidence - already))
    assert np.mean(ratios) == pytest.approx(1.0, abs=1e-6)


def run(world: World, seed: int, blocks: int, level: float) -> tuple[bool, Evidence]:
    """Whether builds 0 and 1 are told apart at any of the blocks."""
    chance = np.random.default_rng([seed, 5])
    machine, test, reached = Machine(world, chance), evidence(), False
    for _ in range(blocks):
        order = chance.permutation([0, 0, 1, 1])
        values = [value for value in machine(order) if value is not None]
        test.add(np.log(values), [bool(build) for build in order])
        reached = reached or test.reaches(level)
    return reached, test


HARD = World((0.0, 0.0), slow=0.3, drift=20.0, blocks=5.0, tails=2.5)


def test_it_holds_its_level_on_the_worst_machine_with_a_look_after_each_block() -> None:
    found = sum(run(HARD, seed, blocks=15, level=0.1)[0] for seed in range(150))
    assert found <= 25  # 15 are allowed on average; more than 25 come by chance in one of two hundred

    # The very same machine does show a difference that is there.
    different = World((0.0, 6.0), slow=0.3, drift=20.0, blocks=5.0)
    assert sum(run(different, seed, blocks=15, level=0.1)[0] for seed in range(20)) == 20


def test_the_wrong_way_is_no_evidence() -> None:
    faster = World((0.0, -3.0))
    assert not any(run(faster, seed, blocks=10, level=0.05)[0] for seed in range(30))


@pytest.mark.parametrize("name", ["plain", "one in seven slow", "heavy tails"])
def test_it_gives_up_where_nothing_is_and_not_where_something_is(name: str) -> None:
    nothing, something = (WORLDS[name](np.random.default_rng(0), 2, effect) for effect in (0.0, 2.0))
    assert sum(run(nothing, seed, 40, 1e-9)[1].is_futile() for seed in range(10)) >= 8
    assert sum(run(something, seed, 40, 1e-9)[1].is_futile() for seed in range(10)) == 0


def test_a_block_of_one_build_alone_tells_nothing() -> None:
    test = evidence()
    for bad in ([True, True], [False], []):
        test.add(np.zeros(len(bad)), bad)
    assert (test.blocks, test.log_evidence) == (0, 0.0)
    assert not test.is_futile() and not test.reaches(0.5)
