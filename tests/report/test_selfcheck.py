"""A self-check as people and programs read it."""

import io
import json
import math
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from accel_micro.report import selfcheck_words as words
from accel_micro.report.selfcheck import render
from accel_micro.report.selfcheck_page import render_page, write_page
from accel_micro.selfcheck.findings import Column
from tests.selfcheck.checks import check


def shown(format: str, width: int = 120) -> str:
    stream = io.StringIO()
    render(check(), format, stream, width=width)  # type: ignore[arg-type]
    return stream.getvalue()


def test_golden_table(golden: Callable[[str], SnapshotAssertion]) -> None:
    assert shown("table") == golden("txt")


def test_golden_narrow_table(golden: Callable[[str], SnapshotAssertion]) -> None:
    assert shown("table", width=80) == golden("txt")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_no_name_and_no_figure_is_broken_inside(width: int) -> None:
    text = shown("table", width)
    assert max(map(len, text.splitlines())) <= width
    for section in check().sections:
        for table in section.tables:
            for row in table.rows:
                for part in (*row.name.split(), *words.cells(row, table.columns)):
                    assert re.search(rf"(?<!\S){re.escape(part)}(?!\S)", text), part
            for word in " ".join(column.title for column in table.columns).split():
                assert re.search(rf"(?<!\S){re.escape(word)}(?!\S)", text), word


@pytest.mark.parametrize(("format", "ending"), [("markdown", "md"), ("json", "json")])
def test_golden_form(format: str, ending: str, golden: Callable[[str], SnapshotAssertion]) -> None:
    assert shown(format) == golden(ending)


def test_golden_page(golden: Callable[[str], SnapshotAssertion]) -> None:
    page = render_page(check(interrupted=True))
    page = re.sub(r"<style>.*?</style>", "<style></style>", page, flags=re.S)
    assert re.sub(r"accel_micro \d[\w.]*", "accel_micro VERSION", page) == golden("html")


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_refers_to_nothing_and_escapes_what_it_quotes(tmp_path: Path) -> None:
    write_page(tmp_path / "new" / "page.html", check())
    page = (tmp_path / "new" / "page.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.links == ["data:,"]
    assert "<captured>" not in page
    assert "&lt;captured&gt;" in page


def test_the_json_is_valid_and_has_no_infinity() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    data = json.loads(shown("json"), parse_constant=refuse)
    assert data["schema"] == 1
    assert data["command"] == "accel-micro selfcheck --budget 600"


@pytest.mark.parametrize(
    ("value", "column", "text"),
    [
        (None, Column("x", "x", "share"), "–"),
        (math.nan, Column("x", "x", "share"), "–"),
        (math.inf, Column("x", "x", "seconds"), "never"),
        (0.0123, Column("x", "x", "share"), "1.23 %"),
        (0.0, Column("x", "x", "share"), "0 %"),
        (0.75, Column("x", "x", "share"), "75 %"),
        (0.05, Column("x", "x", "signed share"), "+5.00 %"),
        (-0.3, Column("x", "x", "signed share"), "-30 %"),
        (0.25, Column("x", "x", "seconds"), "250 ms"),
        (84.2, Column("x", "x", "factor"), "84×"),
        (0.978, Column("x", "x", "number"), "0.98"),
        (386.4, Column("x", "x", "number"), "386"),
        ("a \x1b[31m", Column("x", "x"), "a "),
    ],
)
def test_figures_have_their_units(value: float | str | None, column: Column, text: str) -> None:
    assert words.text(value, column).startswith(text)


def test_what_ours_is_behind_in_is_said_with_both_figures() -> None:
    power = next(section for section in check().sections if section.key == "power")
    assert words.behind(power) == []
    assert "tied in" in words.counts(power)
