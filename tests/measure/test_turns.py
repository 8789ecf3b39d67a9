"""Clocks take turns until each has enough."""

from collections.abc import Iterator

import pytest

from accel_micro.devices.base import QueueTooShort, WatchState
from accel_micro.measure.turns import Reader, take_turns, throughput_over_larger


def reader(
    clock: str, speeds: Iterator[float], seconds: float = 1e-3, reference: float | None = 1.0
) -> Reader:
    return Reader(clock, 10, lambda: seconds, lambda: next(speeds), reference, by_device=reference is None)


def constantly(value: float) -> Iterator[float]:
    while True:
        yield value


def test_they_alternate_and_stop_when_done() -> None:
    log: list[str] = []
    readers = [
        Reader(name, 1, lambda name=name: log.append(name) or 1e-3, lambda: 1.0, 1.0, False)  # type: ignore[misc]
        for name in ("throughput", "latency")
    ]
    take_turns(readers, 3, 100.0, now=lambda: 0.0)
    assert log == ["throughput", "latency"] * 3


def test_only_those_that_lack_full_speed_go_on() -> None:
    time = iter(range(1000))
    good, bad = reader("throughput", constantly(1.0)), reader("latency", constantly(0.5))
    take_turns([good, bad], 4, budget_seconds=10, now=lambda: float(next(time)))
    assert len(good.blocks()) == 4
    assert 4 < len(bad.blocks()) < 4 + 10


def test_a_reader_that_found_the_cores_taken_gets_overtime_until_they_are_free() -> None:
    clock = [0.0]
    waited = [0.0]

    def block() -> float:
        clock[0] += 1.0
        waited[0] += 0.5 if clock[0] <= 15 else 0.0
        return 1e-3

    disturbed = Reader(
        "throughput", 1, block, lambda: 1.0, 1.0, False, waited=lambda: waited[0], now=lambda: clock[0]
    )
    take_turns([disturbed], 4, budget_seconds=10, now=lambda: clock[0])
    assert len(disturbed.blocks()) == 19  # as soon as there are four calm blocks
    assert not disturbed.is_disturbed(4)


def test_a_reader_without_a_reference_takes_its_own_fast_percentile() -> None:
    speeds = iter([100.0] * 10 + [110.0] * 10)
    clock = reader("device", speeds, reference=None)
    take_turns([clock], 10, 0.0, now=lambda: 1.0)
    assert clock.reference == 110.0


def test_agreement_of_the_clocks_is_judged_turn_by_turn() -> None:
    # The machine slows half way; in every turn throughput is what dispatch is.
    slow = iter([1e-6] * 10 + [2e-6] * 10)
    other = iter([1e-6] * 10 + [2e-6] * 10)
    readers = [
        Reader("dispatch", 1, lambda: next(slow), lambda: 1.0, 1.0, False),
        reader("device", constantly(1.0), 0.1e-6),
        Reader("throughput", 1, lambda: next(other), lambda: 1.0, 1.0, False),
    ]
    take_turns(readers, 20, 0.0, now=lambda: 0.0)
    assert throughput_over_larger(readers) == pytest.approx(1.0)
    assert throughput_over_larger(readers[:2]) is None


def test_a_clock_that_becomes_unreadable_costs_itself_alone() -> None:
    blocks = iter([1e-6] * 3)

    def block() -> float:
        try:
            return next(blocks)
        except StopIteration:
            raise QueueTooShort("the host is too busy") from None

    readers = [Reader("dispatch", 1, block, lambda: 1.0, 1.0, False), reader("throughput", constantly(1.0))]
    take_turns(readers, 10, 100.0, now=lambda: 0.0)
    assert readers[0].lost == "the host is too busy"
    assert readers[1].lost is None
    assert len(readers[1].blocks()) == 10


@pytest.mark.parametrize(("always", "blocks"), [(True, 4), (False, 8)])
def test_a_call_that_is_held_down_by_its_own_load_is_not_read_in_vain(always: bool, blocks: int) -> None:
    """All of the first four blocks held down: no more. One of them free: until four are free."""
    turn = [0]

    def watch() -> WatchState:
        held = always or (
            turn[0] < 5 and turn[0] not in (1, 2)
        )  # asked before and after the block of each turn
        return WatchState(("power cap",) if held else ())

    def block() -> float:
        turn[0] += 1
        return 1e-3

    capped = Reader("device", 1, block, lambda: 1.0, None, True, watch=watch)
    take_turns([capped], 4, budget_seconds=100, now=lambda: float(turn[0]))
    assert len(capped.blocks()) == blocks


def reader_of(total: float, own: float, *, asks: bool = True) -> Reader:
    """One whose block of a second adds so many seconds of waiting to all threads, and to its own."""
    waited = {"all": 0.0, "own": 0.0}
    clock = [0.0]

    def block() -> float:
        waited["all"] += total
        waited["own"] += own
        clock[0] += 1.0
        return 1e-3

    return Reader(
        "throughput",
        1,
        block,
        lambda: 1.0,
        1.0,
        False,
        waited=lambda: waited["all"],
        own_waited=(lambda: waited["own"]) if asks else None,
        now=lambda: clock[0],
    )


@pytest.mark.parametrize(
    ("total", "own", "asks", "taken_off"),
    [
        (0.4, 0.4, True, 0.4),
        (0.41, 0.4, True, 0.4),
        (0.9, 0.4, True, 0.0),
        (0.4, 0.4, False, 0.0),
        (0.0, 0.0, True, 0.0),
    ],
)
def test_waiting_is_the_callers_own_where_no_other_thread_waited(
    total: float, own: float, asks: bool, taken_off: float
) -> None:
    reader = reader_of(total, own, asks=asks)
    reader.turn()
    (block,) = reader.blocks()
    assert block.waiting == pytest.approx(total)
    assert block.own_waiting == pytest.approx(taken_off)
    assert block.is_disturbed == (total - taken_off > 0.02)


@pytest.mark.parametrize(
    ("throughput", "share", "ratio"),
    [(1.6e-6, 1.6, 1.0), (1e-6, 0.6, 1.0), (3e-6, 1.5, 2.0), (0.1e-6, 1.2, 0.1)],
)
def test_agreement_holds_by_the_device_as_it_was_read_or_as_it_is_published(
    throughput: float, share: float, ratio: float
) -> None:
    readers = [
        reader("dispatch", constantly(1.0), 0.2e-6),
        reader("device", constantly(1.0), 1e-6),
        reader("throughput", constantly(1.0), throughput),
    ]
    take_turns(readers, 3, 0.0, now=lambda: 0.0)
    assert throughput_over_larger(readers, share) == pytest.approx(ratio)
