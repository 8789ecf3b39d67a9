"""Tables of the terminal: golden at three widths, and whole at any."""

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from accel_micro.measure.records import Case, Failure, Record
from accel_micro.report import layout, render, units
from accel_micro.report.rows import collect
from accel_micro.report.table import print_report
from tests.report.fixtures import cpu_records, h100_records


def printed(records: Sequence[Record], width: int, **options: bool) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, **options)  # type: ignore[arg-type]
    print_report(collect(records), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def rendered(records: Sequence[Record], width: int) -> str:
    stream = io.StringIO()
    render(records, "table", stream, width=width)
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 100, 120, 140])
@pytest.mark.parametrize("records", [cpu_records, h100_records], ids=["cpu", "h100"])
def test_golden(
    records: Callable[[], list[Record]], width: int, golden: Callable[[str], SnapshotAssertion]
) -> None:
    assert golden("txt") == rendered(records(), width)


ROWS = [
    row for records in (cpu_records(), h100_records()) for f in collect(records).families for row in f.rows
]


@settings(max_examples=20)
@given(st.integers(1, 220))
def test_no_number_is_ever_cut_or_wrapped(width: int) -> None:
    text = re.sub(" +", " ", rendered(cpu_records(), width) + rendered(h100_records(), width))
    for row in ROWS:
        assert row.headline is not None
        time = units.time_text(row.headline)
        assert f"{time.short} " in text or f"{time.full} " in text or f"{time.short}\n" in text
        for number in re.findall(r"=(\d+)", row.case.shape):
            assert re.search(rf"(?<!\d){number}(?!\d)", text)


@settings(max_examples=20)
@given(st.integers(75, 220))
def test_no_line_is_longer_than_the_console(width: int) -> None:
    text = rendered(cpu_records(), width) + rendered(h100_records(), width)
    assert max(map(len, text.splitlines())) <= width


@settings(max_examples=20)
@given(st.integers(70, 200), st.integers(1, 40))
def test_a_wider_console_never_shows_less(width: int, more: int) -> None:
    def information(width: int) -> set[str]:
        shown = {column.key for column in layout.layout(ROWS, width).columns}
        shown |= {short for full, short in (("full", "short"), ("bound", "bound short")) if full in shown}
        return shown

    assert information(width) <= information(width + more)


def test_columns_are_dropped_in_the_order_that_is_stated() -> None:
    seen = [{column.key for column in layout.layout(ROWS, width).columns} for width in range(200, 60, -1)]
    gone = [before - after for before, after in pairwise(seen) if before - after]
    single = ("full", "rate", "bound", "cold", "share", "bound short")
    assert gone == [
        {"memory"},
        {"latency"},
        {"first call"},
        {"dispatch", "device"},
        *({key} for key in single),
    ]
    assert {"op", "direction", "dtype", "shape", "short", "flags"} == seen[-1]


def test_columns_without_content_are_left_out() -> None:
    rows = [row for family in collect(cpu_records()).families for row in family.rows]
    shown = {column.key for column in layout.layout(rows, 1000).columns}
    assert shown.isdisjoint({"dispatch", "device", "bound"})


def test_pipes_and_no_color_get_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in printed(h100_records(), 100)
    coloured = printed(h100_records(), 100, force_terminal=True)
    assert "\x1b[" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    plain = printed(h100_records(), 100, force_terminal=True)
    assert not re.search(r"\x1b\[(\d+;)*(3|4|9|10)\d", plain), "styles may stay, colours not"


def test_colour_carries_nothing_that_the_text_does_not_say() -> None:
    coloured = printed(h100_records(), 100, force_terminal=True)
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == printed(h100_records(), 100)


def test_text_from_records_is_neither_markup_nor_a_command_to_the_terminal() -> None:
    first = cpu_records()[0]
    hostile = Case("matmul.[red]mm", "forward", "cpu", "float32", "n=1\x1b[2J [/bold]")
    failed = Record(
        replace(hostile, shape="n=2"), failure=Failure("failed", "[link=x]\x1b]0;title\x07\nnext line")
    )
    text = rendered([replace(first, case=hostile), failed], 120)
    assert "\x1b" not in text
    assert "[red]mm" in text
    assert "[/bold]" in text
    assert "[link=x]" in text
    assert "next line" not in text, "the first line of a detail is enough here"


def test_failures_are_named_with_detail_and_remedy() -> None:
    text = rendered(h100_records(), 140)
    start = text.index("✗  wrong result: matmul.mm forward float16 m=8192 k=8192 n=8192 on cuda")
    lines = text[start:].splitlines()
    assert lines[1].strip() == "relative error 3.1e-02, allowed 1.9e-03"
    assert lines[2].strip().startswith("→ ")
    assert "crashed in 1 of 3 processes: attention.sdpa" in text


def test_a_report_of_failures_alone_has_no_tables() -> None:
    text = rendered([record for record in h100_records() if record.failure is not None], 80)
    assert "0 cases timed" in text
    assert "median" not in text


def test_a_clock_other_than_throughput_is_named() -> None:
    record = h100_records()[0]
    alone = replace(record, clocks={"device": record.clocks["device"]})
    assert re.search(r"4\.0\d+ µs .*\(device\)", rendered([alone], 100))


def test_several_builds_are_told_apart() -> None:
    records = [replace(record, build=build) for build in ("2.12.0", "2.13.0") for record in cpu_records()]
    text = rendered(records, 100)
    assert "matmul on cpu, 2.12.0" in text
    assert "matmul on cpu, 2.13.0" in text


def test_nothing_measured_is_said_in_one_line() -> None:
    assert rendered([], 80) == "0 cases timed\n"


@given(st.text("abc=0123456789 ", max_size=60), st.integers(1, 40))
def test_wrapping_a_shape_keeps_its_words(shape: str, width: int) -> None:
    lines = layout.wrap_shape(shape, width).split("\n")
    assert "".join(lines).replace(" ", "") == shape.replace(" ", "")
    parts = {part for word in shape.split() for part in (word, *word.split("="))}
    assert all(len(line) <= width or max(map(len, parts)) > width or "=" in line for line in lines)
