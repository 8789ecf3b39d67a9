"""Cold inputs: how many sets, that calls really take them in turn, and what cannot be cold."""

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_micro.devices import peaks
from accel_micro.devices.base import Device
from accel_micro.devices.cpu import Cpu
from accel_micro.host.caches import Cache
from accel_micro.measure.blocks import Blocks
from accel_micro.measure.case import measure_case
from accel_micro.measure.cold import MOST_BYTES, MOST_SETS, Footprint, NotCold, plan
from accel_micro.measure.inputs import Inputs, Timed
from accel_micro.measure.prepared import Prepared
from accel_micro.measure.records import Case, Record
from accel_micro.measure.rotation import rotating
from accel_micro.measure.sampling import Sampler
from tests.fake import Clock, FakeDevice

CPU = torch.device("cpu")
CACHE = 64 << 10
MIB = 1 << 20


class Cached(FakeDevice):
    """A device with a cache and some free memory."""

    def __init__(self, cache: Cache | None, free: int | None = None) -> None:
        super().__init__(Clock())
        self.cache, self.free = cache, free

    def last_level_cache(self) -> Cache | None:
        return self.cache

    def free_memory_bytes(self) -> int | None:
        return self.free


# How many sets


@settings(deadline=None)
@given(st.integers(1, 10**10).map(float), st.integers(1, 1 << 31))  # bytes are whole
def test_sets_exceed_the_cache_twice_and_are_no_more_than_that_needs(read: float, cache: int) -> None:
    device = Cached(Cache(cache, "paper"))
    needed = 2 * cache / read + 1
    try:
        cold = plan(Footprint(read, read), device)
    except NotCold as reason:
        assert needed >= MOST_SETS or max(2, needed) * read > MOST_BYTES, reason
        return
    assert cold.sets * cold.read_bytes > 2 * cache
    assert cold.sets == 2 or (cold.sets - 1) * cold.read_bytes <= 2 * cache
    assert (cold.cache_bytes, cold.cache, cold.assumed) == (cache, "paper", False)


@pytest.mark.parametrize(
    ("footprint", "device", "message"),
    [
        (Footprint(MIB, MIB), Cached(None), "nothing tells how large the caches of fake are"),
        (Footprint(0, MIB), Cached(Cache(MIB, "")), "reads nothing of its inputs"),
        (Footprint(8, 8), Cached(Cache(32 * MIB, "")), "takes 8388609 input sets, and 4096 are the most"),
        (
            Footprint(MIB, 4 * MIB),
            Cached(Cache(32 * MIB, ""), free=500 * MIB),
            "2 × 32 MiB of cache takes 65 input sets, 260 MiB with their results, and 250 MiB are the most here",
        ),
        (
            Footprint(MIB, 100 * MIB),
            Cached(Cache(32 * MIB, "")),
            "6.35 GiB with their results, and 4 GiB are the most here",
        ),
    ],
)
def test_what_cannot_be_cold_is_said(footprint: Footprint, device: Device, message: str) -> None:
    with pytest.raises(NotCold, match=message):
        plan(footprint, device)


# Of what a call reads


def footprint(build: Callable[[Inputs], Any], backward: bool = False, **stated: float) -> Footprint:
    inputs = Inputs(CPU, torch.float32, differentiate=backward)
    prepared = Prepared.of(build, inputs, backward)
    with torch.set_grad_enabled(backward):
        outputs = prepared.result(prepared.call())
        outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
        return Footprint.of(prepared, inputs, outputs, stated)


def summed(t: Inputs) -> Any:
    a, b = t(100), t(100)
    return lambda: a + b


def test_inputs_are_read_and_results_are_only_held() -> None:
    assert footprint(summed) == Footprint(800, 800 + 2 * 400)


def test_what_is_overwritten_is_of_the_set() -> None:
    def copied(t: Inputs) -> Any:
        x, out = t(100), t(100)
        return lambda: out.copy_(x)

    assert footprint(copied) == Footprint(800, 800)


def test_a_view_is_in_the_lines_of_all_its_memory() -> None:
    def strided(t: Inputs) -> Any:
        x = t(10, 200)[:, ::2]
        return lambda: x + 1

    assert footprint(strided).read_bytes == 10 * 200 * 4


def test_rows_that_are_not_picked_do_not_count() -> None:
    def picked(t: Inputs) -> Any:
        table, index = t(1000, 10), t.integers(1000, 5)
        return lambda: torch.index_select(table, 0, index)

    read = footprint(picked, bytes=5 * (8 + 2 * 10 * 4))
    assert read.read_bytes == 5 * (8 + 10 * 4)
    assert read.held_bytes == 1000 * 10 * 4 + 5 * 8 + 2 * 5 * 10 * 4


