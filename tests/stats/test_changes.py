"""Change points: false alarms and hits in simulated worlds, and what must hold for any series."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_micro.stats.changes import FEWEST, Point, find_changes
from tests.stats.series import SECONDS, WORLDS, World, step

SERIES = 120
WORLD = {world.name: world for world in WORLDS}


def hit_rate(world: World, size: float, after: int, builds: int = 60) -> float:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(SERIES):
        found = find_changes(world.series(rng, builds, step(builds, after, size)))
        hits += any(abs(change.index - (builds - after)) <= 1 for change in found)
    return hits / SERIES


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_a_world_without_changes_rarely_has_one_proposed(world: World) -> None:
    rng = np.random.default_rng(4)
    alarms = sum(bool(find_changes(world.series(rng, 60))) for _ in range(SERIES))
    # At a true rate of 5 %, 13 or more of 120 are one in a hundred.
    assert alarms <= 12, f"{alarms} of {SERIES}"


@pytest.mark.parametrize(
    ("world", "size", "after", "least"),
    [
        ("iid 1 %", 0.05, 3, 0.9),
        ("iid 1 %", 0.05, 15, 0.9),
        ("iid 1 %", 0.1, 3, 0.95),
        ("iid 0.5 %", 0.03, 15, 0.95),
        ("iid 2 %", 0.1, 3, 0.9),
        ("AR .6, 1 %", 0.05, 15, 0.8),
        ("AR .6, 1 %", 0.1, 3, 0.9),
        ("5 % outliers, 1 %", 0.05, 15, 0.9),
        ("bimodal .15, 1 %", 0.05, 15, 0.85),
        ("drift 3 %, 1 %", 0.05, 15, 0.85),
        ("sessions 1 %, 3 processes 1 %", 0.1, 3, 0.9),
    ],
)
def test_a_step_is_found_within_a_build(world: str, size: float, after: int, least: float) -> None:
    assert hit_rate(WORLD[world], size, after) >= least


def test_one_build_alone_is_never_a_change() -> None:
    world, rng = WORLD["iid 1 %"], np.random.default_rng(6)
    for place in (0, 1, 30, 58, 59):
        for size in (0.05, 0.3, 1.0):
            level = np.zeros(60)
            level[place] = np.log1p(size)
            assert find_changes(world.series(rng, 60, level)) == []


def test_two_steps_are_two_changes_with_their_segments() -> None:
    level = np.concatenate([np.zeros(20), np.full(20, math.log(1.1)), np.full(20, math.log(1.04))])
    first, second = find_changes(WORLD["iid 1 %"].series(np.random.default_rng(7), 60, level))
    assert abs(first.index - 20) <= 1
    assert abs(second.index - 40) <= 1
    assert first.after == second.before
    assert (first.before.first, second.after.end) == (0, 60)
    assert first.ratio == pytest.approx(1.1, abs=0.02)
    assert second.ratio == pytest.approx(1.04 / 1.1, abs=0.02)
    assert first.before.seconds == pytest.approx(SECONDS, rel=0.01)


def test_the_interval_of_a_ratio_covers_it_and_the_range_the_place() -> None:
    rng, covered, held, found = np.random.default_rng(8), 0, 0, 0
    for _ in range(200):
        for change in find_changes(WORLD["iid 1 %"].series(rng, 60, step(60, 20, 0.05))):
            found += 1
            covered += change.ratio_low <= 1.05 <= change.ratio_high
            held += change.earliest <= 40 <= change.latest
    assert found >= 190
    assert covered / found >= 0.9
    assert held / found >= 0.93


def test_a_floor_hides_smaller_steps() -> None:
    series = WORLD["iid 0.5 %"].series(np.random.default_rng(9), 60, step(60, 30, 0.04))
    assert len(find_changes(series, floor=0.02)) == 1
    assert find_changes(series, floor=0.08) == []


def test_builds_of_more_processes_count_for_more() -> None:
    rng, level = np.random.default_rng(10), step(40, 20, 0.06)
    weighted = unweighted = 0
    for _ in range(60):
        series = []
        for at, count in zip(level, [1, 10] * 20, strict=True):
            series.append(Point(tuple((SECONDS * np.exp(at + 0.03 * rng.standard_normal(count))).tolist())))
        alike = [Point((float(np.median(point.processes)),)) for point in series]
        weighted += any(abs(change.index - 20) <= 1 for change in find_changes(series))
        unweighted += any(abs(change.index - 20) <= 1 for change in find_changes(alike))
    assert weighted >= 42
    assert weighted > unweighted + 6


def test_noiseless_series() -> None:
    series = [Point((1.0,))] * 10 + [Point((1.1,))] * 10
    (change,) = find_changes(series)
    assert (change.index, change.earliest, change.latest) == (10, 10, 10)
    assert change.ratio == pytest.approx(1.1)
    assert find_changes([Point((1.0,))] * 20) == []


def test_few_builds_propose_nothing() -> None:
    assert find_changes([]) == []
    assert find_changes([Point((1.0,))] * 4 + [Point((2.0,))] * (FEWEST - 5)) == []


@pytest.mark.parametrize("bad", [(), (0.0,), (-1.0,), (math.nan,), (math.inf,)])
def test_what_is_no_time_is_refused(bad: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"process|seconds"):
        find_changes([Point((1.0,))] * 10 + [Point(bad)])


@pytest.mark.parametrize("floor", [0.0, -0.1, math.nan, math.inf])
def test_a_floor_must_be_positive(floor: float) -> None:
    with pytest.raises(ValueError, match="floor"):
        find_changes([Point((1.0,))] * 10, floor=floor)


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(st.floats(1e-9, 1e3), min_size=FEWEST, max_size=40),
    scale=st.sampled_from([2.0**-20, 2.0**10]),
)
def test_any_series_gives_changes_in_order_whatever_the_unit(values: list[float], scale: float) -> None:
    found = find_changes([Point((value,)) for value in values])
    again = find_changes([Point((value * scale,)) for value in values])
    indices = [change.index for change in found]
    assert indices == sorted(set(indices))
    assert all(0 < index < len(values) for index in indices)
    for change in found:
        assert change.earliest <= change.index <= change.latest
        assert change.ratio_low <= change.ratio <= change.ratio_high
        assert abs(math.log(change.ratio)) >= math.log1p(0.02) * 0.999
        assert change.score >= 1
    assert len(again) == len(found)


def test_the_same_series_gives_the_same_changes() -> None:
    series = WORLD["5 % outliers, 1 %"].series(np.random.default_rng(11), 60, step(60, 20, 0.05))
    assert find_changes(series) == find_changes(series)
