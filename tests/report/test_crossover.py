"""A crossover as people and programs read it."""

import csv
import io
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from accel_micro.comparison.crossed import Crossed, Launch, answer, launch, runs
from accel_micro.report import crossover_words as words
from accel_micro.report.crossover import render
from accel_micro.report.crossover_page import render_page, write_page
from accel_micro.report.crossover_plots import LEFT, RIGHT, plot
from accel_micro.stats.crossover import Crossing
from tests.report.crossed import OPS, crossed

NEXT = "accel-micro crossover cpu cuda --budget 20"


@pytest.fixture(scope="module")
def whole() -> Crossed:
    return crossed()


@pytest.fixture(scope="module")
def short() -> Crossed:
    return crossed("matmul.mm", "layout.wave", budget_seconds=60)


def shown(what: Crossed, format: str = "table", width: int = 120) -> str:
    stream = io.StringIO()
    render(what, format, stream, next_command=NEXT, width=width)  # type: ignore[arg-type]
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 140])
def test_golden_table(whole: Crossed, width: int, golden: Callable[[str], SnapshotAssertion]) -> None:
    assert shown(whole, width=width) == golden("txt")


def test_golden_table_when_the_time_was_up(
    short: Crossed, golden: Callable[[str], SnapshotAssertion]
) -> None:
    assert shown(short) == golden("txt")


@pytest.mark.parametrize(("format", "ending"), [("markdown", "md"), ("csv", "csv"), ("json", "json")])
def test_golden_form(
    whole: Crossed, format: str, ending: str, golden: Callable[[str], SnapshotAssertion]
) -> None:
    few = ("matmul.mm", "conv2d.conv3x3", *(() if format == "json" else ("layout.wave", "optimizer.adamw")))
    chosen = replace(whole, rows=tuple(row for row in whole.rows if row.line.subject.op in few))
    assert shown(chosen, format) == golden(ending)


def test_no_line_is_wider_than_asked_but_the_command(whole: Crossed, short: Crossed) -> None:
    for what, width in ((whole, 80), (short, 100)):
        for text in shown(what, width=width).splitlines():
            assert text == text.rstrip()
            assert len(text) <= width or text.strip() == NEXT


def by_op(what: Crossed, op: str) -> Any:
    return next(row for row in what.rows if row.line.subject.op == op)


def test_every_kind_of_answer_is_among_them(whole: Crossed) -> None:
    answers = {row.line.subject.op: answer(row) for row in whole.rows}
    assert answers == {
        "matmul.mm": "crosses",
        "attention.sdpa": "throughout",
        "layout.wave": "crosses",
        "pointwise.add": "partly equal",
        "reduction.softmax": "throughout",
        "optimizer.adamw": "open",
        "conv2d.conv3x3": "no time",
    }
    assert whole.exit_code == 0


def test_launch_bound_sizes_are_told(whole: Crossed) -> None:
    found = launch(by_op(whole, "matmul.mm"), "contender")
    assert found is not None and found.up_to is not None and found.beyond is not None
    assert found.up_to < (8e-6 / 1e-13) ** (1 / 3) < found.beyond
    assert launch(by_op(whole, "matmul.mm"), "baseline") is None
    assert launch(by_op(whole, "layout.wave"), "contender") == Launch(None, 16)
    assert words.bound_text(whole, by_op(whole, "layout.wave")) == "device"
    assert launch(by_op(whole, "conv2d.conv3x3"), "contender") is None


def test_exit_codes() -> None:
    assert crossed("optimizer.adamw").exit_code == 4
    assert crossed("conv2d.conv3x3").exit_code == 3
    assert crossed("optimizer.adamw", "conv2d.conv3x3").exit_code == 4
    assert crossed("matmul.mm", interrupts_at=12).exit_code == 130
    assert crossed("reduction.softmax", "optimizer.adamw").exit_code == 0


def test_what_is_read_from_left_to_right_agrees_with_the_calls(whole: Crossed) -> None:
    for row in whole.rows:
        for run in runs(row):
            assert row.calls[run.first].faster == row.calls[run.last].faster == run.faster
        sides = [run.faster for run in runs(row) if run.faster != "equal"]
        changes = sum(a != b for a, b in itertools.pairwise(sides))
        assert changes == len(row.crossings)


def test_json_is_complete_and_has_no_nan(short: Crossed) -> None:
    data = json.loads(shown(short, "json"), parse_constant=lambda name: pytest.fail(name))
    (row, _) = data["rows"]
    assert row["launch_bound"]["cpu"] is None
    size = row["sizes"][0]
    assert size["shape"] == "m=16 k=16 n=16"
    assert len(size["contender"]["process_seconds"]) == size["processes"]
    assert size["ratio"] == pytest.approx(
        size["contender"]["throughput_seconds"] / size["baseline"]["throughput_seconds"]
    )
    assert data["next_command"] == NEXT


