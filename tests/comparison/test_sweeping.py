"""Sweeping sizes of sides that do not exist: what is claimed is true, and what is measured is needed."""

import itertools
import math

import pytest

from accel_micro.comparison.sweeping import FACTOR, Line, Size, sweep
from accel_micro.measure.flags import Flag
from accel_micro.measure.records import Case, Failure, Record
from accel_micro.stats.crossover import ALPHA, CLEAR_PROCESSES, LOOKS, MOST_SIZES
from accel_micro.sweep import Sweep
from tests.comparison.sweep_worlds import SIZES, WORLDS, Machine, World, flat, line, notch, swept, tally

RUNS = 60
STEEP = WORLDS["steep"]


@pytest.mark.parametrize("name", WORLDS)
def test_the_promised_error_is_kept(name: str) -> None:
    """No size on the wrong side in more than 5 of 100 sweeps, so no interval without a crossing in more."""
    world = WORLDS[name]
    told = tally(world, range(RUNS))
    allowed = ALPHA * RUNS + 2 * math.sqrt(ALPHA * (1 - ALPHA) * RUNS)
    assert told.wrong <= allowed
    assert told.empty <= allowed
    if len(world.crossings) == 1:
        assert told.found >= 0.9 * RUNS, "it finds the crossing"
        assert sorted(told.misses)[len(told.misses) // 2] < 0.1, "and the estimate is near"
    if not world.crossings:
        assert told.found <= allowed


def test_where_sides_differ_the_interval_becomes_as_narrow_as_asked() -> None:
    told = tally(STEEP, range(RUNS))
    sizes = SIZES.low
    assert sorted(told.widths)[RUNS // 2] <= FACTOR
    assert max(told.widths) < FACTOR + 3 * sizes / 200, "sizes are multiples of sixteen"


def test_all_crossings_are_found_that_the_sizes_can_show() -> None:
    found = swept(Machine(WORLDS["three crossings, sd 2 %"]))
    assert len(found.crossings) == 3
    assert [one.faster for one in found.crossings] == ["contender", "baseline", "contender"]


def test_a_hollow_between_first_sizes_is_not_seen_and_nothing_false_is_said() -> None:
    world = World(notch, (150, 0, 0))
    found = swept(Machine(world))
    assert all(
        (call.faster == "contender") == (notch(size) < 0)
        for size, call in found.calls.items()
        if call.faster in ("baseline", "contender")
    )


def test_a_side_that_is_faster_all_over_is_said_to_be() -> None:
    machine = Machine(World(lambda size: 1.5, ()))
    found = swept(machine)
    assert {call.faster for call in found.calls.values()} == {"baseline"}
    assert tuple(found.calls) == SIZES.grid()
    assert (found.crossings, found.open, found.stopped) == ((), (), "done")
    assert len(machine.turns) == 2 * CLEAR_PROCESSES * len(SIZES.grid()), (
        "what is clear costs two processes a side"
    )


def test_small_differences_take_more_processes_and_equality_ends_it() -> None:
    machine = Machine(World(flat, (), lambda size: 0.004))
    found = swept(machine)
    assert {call.faster for call in found.calls.values()} == {"equal"}
    assert all(call.processes in LOOKS.processes for call in found.calls.values())


def test_processes_alternate_and_no_case_has_two_of_one_server() -> None:
    machine = Machine(STEEP)
    swept(machine)
    by_size: dict[int, list[str]] = {}
    for which, size in machine.turns:
        by_size.setdefault(size, []).append(which)
    abba = ["baseline", "contender", "contender", "baseline"] * 7
    assert all(order == abba[: len(order)] for order in by_size.values())
    borders = [0, *machine.renewed, len(machine.turns)]
    for begin, end in itertools.pairwise(borders):
        served = machine.turns[begin:end]
        assert len(served) == len(set(served))


def test_the_budget_ends_it_and_what_was_measured_is_judged() -> None:
    whole = Machine(STEEP)
    swept(whole)
    machine = Machine(STEEP)
    found = swept(machine, budget_seconds=len(whole.turns) - 10)
    assert found.stopped == "budget"
    assert machine.clock <= len(whole.turns) - 10 + machine.seconds_a_process
    (one,) = found.crossings
    assert one.low <= 200 <= one.high


def test_ctrl_c_keeps_what_there_is() -> None:
    found = swept(Machine(STEEP, interrupts_at=30))
    assert found.stopped == "interrupted"
    assert found.sizes and all(len(size.baseline) == len(size.contender) for size in found.sizes)


def test_the_last_look_spends_what_is_left_and_no_more() -> None:
    found = swept(Machine(World(flat, (), lambda size: 0.05)), budget_seconds=60)
    assert all(size.call is None or size.call.faster == "open" for size in found.sizes)
    assert found.open == tuple(found.calls)


def failing(kind: str, from_size: int) -> Machine:
    case = Case("a.b", "forward", "cpu", "float32", "")

    def broken(which: str, size: int) -> Record | None:
        if which == "baseline" or size < from_size:
            return None
        return (
            Record(case, skipped="no such kernel")
            if kind == "skipped"
            else Record(case, failure=Failure(kind))
        )

    return Machine(STEEP, broken=broken)


@pytest.mark.parametrize("kind", ["out of memory", "timed out", "skipped"])
def test_what_does_not_fit_leaves_larger_sizes_out(kind: str) -> None:
    machine = failing(kind, 1024)
    found = swept(machine)
    assert max(size for _, size in machine.turns) == 1024
    (failed,) = (size for size in found.sizes if size.failure)
    assert failed.size == 1024 and failed.failure.startswith("contender: ")
    assert found.left_out.startswith("from 1024 on, contender: ")
    assert found.crossings[0].low <= 200 <= found.crossings[0].high


def test_another_failure_costs_its_own_sizes() -> None:
    machine = failing("wrong result", 1024)
    found = swept(machine)
    assert [size.size for size in found.sizes if size.failure] == [1024, 4096]
    assert found.left_out == ""


def test_sizes_that_would_take_too_long_are_replaced_by_one_that_does_not() -> None:
    machine = Machine(World(lambda size: 1.5, ()), seconds=lambda size: 1e-3 * size / 16)
    found = swept(machine)
    assert 1024 < max(found.calls) < 4096
    assert "would take more than 20 s" in found.left_out


def test_one_slow_process_among_disturbed_ones_leaves_nothing_out() -> None:
    """Something that runs meanwhile slows samples, and the fastest of them tells what a process would take."""

    class Held(Machine):
        def measure(self, subject: object, which: str, size: int) -> Record:  # type: ignore[override]
            record = super().measure(subject, which, size)  # type: ignore[arg-type]
            process = record.clocks["throughput"]
            process.__dict__["samples"] = (*(1000 * x for x in process.samples[:-1]), process.samples[-1])
            return record

    found = swept(Held(World(lambda size: 1.5, ())), budget_seconds=200)
    assert found.left_out == ""
    assert max(found.calls) == 4096


def test_disturbed_processes_decide_nothing_by_two() -> None:
    machine = Machine(World(lambda size: 1.5, ()), flags=(Flag("waited for a core"),))
    found = swept(machine)
    assert all(call.processes >= LOOKS.processes[0] for call in found.calls.values())


def test_lines_take_turns_and_each_is_answered() -> None:
    machines = {"up": Machine(STEEP), "down": Machine(World(lambda size: -line(0.7, 900)(size), (900,)))}
    clock = [0.0]

    def measure(subject: str, which: str, size: int) -> Record:
        clock[0] += 1
        return machines[subject].measure(subject, which, size)  # type: ignore[arg-type]

    told: list[str] = []
    up, down = sweep(
        [Line("up", SIZES), Line("down", SIZES)],
        measure,
        budget_seconds=10_000,
        now=lambda: clock[0],
        tell=lambda turn: told.append(turn.subject),
    )
    assert [one.faster for one in (*up.crossings, *down.crossings)] == ["contender", "baseline"]
    assert down.crossings[0].low <= 900 <= down.crossings[0].high
    assert told[:4] == ["up", "up", "down", "down"]


def test_no_more_sizes_are_measured_than_share_the_level() -> None:
    wide = Sweep.parse("n=1..1000000000")
    machine = Machine(World(lambda size: 0.5 * math.cos(math.log(size) * 1.9), ()))
    (found,) = sweep(
        [Line("op", wide)], machine.measure, budget_seconds=math.inf, factor=1.01, now=machine.now
    )
    assert len(found.sizes) <= MOST_SIZES


def test_a_size_knows_its_times() -> None:
    found = swept(Machine(STEEP))
    size = found.sizes[0]
    assert isinstance(size, Size)
    assert size.seconds("contender") == pytest.approx(1e-5 * math.exp(STEEP.curve(size.size)), rel=0.05)
    assert found.seconds_a_process == pytest.approx(1.0)


def test_a_budget_too_short_for_all_answers_the_first() -> None:
    machine = Machine(World(lambda size: 0.3, (), lambda size: 0.005))
    lines = [Line(name, SIZES) for name in ("a", "b", "c", "d")]
    first_looks = 2 * LOOKS.processes[0] * len(SIZES.grid())
    a, b, c, d = sweep(lines, machine.measure, budget_seconds=2.5 * first_looks, now=machine.now)
    assert all(call.faster == "baseline" for found in (a, b) for call in found.calls.values())
    assert tuple(a.calls) == tuple(b.calls) == SIZES.grid()
    assert {call.faster for found in (c, d) for call in found.calls.values()} <= {"open"}
    assert {c.stopped, d.stopped} == {"budget"} and {a.stopped, b.stopped} == {"done"}
