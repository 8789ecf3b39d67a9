"""The page of an explanation: whole, drawn to scale, safe."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from accel_micro.explain.attribution import explain
from accel_micro.explain.capture import Capture
from accel_micro.report.explain_page import render_page, write_page
from accel_micro.report.explain_plots import LABEL, VALUE, WIDTH, track, tracks, waterfall
from tests.explain.test_clocks import on_gpu
from tests.explain.worlds import capture, row
from tests.report.test_crossover import Parsed
from tests.report.test_explain import found


def test_the_page_is_whole_and_loads_nothing(tmp_path: Path) -> None:
    path = tmp_path / "explain.html"
    write_page(path, *found())
    text = path.read_text(encoding="utf-8")
    parsed = Parsed(text)
    assert parsed.open == [] and parsed.svgs == 3 and parsed.addresses == ["data:,"]
    assert not re.search(r"<script|@import|url\(|https?://", text)
    for said in ("denormal numbers", "confirmed: with cpu batch=4", "fwd addmm", "unexplained"):
        assert said in text
    assert [each.name for each in tmp_path.iterdir()] == ["explain.html"]


def test_text_out_of_captures_is_escaped() -> None:
    evil = "<script>alert(1)</script>"
    made = capture(
        model=evil, problems=(evil,), rows=[row(n, module=evil, scalars=evil, backend=evil) for n in range(6)]
    )
    text = render_page(explain(made, replace(made, machine={"cpu": evil})))
    assert "<script>" not in text and "&lt;script&gt;" in text


def test_bars_lead_from_one_side_to_the_other() -> None:
    e, _, _ = found()
    drawn = waterfall(e)
    first, *bars, last = drawn.bars
    assert first.width > last.width and first.kind == last.kind == "side"
    at = first.left + first.width
    for bar in bars:
        assert bar.left >= LABEL and bar.left + bar.width <= WIDTH - VALUE + 0.5
        if bar.kind == "faster":
            assert bar.left + bar.width == pytest.approx(at, abs=1.0)
            at = bar.left
        elif bar.kind == "slower":
            assert bar.left == pytest.approx(at, abs=1.0)
            at = bar.left + bar.width
    assert at == pytest.approx(last.left + last.width, abs=1.0)
    assert bars[0].kind == "faster" and bars[0].low is not None and bars[-1].kind == "rest"


def test_a_step_is_drawn_in_order_and_to_scale() -> None:
    made = capture()
    drawn = track(made, made.step_seconds)
    assert drawn is not None and drawn.lanes == 1 and len(drawn.strips) == 6
    assert drawn.seconds == pytest.approx(made.step_seconds)
    ends = [(strip.left, strip.left + strip.width) for strip in drawn.strips]
    assert all(one[1] <= other[0] + 0.05 for one, other in pairwise(ends)) and ends[-1][1] <= WIDTH
    device = track(on_gpu(0.2e-3, 2e-3), 12e-3)
    assert device is not None and device.lanes == 2
    assert sum(strip.width for strip in device.strips if strip.lane == 1) == pytest.approx(WIDTH, rel=0.01)


def test_many_short_calls_are_drawn_as_few() -> None:
    made = capture(
        sequence=tuple(n for n in range(6) for _ in range(5000)), rows=[row(n, count=5000) for n in range(6)]
    )
    drawn = track(made, made.step_seconds)
    assert drawn is not None and len(drawn.strips) < 1500


def test_without_ops_there_is_no_drawing_of_a_step() -> None:
    bare: Capture = capture(reading={"ops": (), "ops_errors": (), "gaps": ()})
    assert track(bare, 1.0) is None
    assert "could not be timed" in render_page(explain(bare, bare))


@pytest.mark.slow
def test_the_page_opens_in_a_browser_without_a_network_and_in_silence(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "explain.html"
    write_page(path, *found())
    context = browser.new_context(offline=True, viewport={"width": 400, "height": 800})
    page = context.new_page()
    told: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    page.goto(path.as_uri())
    assert page.locator("svg:visible").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") <= 400, "nothing sticks out on a phone"
    assert page.locator("details[open] td:visible").count() > 10
    assert told == []


def test_a_step_that_is_much_shorter_is_drawn_wide_enough_to_be_read() -> None:
    def right(drawn: Any) -> float:
        return max(strip.left + strip.width for strip in drawn.strips)

    slow, fast = capture(), on_gpu(0.02e-3, 0.05e-3)
    (one, same), (other, wider) = tracks((slow, fast))
    assert same == 1.0 and wider > 4.0
    assert 0.9 * WIDTH < right(one) <= WIDTH + 1 and 0.5 * WIDTH < right(other) <= WIDTH + 1
    assert f"drawn {wider:.0f} times as wide" in render_page(explain(slow, fast))
    (one, _), (other, wider) = tracks((slow, capture(slower={4: 0.5})))
    assert wider == 1.0 and right(other) < 0.9 * WIDTH
    assert "times as wide" not in render_page(explain(slow, capture(slower={4: 0.5})))
