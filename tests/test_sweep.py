"""Shapes with ranges: what they stand for, and the sizes in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.sweep import MOST_COARSE, Sweep

ends = st.tuples(st.integers(1, 5000), st.integers(2, 100_000)).map(lambda pair: (pair[0], pair[0] * pair[1]))
sweeps = ends.map(lambda pair: Sweep.parse(f"n={pair[0]}..{pair[1]}"))


def test_a_range_is_the_size_wherever_it_stands() -> None:
    sweep = Sweep.parse("gpt2: b=1 q=16..64 kv=16..64 causal=True")
    assert (sweep.names, sweep.low, sweep.high) == (("q", "kv"), 16, 64)
    assert sweep.shape(48) == "gpt2: b=1 q=48 kv=48 causal=True"
    assert (sweep.label, sweep.rest) == ("q=kv", "gpt2: b=1 causal=True")
    assert Sweep.parse("n=1..8").rest == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("n=16", "one range"),
        ("n=1..4 m=1..8", "not 2"),
        ("n=8..8", "does not ascend"),
        ("n=0..8", "from 1 or more"),
        ("1..8: n=4", "one range"),
    ],
)
def test_what_is_no_sweep_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Sweep.parse(text)


@given(sweeps)
def test_it_begins_with_few_sizes_from_end_to_end(sweep: Sweep) -> None:
    grid = sweep.grid()
    assert grid[0] == sweep.low and grid[-1] == sweep.high
    assert list(grid) == sorted(set(grid))
    assert 2 <= len(grid) <= MOST_COARSE


def test_sizes_are_about_a_factor_four_apart() -> None:
    assert Sweep.parse("m=16..4096 n=16..4096").grid() == (16, 64, 256, 1024, 4096)
    assert Sweep.parse("n=1..2").grid() == (1, 2)


@given(sweeps, st.data())
def test_between_two_sizes_lies_one_or_they_are_close(sweep: Sweep, data: st.DataObject) -> None:
    low = data.draw(st.sampled_from(sweep.grid()[:-1]))
    high = sweep.grid()[sweep.grid().index(low) + 1]
    for _ in range(60):
        middle = sweep.between(low, high)
        if middle is None:
            break
        assert low < middle < high
        assert middle % sweep.low == 0
        low, high = (low, middle) if data.draw(st.booleans()) else (middle, high)
    assert high - low <= 2 * sweep.low or high / low < 1.2


@given(sweeps, st.floats(1.0, 1e6))
def test_the_largest_size_up_to_one_is_no_larger(sweep: Sweep, factor: float) -> None:
    found = sweep.at_most(sweep.low * factor)
    assert sweep.low <= found <= min(sweep.high, max(sweep.low * factor, sweep.low))
    assert found * 1.25 >= min(sweep.high, sweep.low * factor) or found >= sweep.low * (factor - 1)


@given(sweeps)
def test_it_covers_its_own_shapes_and_no_others(sweep: Sweep) -> None:
    for size in sweep.grid():
        assert sweep.covers(sweep.shape(size))
    assert not sweep.covers(sweep.shape(sweep.high + 1))
    assert not sweep.covers("m=1")
    assert not sweep.covers(sweep.text)


def test_all_arguments_of_the_size_must_be_equal() -> None:
    sweep = Sweep.parse("m=16..64 n=16..64 name=a.b")
    assert sweep.covers("m=32 n=32 name=a.b")
    assert not sweep.covers("m=32 n=48 name=a.b")
    assert not sweep.covers("m=32 n=32 name=axb")


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ([{"n": 1000}, {"n": 16}], "n=16..1000"),
        ([{"n": 1000000}, {"n": 16777216}], "n=1024..16777216"),
        ([{"n": 1000}], None),
        ([{"n": 1000}, {"m": 16}], None),
        ([{"n": 1, "m": 2}, {"n": 2, "m": 4}], None),
        ([{"p": 0.5}, {"p": 0.9}], None),
        ([{"causal": True}, {"causal": False}], None),
        ([], None),
    ],
)
def test_an_op_with_one_number_is_swept_over_it(shapes: list[dict[str, object]], text: str | None) -> None:
    found = Sweep.over_only_number(shapes)
    assert (found.text if found else None) == text