def test_a_backward_reads_what_was_saved_and_what_comes_in() -> None:
    def multiplied(t: Inputs) -> Any:
        a, b = t(100), t(100)
        return lambda: a * b

    assert footprint(multiplied, backward=True).read_bytes == 3 * 400
    assert footprint(summed, backward=True).read_bytes == 0, "its gradients are the one that came in"


# In turn


@settings(deadline=None)
@given(st.integers(1, 20), st.integers(0, 100))
def test_calls_go_round_and_results_are_kept_until_their_turn(sets: int, calls: int) -> None:
    class Result:
        pass

    log: list[int] = []
    made: list[weakref.ref[Result]] = []

    def member(number: int) -> Callable[[], Result]:
        def call() -> Result:
            log.append(number)
            result = Result()
            made.append(weakref.ref(result))
            return result

        return call

    call = rotating([member(number) for number in range(sets)])
    for _ in range(calls):
        call()
    assert log == [number % sets for number in range(calls)]
    assert [ref() is not None for ref in made] == [calls - number <= sets for number in range(calls)]


def sampled(
    sets: int, host_seconds: float, asynchronous: bool = False
) -> tuple[list[int], list[tuple[str, int]]]:
    """Which sets were called, in order; and the calls between two events of a fake device, while clocks were read."""
    device = FakeDevice(Clock(), host_seconds=host_seconds, asynchronous=asynchronous)
    log: list[int] = []

    def member(number: int) -> Callable[[], None]:
        def call() -> None:
            log.append(number)
            device.call()

        return call

    first, *others = (member(number) for number in range(sets))
    sampler = Sampler(device, first, 0.1)
    sampler.first_call()
    sampler.rotate(others)
    sampler.warm_up()
    device.clock.log.clear()
    sampler.read("throughput", 3)
    groups: list[tuple[str, int]] = []
    for what in device.clock.log:
        groups.append((what, groups.pop()[1] + 1 if groups and groups[-1][0] == what else 1))
    return log, groups


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("sets", [2, 7, 30])
def test_no_set_is_called_again_before_all_others(sets: int, asynchronous: bool) -> None:
    log, groups = sampled(sets, 100e-6, asynchronous)
    assert log[0] == 0, "the first call"
    assert log[1:] == [number % sets for number in range(len(log) - 1)], "through warm-up and all blocks"
    assert len(log) > 3 * sets
    if asynchronous:  # n/2 that do not count, n and 3n
        counts = [count for what, count in groups if what == "call"][-3:]
        assert counts[1] % sets == counts[2] % sets == 0
        assert counts[2] == 3 * counts[1]


def test_blocks_hold_whole_rounds_where_they_hold_one() -> None:
    device = FakeDevice(Clock())
    blocks = Blocks(device, device.call)
    blocks.period = 7
    blocks.seconds_per_call = 1e-3
    assert blocks.calls_for_block() == 14
    blocks.seconds_per_call = 5e-3
    assert blocks.calls_for_block() == 2, "a block of long calls is no longer than it must be"
    blocks.seconds_per_call, blocks.most_calls = 1e-3, 12
    assert blocks.calls_for_block() == 12, "what the device allows goes first"


@settings(deadline=None)
@given(st.integers(1, 500), st.floats(1e-7, 1e-1))
def test_a_round_makes_blocks_at_most_twice_as_long(period: int, seconds: float) -> None:
    device = FakeDevice(Clock())
    blocks = Blocks(device, device.call)
    blocks.seconds_per_call = seconds
    plain = blocks.calls_for_block()
    blocks.period = period
    rounded = blocks.calls_for_block()
    assert plain <= rounded < 2 * plain or rounded == plain
    assert rounded % period == 0 or rounded < period


def test_what_is_warm_does_not_rotate_any_more() -> None:
    device = FakeDevice(Clock())
    sampler = Sampler(device, device.call, 0.1)
    sampler.warm_up()
    with pytest.raises(RuntimeError, match="before the warm-up"):
        sampler.rotate([device.call])


# A case


@pytest.fixture
def small_cache(monkeypatch: pytest.MonkeyPatch, known_machine: None) -> Callable[..., None]:
    """The CPU has a cache of 64 KiB, and the rate behind it is known."""

    def have(assumed: bool = False) -> None:
        monkeypatch.setattr(Cpu, "last_level_cache", lambda self: Cache(CACHE, "paper", assumed))

    monkeypatch.setattr(peaks, "_measure_bytes", lambda device, sizes=(): {str(size): 1e13 for size in sizes})
    have()
    return have


def measured(build: Callable[[Inputs], Any], shape: str, direction: str = "forward") -> Record:
    case = Case("family.op", direction, "cpu", "float32", shape)
    return measure_case(case, build, clocks=("throughput",), samples=3, budget_seconds=0.05)


