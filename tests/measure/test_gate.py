"""The gate chooses by the probe and never by what is measured."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.measure.gate import (
    FULL_SPEED,
    PRIOR_SENSITIVITY,
    TYPICAL_FULL_SPEED,
    Block,
    choose,
    fit_sensitivity,
)

speeds = st.floats(0.3, 1.1)
blocks = st.builds(Block, st.floats(1e-7, 1.0), speeds, speeds, st.floats(0.0, 2.0) | st.just(0.0))


@given(st.lists(blocks, min_size=5, max_size=60))
def test_choice_does_not_look_at_times(taken: list[Block]) -> None:
    other = [replace(block, seconds=1.0 / block.seconds) for block in taken]
    first, second = choose(taken, 5), choose(other, 5)
    chosen = [[(b.before, b.after, b.waiting) for b in side.blocks] for side in (first, second)]
    assert chosen[0] == chosen[1]


@given(st.lists(blocks, min_size=5, max_size=60), st.floats(0.01, 100))
def test_samples_scale_with_times(taken: list[Block], factor: float) -> None:
    scaled = [replace(block, seconds=block.seconds * factor) for block in taken]
    expected = [sample * factor for sample in choose(taken, 5).samples]
    assert choose(scaled, 5).samples == pytest.approx(expected, rel=1e-6)


@given(st.lists(blocks, min_size=5, max_size=60))
def test_full_speed_comes_first_and_is_left_as_it_is(taken: list[Block]) -> None:
    chosen = choose(taken, 5)
    full = sum(block.at_full_speed for block in taken)
    assert sum(block.at_full_speed for block in chosen.blocks) == min(5, full)
    assert 0.0 <= chosen.sensitivity <= 1.0
    for block, sample in zip(chosen.blocks, chosen.samples, strict=True):
        if block.at_full_speed:
            assert sample == block.seconds
        else:
            assert sample <= block.seconds


@pytest.mark.parametrize("true", [0.0, 0.3, 0.7, 1.0])
def test_sensitivity_is_found_where_the_speed_varied(true: float) -> None:
    varied = [(0.5, 1.0)[i % 2] for i in range(100)]
    taken = [Block(1e-5 * speed**-true, speed, speed) for speed in varied]
    assert fit_sensitivity(taken) == pytest.approx(true, abs=0.05)


def test_sensitivity_is_the_prior_where_the_speed_never_varied() -> None:
    taken = [Block(1e-5, 0.6, 0.6) for _ in range(20)]
    assert fit_sensitivity(taken) == pytest.approx(PRIOR_SENSITIVITY)
    assert choose(taken, 20).samples[0] == pytest.approx(
        1e-5 * (0.6 / TYPICAL_FULL_SPEED) ** PRIOR_SENSITIVITY
    )


def test_blocks_whose_threads_had_no_core_come_last() -> None:
    waited = [Block(1e-3, 1.0, 1.0, waiting=0.5) for _ in range(30)]
    calm_but_slow = [Block(1e-5, 0.5, 0.5) for _ in range(5)]
    chosen = choose([*waited, *calm_but_slow], 5)
    assert chosen.blocks == tuple(calm_but_slow)
    assert chosen.disturbed == 0
    assert choose([*waited, *calm_but_slow], 10).disturbed == 5


def test_time_for_which_only_the_caller_had_no_core_is_taken_off() -> None:
    alone = [Block(2e-5, 1.0, 1.0, waiting=0.5, own_waiting=0.5) for _ in range(10)]
    chosen = choose(alone, 10)
    assert chosen.samples == (1e-5,) * 10
    assert chosen.disturbed == 0 and chosen.corrected == 0
    assert [block.seconds for block in chosen.blocks] == [2e-5] * 10, "raw it stays as it was read"
    assert choose(alone, 10, floor=1.5e-5).samples == (1.5e-5,) * 10


def test_a_block_in_which_others_waited_too_is_still_taken_last() -> None:
    alone = [Block(3e-5, 1.0, 1.0, waiting=0.5, own_waiting=0.5) for _ in range(5)]
    together = [Block(1e-5, 1.0, 1.0, waiting=0.5) for _ in range(5)]
    assert choose([*together, *alone], 5).samples == (1.5e-5,) * 5
    assert choose([*together, *alone], 10).disturbed == 5


def test_of_a_thread_that_hardly_ran_a_tenth_is_left() -> None:
    (sample,) = choose([Block(1e-5, 1.0, 1.0, waiting=0.99, own_waiting=0.99)], 1).samples
    assert sample == pytest.approx(1e-6)


def test_the_sensitivity_is_that_of_the_time_with_a_core() -> None:
    shares = [0.0, 0.3, 0.6]
    taken = [
        Block(1e-5 * speed**-0.5 / (1 - share), speed, speed, waiting=share, own_waiting=share)
        for speed in (0.5, 1.0) * 50
        for share in shares
    ]
    assert fit_sensitivity(taken) == pytest.approx(0.5, abs=0.05)


def test_waiting_does_not_spoil_the_sensitivity() -> None:
    calm = [Block(1e-5 * speed**-0.5, speed, speed) for speed in (0.5, 1.0) * 50]
    waited = [Block(1e-2, speed, speed, waiting=1.0) for speed in (0.5, 1.0)]
    assert fit_sensitivity([*calm, *waited]) == pytest.approx(0.5, abs=0.05)


def test_no_correction_goes_below_the_floor() -> None:
    taken = [Block(1e-5, 0.3, 0.3) for _ in range(20)]
    assert choose(taken, 20, floor=8e-6).samples == (8e-6,) * 20
    assert choose(taken, 20, floor=2e-5).samples == (1e-5,) * 20  # and none is raised to it


def test_no_correction_where_none_is_asked_for() -> None:
    taken = [Block(1e-5, 0.6, 0.6) for _ in range(20)]
    assert choose(taken, 20, correct=False).samples == (1e-5,) * 20


def test_speed_of_a_block_is_the_harmonic_mean_of_its_probes() -> None:
    block = Block(1.0, 1.0, 0.5)
    assert block.speed == pytest.approx(2 / 3)
    assert block.slowest == 0.5
    assert math.isclose(Block(1.0, FULL_SPEED, 1.0).slowest, FULL_SPEED)


def test_too_few_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="1 blocks cannot give 2 samples"):
        choose([Block(1.0, 1.0, 1.0)], 2)
