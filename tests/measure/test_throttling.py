"""Whether a clock was held down during a block: by the reasons on its sides, and by counters that went on."""

from hypothesis import given
from hypothesis import strategies as st

from accel_micro.devices.base import WatchState
from accel_micro.measure.gate import Block, choose
from accel_micro.measure.throttling import LITTLE_HELD, Seen, reasons

WORDS = st.sampled_from(["power cap", "sync boost", "hardware slowdown"])
STATES = st.builds(WatchState, st.lists(WORDS, unique=True).map(tuple))


@given(STATES, STATES)
def test_a_reason_on_either_side_counts_once(before: WatchState, after: WatchState) -> None:
    found = reasons(before, after, 1.0)
    assert set(found) == set(before.reasons) | set(after.reasons)
    assert len(found) == len(set(found))


@given(st.floats(0, 1e6), st.floats(0, 1), st.floats(1e-3, 10))
def test_a_counter_counts_by_its_share_of_the_block(start: float, share: float, seconds: float) -> None:
    before = WatchState(held_seconds={"power cap": start})
    after = WatchState(held_seconds={"power cap": start + share * seconds})
    found = reasons(before, after, seconds)
    if abs(share - LITTLE_HELD) > 1e-3:
        assert bool(found) == (share > LITTLE_HELD)


def test_a_counter_that_was_not_there_before_says_nothing() -> None:
    assert reasons(WatchState(), WatchState(held_seconds={"power cap": 99.0}), 1.0) == ()


def test_blocks_that_were_held_down_are_taken_last_whatever_they_took() -> None:
    held = [Block(1.0, 1.0, 1.0, throttled=("power cap",)) for _ in range(3)]
    slow_probe = [Block(9.0, 0.95, 0.95) for _ in range(3)]
    assert choose([*held, *slow_probe], 3).blocks == tuple(slow_probe)
    assert not any(block.at_full_speed for block in held)
    assert choose([*held, *slow_probe], 4).blocks[0] == held[0]


def test_what_was_seen_is_summed_up() -> None:
    seen = Seen()
    assert seen.facts() == {"throttled_blocks": {}}
    seen.note(WatchState(hertz=2e9, celsius=60), WatchState(hertz=1.5e9), ("power cap",))
    seen.note(WatchState(), WatchState(celsius=70), ("power cap", "sync boost"))
    assert seen.facts() == {
        "throttled_blocks": {"power cap": 2, "sync boost": 1},
        "lowest_hertz": 1.5e9,
        "highest_hertz": 2e9,
        "lowest_celsius": 60,
        "highest_celsius": 70,
    }
