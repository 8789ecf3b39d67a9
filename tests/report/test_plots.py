"""Plots: marks stand where the numbers say, inside the plot, whatever the numbers."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_micro.measure.records import Peak, Work
from accel_micro.report import plots
from accel_micro.report.rows import collect, make_row
from accel_micro.stats.estimate import estimate
from tests.report.fixtures import cpu_records, h100_records, process

times = st.lists(st.floats(1e-9, 1e2), min_size=1, max_size=24)


def xs(path: str) -> list[float]:
    return [float(x) for x in re.findall(r"M([\d.]+)", path)]


@given(st.lists(times, min_size=1, max_size=5))
def test_every_sample_is_in_the_strip_between_its_ends(trial: list[list[float]]) -> None:
    processes = [replace(process(1.0), samples=tuple(s), raw_samples=tuple(s)) for s in trial]
    strip = plots.strip(processes, estimate(trial))
    marks = xs(strip.full)
    assert len(marks) == sum(map(len, trial))
    assert strip.corrected == ""
    assert all(0 <= x <= strip.width for x in (*marks, strip.low, strip.middle, strip.high))
    assert strip.low <= strip.middle <= strip.high
    in_time_order = [x for _, x in sorted(zip([s for p in trial for s in p], marks, strict=True))]
    assert in_time_order == sorted(in_time_order)


def test_corrected_samples_are_told_apart() -> None:
    one = process(1e-5, slow=(0, 7, 9))
    strip = plots.strip([one], estimate([one.samples]))
    assert (len(xs(strip.corrected)), len(xs(strip.full))) == (3, 17)
    assert "v6" in strip.corrected
    assert "h0" in strip.full


def test_the_ends_of_a_strip_are_named() -> None:
    samples = (0.9, 1.0, 1.0, 1.0, 3.0)
    strip = plots.strip([replace(process(1.0), samples=samples, raw_samples=samples)], estimate([samples]))
    assert (strip.below, strip.above) == ("−10 %", "×3.0")
    samples = (0.001, 1.0, 1.0, 1.0, 1.3)
    strip = plots.strip([replace(process(1.0), samples=samples, raw_samples=samples)], estimate([samples]))
    assert (strip.below, strip.above) == ("÷1000", "+30 %")


def test_tiny_scatter_does_not_fill_the_strip() -> None:
    one = process(1e-5, noise=1e-5)
    marks = xs(plots.strip([one], estimate([one.samples])).full)
    assert max(marks) - min(marks) < 2


def test_bars_are_shares_of_the_longer_clock() -> None:
    small = collect(h100_records()).rows[0]
    bar = plots.bound_bar(small)
    assert bar is not None
    assert bar.dispatch == 100
    assert bar.device == pytest.approx(100 * 4.0 / 14.7, rel=0.02)
    assert plots.bound_bar(collect(cpu_records()).rows[0]) is None


def test_a_roofline_for_each_device_and_dtype_with_points_below_the_roof() -> None:
    rows = [row for family in collect(h100_records()).families for row in family.rows]
    found = plots.rooflines(rows)
    assert [(plot.device, plot.dtype) for plot in found] == [("cuda", "float32"), ("cuda", "bfloat16")]
    assert sorted(point.index for plot in found for point in plot.points) == list(range(len(rows)))
    for plot in found:
        tops = [roof.y + 6 for roof in plot.roofs if not roof.turn]
        for point in plot.points:
            row = rows[point.index]
            assert (row.case.device, row.case.dtype) == (plot.device, plot.dtype)
            assert plot.left <= point.x <= plot.right
            assert min(tops) <= point.y <= plot.bottom
            assert point.launch_bound == (row.bound == "launch-bound")
            if point.device_y is not None:
                assert point.device_y < point.y, "the device alone is faster than launching lets it be"


def test_no_roofline_without_peaks_or_intensity() -> None:
    records = cpu_records()
    assert plots.rooflines([make_row([replace(records[0], peak=None)])]) == ()
    assert plots.rooflines([make_row([replace(records[0], peak=Peak(None, 1e9))])]) == ()
    assert plots.rooflines([make_row([replace(records[0], work=Work(0.0, 1e3))])]) == ()
    assert plots.rooflines([]) == ()


positive = st.floats(1e-3, 1e18)


@settings(max_examples=200)
@given(positive, positive, positive, positive)
def test_rooflines_of_any_numbers_stay_inside(
    flops: float, size: float, peak: float, bandwidth: float
) -> None:
    row = make_row([replace(cpu_records()[0], work=Work(flops, size), peak=Peak(peak, bandwidth))])
    (plot,) = plots.rooflines([row])
    places = [(point.x, point.y) for point in plot.points]
    for roof in plot.roofs:
        numbers = [float(n) for n in re.findall(r"[\d.]+", roof.path)]
        places += [(numbers[0], numbers[1]), (numbers[2], numbers[3] if len(numbers) > 3 else numbers[1])]
    for x, y in places:
        assert plot.left - 1 <= x <= plot.right + 1
        assert plot.top - 1 <= y <= plot.bottom + 1
    assert all(tick.text for tick in (*plot.x_ticks, *plot.y_ticks))