def noting(log: list[int], sets: list[Inputs]) -> Callable[[Inputs], Any]:
    def build(t: Inputs) -> Any:
        a, b = t(32, 32), t(32, 32)
        number = -1 if t.reference else len(sets)
        if not t.reference:
            sets.append(t)

        def call() -> torch.Tensor:
            log.append(number)
            return a @ b

        return call

    return build


@pytest.mark.usefixtures("small_cache")
def test_a_cold_case_rotates_over_sets_of_the_same_values() -> None:
    log: list[int] = []
    sets: list[Inputs] = []
    record = measured(noting(log, sets), "m=32 cache=cold")
    assert record.failure is None
    assert record.skipped is None
    assert record.cold is not None
    assert record.cold.sets == len(sets) == 2 * CACHE // 8192 + 1
    assert record.cold.read_bytes == 2 * 4 * 32**2
    assert record.work is not None and record.work.bytes == 3 * 4 * 32**2, "work is that of one call"
    assert record.peak_memory_bytes == 4 * 32**2
    for others in sets[1:]:
        assert others.further
        for one, other in zip(sets[0].made, others.made, strict=True):
            assert torch.equal(one, other)
            assert one.data_ptr() != other.data_ptr()
    timed = log[log.index(1) - 1 :]  # the first call, the counter and the reference came before
    assert timed[: 3 * len(sets)] == [*range(len(sets))] * 3
    assert record.clocks["throughput"].calls_per_block % len(sets) == 0
    assert not any(flag.name == "cache assumed" for flag in record.clocks["throughput"].flags)


@pytest.mark.usefixtures("small_cache")
def test_a_hot_case_has_one_set() -> None:
    log: list[int] = []
    sets: list[Inputs] = []
    record = measured(noting(log, sets), "m=32")
    assert record.cold is None
    assert len(sets) == 1
    assert set(log) == {0, -1}


def test_a_cache_that_nobody_tells_is_flagged(small_cache: Callable[..., None]) -> None:
    small_cache(assumed=True)
    record = measured(noting([], []), "m=32 cache=cold")
    assert [(f.name, f.detail) for f in record.clocks["throughput"].flags if f.name == "cache assumed"] == [
        ("cache assumed", "paper")
    ]
    assert record.cold is not None and record.cold.assumed


@pytest.mark.usefixtures("small_cache")
def test_each_set_has_a_graph_of_its_own_for_backward() -> None:
    sets: list[Inputs] = []
    record = measured(noting([], sets), "m=32 cache=cold", "backward")
    assert record.failure is None
    assert record.cold is not None
    assert record.cold.read_bytes == 3 * 4 * 32**2
    assert len(sets) == record.cold.sets
    assert all(len(each.leaves) == 2 for each in sets)


@pytest.mark.usefixtures("small_cache")
def test_a_step_in_place_rotates_too() -> None:
    steps: list[int] = []

    def build(t: Inputs) -> Any:
        x, number = t(1024), len(steps)
        steps.append(0)

        def step() -> None:
            steps[number] += 1
            x.mul_(0.999)

        return Timed(step, lambda: x)

    record = measured(build, "n=1024 cache=cold")
    assert record.failure is None
    assert record.cold is not None
    timed = [*steps[:1], *steps[2:]]  # the second is the reference's
    assert len(timed) == record.cold.sets
    assert max(timed[1:]) - min(timed[1:]) <= 1


@pytest.mark.usefixtures("small_cache")
def test_what_cannot_be_cold_is_skipped_and_never_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cpu, "free_memory_bytes", lambda self: 100_000)
    record = measured(noting([], []), "m=32 cache=cold")
    assert not record.clocks
    assert record.failure is None
    assert record.skipped == (
        "not timed with cold inputs: to exceed 2 × 64 KiB of cache takes 17 input sets, "
        "272 KiB with their results, and 48.8 KiB are the most here"
    )
    backward = measured(lambda t: summed(t), "n=100 cache=cold", "backward")
    assert str(backward.skipped).startswith("not timed with cold inputs: a call reads nothing of its inputs")


def test_rates_are_held_against_memory_and_not_against_the_cache(
    monkeypatch: pytest.MonkeyPatch, known_machine: None
) -> None:
    asked: list[tuple[int, ...]] = []

    def ladder(device: Device, sizes: tuple[int, ...] = ()) -> dict[str, float]:
        asked.append(tuple(sizes))
        return {str(size): 1e3 for size in sizes}

    monkeypatch.setattr(Cpu, "last_level_cache", lambda self: Cache(CACHE, "paper"))
    monkeypatch.setattr(peaks, "_measure_bytes", ladder)
    record = measured(noting([], []), "m=32 cache=cold")
    assert record.failure is not None
    assert record.failure.kind == "implausible"
    assert "B/s" in record.failure.detail
    assert set(asked) == {(), (131072,)}, (
        "17 × 8192 bytes, rounded down to a power of two; both measured again"
    )
    assert measured(noting([], []), "m=32").failure is None, "the hot case is held against the cache"
