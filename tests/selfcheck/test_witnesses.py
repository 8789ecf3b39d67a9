"""What knows how long work takes, as far as that can be told without a GPU."""

from time import perf_counter

from accel_micro.selfcheck.peers.witnesses import KnownSpin, after, between


def test_a_spin_knows_most_of_the_time_that_its_calls_take() -> None:
    spin = KnownSpin(20_000)
    start = perf_counter()
    for _ in range(20):
        spin()
    whole = perf_counter() - start
    assert len(spin.lengths) == 20
    assert 0 < sum(spin.lengths) <= whole
    assert 0 < spin.known() <= whole
    assert spin.lengths == []


def test_a_longer_spin_makes_more_rounds() -> None:
    assert KnownSpin.of(1e-3).rounds > 10 * KnownSpin.of(1e-5).rounds


def test_the_events_of_a_call_lie_between_its_mark_and_the_next_flush() -> None:
    events = ["flush", "spin", "a1", "b1", "flush", "spin", "a2", "b2", "flush", "spin", "a3", "b3"]
    assert between(events, lambda event: event == "spin") == [["a1", "b1"], ["a2", "b2"], ["a3", "b3"]]
    assert between([], lambda event: True) == []


def test_the_events_of_a_turn_come_after_its_mark() -> None:
    events = ["left over", "spin", "a", "b", "spin", "a", "b"]
    assert after(events, lambda event: event == "spin") == [["a", "b"], ["a", "b"]]
    assert after([], lambda event: True) == []
