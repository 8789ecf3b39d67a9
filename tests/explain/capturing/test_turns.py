"""What a mode adds to a step's calls, taken off the gaps between them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.explain.capturing.turns import without

ROWS = st.lists(st.tuples(st.floats(0, 1e-2), st.integers(1, 500)), min_size=1, max_size=20)


def test_no_call_loses_more_than_the_gap_before_it() -> None:
    assert list(without(8.0, [10.0, 1.0, 30.0], [1, 1, 2])) == pytest.approx(
        [10.0 - 7 / 3, 0.0, 30.0 - 14 / 3]
    )
    assert list(without(3.0, [10.0, 1.0], [1, 2])) == pytest.approx([8.0, 0.0])
    assert list(without(50.0, [10.0, 1.0], [1, 2])) == [0.0, 0.0]
    assert list(without(-3.0, [10.0, 1.0], [1, 2])) == pytest.approx([11.0, 3.0])
    assert list(without(0.0, [0.0, 0.0], [1, 2])) == [0.0, 0.0]


@given(ROWS, st.floats(-1.0, 1.5))
def test_what_is_left_is_what_there_was_less_the_excess(rows: list[tuple[float, int]], share: float) -> None:
    gaps, calls = np.array([gap for gap, _ in rows]), np.array([count for _, count in rows], dtype=float)
    excess = share * gaps.sum()
    left = without(excess, gaps.tolist(), calls.tolist())
    assert left.sum() == pytest.approx(max(0.0, gaps.sum() - excess), abs=1e-12)
    assert (left >= 0).all()
    taken = (gaps - left) / calls
    assert taken.max() - taken[left > 0].min(initial=taken.max()) == pytest.approx(0.0, abs=1e-12)
