"""Any beginning of the order is spread over the whole."""

from hypothesis import given
from hypothesis import strategies as st

from accel_micro.selfcheck.spreading import in_turns, spread


@given(st.integers(0, 300))
def test_every_item_comes_once(count: int) -> None:
    assert sorted(spread(range(count))) == list(range(count))


@given(st.integers(2, 300), st.data())
def test_a_beginning_leaves_no_long_gap(count: int, data: st.DataObject) -> None:
    taken = data.draw(st.integers(1, count))
    places = sorted(spread(range(count))[:taken])
    gaps = [b - a for a, b in zip(places, [*places[1:], count], strict=True)]
    assert max(gaps) <= 2 * count / taken + 1


def test_groups_take_turns_and_end_one_by_one() -> None:
    order = list(in_turns({"a": [1, 2, 3, 4], "b": [10], "c": [20, 21]}))
    assert order == [1, 10, 20, 3, 21, 2, 4]


def test_nothing_gives_nothing() -> None:
    assert list(in_turns({})) == []
    assert list(in_turns({"a": []})) == []