def test_csv_has_a_line_a_size_and_a_line_a_crossing(whole: Crossed) -> None:
    lines = list(csv.DictReader(io.StringIO(shown(whole, "csv"))))
    assert len([line for line in lines if line["what"] == "size"]) == sum(len(r.sizes) for r in whole.rows)
    found = [line for line in lines if line["what"] == "crossing"]
    assert len(found) == sum(len(row.crossings) for row in whole.rows)
    assert all(
        float(line["crossing_low"]) <= float(line["crossing_at"]) <= float(line["crossing_high"])
        for line in found
    )


@given(st.integers(1, 10**7), st.floats(1.0001, 300), st.floats(0, 1))
def test_an_estimate_is_rounded_within_its_interval(low: int, factor: float, share: float) -> None:
    high = max(low + 1, round(low * factor))
    at = low * (high / low) ** share
    text = words.rounded(at, Crossing(low, high, "contender", at))
    assert low <= int(text) <= high
    assert abs(int(text) - at) <= max(0.5, (high - low) / 100)


def test_text_out_of_results_cannot_move_the_cursor_or_become_markup() -> None:
    bad = replace(crossed("matmul.mm"), machine="vm\x1b[2J<script>", torch_version="\x07|")
    assert "\x1b" not in shown(bad) and "\x07" not in shown(bad)
    assert "<script>" not in shown(bad, "markdown")
    assert "<script>" not in render_page(bad)


# The page


class Parsed(HTMLParser):
    """Its elements: a page that is well formed closes what it opens."""

    VOID = ("meta", "link", "path", "rect", "line", "circle")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.ids: set[str] = set()
        self.svgs = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.svgs += tag == "svg"
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]
        self.ids |= {value or "" for name, value in attrs if name == "id"}

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        assert tag in self.VOID

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_loads_nothing(whole: Crossed, tmp_path: Path) -> None:
    path = tmp_path / "html" / "crossover.html"
    write_page(path, whole, history_page="overview.html")
    text = path.read_text(encoding="utf-8")
    parsed = Parsed(text)
    assert parsed.open == []
    assert parsed.svgs == 2 * sum(bool(row.calls) for row in whole.rows)
    for address in parsed.addresses:
        assert address in ("data:,", "overview.html") or address.removeprefix("#") in parsed.ids
    assert not re.search(r"<script|@import|url\(|https?://", text)
    assert [each.name for each in path.parent.iterdir()] == ["crossover.html"], "no partial file is left"
    for op in OPS:
        assert op in text


def test_plots_are_drawn_inside_their_panels(whole: Crossed) -> None:
    for row in whole.rows:
        if not row.calls:
            continue
        drawn = plot(row, {"baseline": "cpu", "contender": "cuda"}, 0.02)
        assert len(drawn.dots) == len(row.calls)
        assert all(LEFT <= dot.x <= RIGHT and drawn.top <= dot.y <= drawn.bottom for dot in drawn.dots)
        assert all(drawn.top <= dot.high <= dot.y <= dot.low <= drawn.bottom for dot in drawn.dots)
        assert drawn.top <= drawn.band[0] < drawn.even < drawn.band[1] <= drawn.bottom
        for dot, call in zip(drawn.dots, row.calls.values(), strict=True):
            assert (dot.y < drawn.even) == (call.ratio < 1), "faster is higher"
        texts = [tick.text for tick in drawn.x_ticks]
        assert 2 <= len(texts) == len(set(texts))
        for left, width, at in drawn.crossings:
            assert left <= at <= left + width + 0.1


@pytest.mark.slow
def test_the_page_opens_in_a_browser_without_a_network_and_in_silence(
    browser: Any, whole: Crossed, tmp_path: Path
) -> None:
    path = tmp_path / "crossover.html"
    write_page(path, whole)
    context = browser.new_context(offline=True, viewport={"width": 400, "height": 800})
    page = context.new_page()
    told: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    assert page.locator("svg:visible").count() == 2 * sum(bool(row.calls) for row in whole.rows)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400, "nothing sticks out on a phone"
    page.get_by_role("link", name="matmul.mm").click()
    page.locator("#op-0 summary").click()
    assert page.locator("#op-0 details td:visible").count() > 10
    assert told == []
    assert [url for url in asked if not url.startswith((path.as_uri(), "data:"))] == []
    context.close()
