"""Who is faster at a size, where sides cross, and what is measured next."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.stats import judge
from accel_micro.stats.crossover import ALPHA, CLEAR, LOOKS, Call, Faster, call, crossings, refine

SIDES: tuple[Faster, ...] = ("baseline", "contender", "equal", "open")
LOGS: dict[Faster, float] = {"baseline": 0.3, "contender": -0.3, "equal": 0.0, "open": 0.01}


def known(faster: Faster, processes: int = 4, log: float | None = None) -> Call:
    return Call(faster, math.exp(LOGS[faster] if log is None else log), 0.0, math.inf, processes)


calls_by_size = st.dictionaries(
    st.integers(1, 10_000),
    st.tuples(st.sampled_from(SIDES), st.integers(2, 13), st.floats(0.03, 3.0)),
    max_size=12,
).map(
    lambda found: {
        size: known(side, processes, math.copysign(much, LOGS[side] or 1) * (0.01 if side == "open" else 1))
        for size, (side, processes, much) in found.items()
    }
)


def processes(*seconds: float) -> list[list[float]]:
    return [[value] * 20 for value in seconds]


def test_a_gap_that_no_spread_explains_is_decided_by_two_processes() -> None:
    slow, fast = processes(10.0, 10.2), processes(3.0, 1.0)
    found = call(slow, fast)
    assert (found.faster, found.clear, found.processes) == ("contender", True, 2)
    assert call(fast, slow).faster == "baseline"


@pytest.mark.parametrize("fast", [(3.5, 1.0), (10.0 / CLEAR, 1.0)])
def test_one_process_too_near_leaves_it_open(fast: tuple[float, float]) -> None:
    assert call(processes(10.0, 10.2), processes(*fast)).faster == "open"


def test_one_process_a_side_decides_nothing_and_neither_do_disturbed_ones() -> None:
    assert call(processes(10.0), processes(1.0)).faster == "open"
    assert call(processes(10.0, 10.0), processes(1.0, 1.0), undisturbed=False).faster == "open"


def test_a_small_difference_needs_processes_that_agree() -> None:
    base, cont = (1.00, 1.002, 0.998, 1.001), (1.10, 1.103, 1.098, 1.101)
    assert call(processes(*base), processes(*cont)).faster == "baseline"
    assert call(processes(*cont), processes(*base)).faster == "contender"
    assert call(processes(1.0, 1.3, 0.8, 1.1), processes(1.1, 1.4, 0.9, 1.2)).faster == "open"


def test_within_the_tolerance_sides_are_equal() -> None:
    base = [1.0 + 0.001 * (-1) ** i for i in range(13)]
    assert call(processes(*base), processes(*(1.002 * x for x in base))).faster == "equal"


def test_the_level_is_shared_among_sizes_and_looks() -> None:
    base, cont = processes(1.00, 1.04, 0.97, 1.02), processes(1.05, 1.09, 1.16, 1.11)
    p_value = judge(base, cont, turns=True).p_value
    assert ALPHA / 20 < p_value < ALPHA
    assert call(base, cont, sizes=1).faster == "baseline"
    assert call(base, cont).faster == "open"
    assert call(base, cont, sizes=1, share=0.01).faster == "open"


def test_speeds_as_far_apart_as_the_sides_do_not_turn_them_around() -> None:
    """Two processes of the baseline lie where all of the contender do, and of these the contender is faster."""
    base = processes(1.00, 1.005, 0.995, 1.002, 1.8, 1.799)
    cont = processes(1.73, 1.735, 1.728, 1.731, 1.729, 1.733)
    found = call(base, cont, sizes=1)
    assert found.faster == "open"
    assert "another speed" in found.reason


@pytest.mark.parametrize(
    ("sides", "where"),
    [
        ("BBCC", [(20, 30, "contender")]),
        ("CCBB", [(20, 30, "baseline")]),
        ("BOEC", [(10, 40, "contender")]),
        ("BCBC", [(10, 20, "contender"), (20, 30, "baseline"), (30, 40, "contender")]),
        ("BBBB", []),
        ("OBEO", []),
        ("OOOO", []),
    ],
)
def test_crossings_lie_between_calls_for_different_sides(
    sides: str, where: list[tuple[int, int, str]]
) -> None:
    names: dict[str, Faster] = {"B": "baseline", "C": "contender", "E": "equal", "O": "open"}
    calls = {10 * (i + 1): known(names[side]) for i, side in enumerate(sides)}
    found = crossings(calls)
    assert [(one.low, one.high, one.faster) for one in found] == where


@given(calls_by_size)
def test_the_estimate_lies_in_its_interval_and_intervals_do_not_overlap(calls: dict[int, Call]) -> None:
    found = crossings(calls)
    for one in found:
        assert one.low <= one.at <= one.high
        assert {calls[one.low].faster, calls[one.high].faster} == {"baseline", "contender"}
        assert calls[one.high].faster == one.faster
        assert all(one.low < size < one.high for size in (*one.equal, *one.open))
    assert all(before.high <= after.low for before, after in pairwise(found))


def test_the_estimate_is_where_the_straight_line_crosses() -> None:
    calls = {100: known("baseline", log=0.3), 400: known("contender", log=-0.1)}
    (one,) = crossings(calls)
    assert one.at == pytest.approx(100 * 4**0.75)


def test_noise_in_the_middle_does_not_move_the_estimate_out_of_it() -> None:
    logs = {64: 0.4, 128: -0.02, 192: 0.02, 256: -0.4}
    calls = {
        size: known("open" if abs(log) < 0.1 else "baseline" if log > 0 else "contender", log=log)
        for size, log in logs.items()
    }
    (one,) = crossings(calls)
    assert one.at == pytest.approx(math.sqrt(128 * 192))
    assert one.open == (128, 192)


def halfway(low: int, high: int) -> int | None:
    middle = round(math.sqrt(low * high))
    return middle if low < middle < high else None


def test_an_interval_is_halved_until_it_is_narrow() -> None:
    calls = {16: known("baseline"), 256: known("contender")}
    assert refine(calls, 1.2, halfway) == [64]
    assert refine({**calls, 64: known("contender")}, 1.2, halfway) == [32]
    assert refine({100: known("baseline"), 119: known("contender")}, 1.2, halfway) == []


def test_beside_an_open_size_new_sizes_come_before_more_processes() -> None:
    calls = {100: known("baseline"), 200: known("open"), 300: known("contender")}
    assert refine(calls, 1.2, halfway) == [141], "the wider of the gaps beside it"
    close = {181: known("baseline"), 200: known("open"), 220: known("contender")}
    assert refine(close, 1.2, halfway) == [200]
    spent = {**close, 200: known("open", processes=LOOKS.processes[-1])}
    assert refine(spent, 1.2, halfway) == []


def test_open_sizes_elsewhere_come_last() -> None:
    calls = {16: known("open"), 64: known("baseline"), 256: known("contender"), 999: known("open", 6)}
    assert refine(calls, 1.2, halfway) == [128]
    assert refine(calls, 5.0, halfway) == [16, 999]
    assert refine(calls, 1.2, lambda low, high: None) == [16, 999]


@given(calls_by_size, st.floats(1.01, 4.0))
def test_what_is_proposed_can_be_measured(calls: dict[int, Call], factor: float) -> None:
    proposed = refine(calls, factor, halfway)
    assert len(set(proposed)) == len(proposed)
    for size in proposed:
        if size in calls:
            assert calls[size].faster == "open" and calls[size].processes < LOOKS.processes[-1]
