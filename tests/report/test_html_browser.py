"""The page in a browser, opened as a file with no network: it works, says nothing to the console, asks for nothing."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_micro.report.html import write_html
from tests.report.fixtures import FACTS, FINDINGS, cpu_records, h100_records

pytestmark = pytest.mark.slow

expect = pytest.importorskip("playwright.sync_api").expect


class Opened:
    """A page opened from its file, with what it told the console and asked for."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.told: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.told.append(message.text))
        self.page.on("pageerror", lambda error: self.told.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def outside(self, path: Path) -> set[str]:
        """Addresses it asked for that are neither the file itself nor written in it."""
        return {url.partition("#")[0] for url in self.asked if not url.startswith("data:")} - {path.as_uri()}

    def shown(self) -> list[str]:
        """Ops and shapes of the visible cases, top to bottom."""
        names: list[str] = self.page.locator("tbody:visible .open").all_inner_texts()
        return [" ".join(name.split()) for name in names]


@pytest.fixture
def h100(browser: Any, tmp_path: Path) -> Iterator[Opened]:
    path = tmp_path / "report.html"
    write_html(
        path,
        h100_records(),
        facts=FACTS,
        findings=FINDINGS,
        title="Ops",
        asv_page="asv/index.html",
        profile="full",
    )
    opened = Opened(browser, path)
    yield opened
    assert opened.told == []
    assert opened.outside(path) == set()
    opened.context.close()


def test_it_opens_without_a_network_and_in_silence(h100: Opened) -> None:
    assert h100.page.title() == "Ops"
    assert len(h100.shown()) == 10
    assert h100.page.locator(".shown").inner_text() == "10 of 10 cases"


def test_words_filter_cases_and_hide_empty_families(h100: Opened) -> None:
    h100.page.fill("input[type=search]", "MM bf16  backward")
    assert h100.shown() == ["matmul.mm backward bf16 m=1024 k=1024 n=1024"]
    assert h100.page.locator(".family:visible").count() == 1
    assert h100.page.locator(".shown").inner_text() == "1 of 10 cases"
    h100.page.fill("input[type=search]", "low clock")
    assert h100.shown() == ["matmul.mm forward fp32 m=8192 k=8192 n=8192"]
    h100.page.fill("input[type=search]", "")
    assert len(h100.shown()) == 10


def test_boxes_filter_by_bound_and_flags(h100: Opened) -> None:
    h100.page.check("input[name=launch]")
    assert len(h100.shown()) == 4
    h100.page.check("input[name=flagged]")
    assert [name.split()[0] for name in h100.shown()] == ["matmul.mm", "matmul.mm", "pointwise.add"]


def test_sorting_by_header_and_by_list_moves_cases_with_their_details(h100: Opened) -> None:
    as_defined = h100.shown()
    header = h100.page.locator("thead button[data-key=median]").first
    header.click()
    assert h100.shown()[0] == "matmul.mm forward fp32 m=8192 k=8192 n=8192"
    assert h100.page.locator("th[aria-sort=descending]").first.inner_text().startswith("median")
    assert h100.page.locator("select[name=sort]").input_value() == "-median"
    header.click()
    assert h100.shown()[0] == "matmul.mm forward fp32 m=64 k=64 n=64"
    header.click()
    assert h100.shown() == as_defined
    h100.page.select_option("select[name=sort]", "-launch")
    assert h100.shown()[0] == "matmul.mm backward bf16 m=1024 k=1024 n=1024"
    assert h100.page.evaluate("[...document.querySelectorAll('tbody')].every((b) => b.rows.length === 2)")


def test_a_case_opens_by_click_keyboard_and_link(h100: Opened) -> None:
    first = h100.page.locator("tbody .open").first
    first.click()
    assert h100.page.locator(".more:visible").count() == 1
    assert "641 to 689 calls a block" in h100.page.locator(".more:visible").inner_text()
    first.press("Enter")
    assert h100.page.locator(".more:visible").count() == 0
    h100.page.locator(".failed a").click()
    expect(h100.page.locator(".more:visible")).to_have_count(1)
    assert "SIGKILL" not in h100.page.locator(".more:visible").inner_text()
    assert "trv" not in h100.page.locator(".more:visible").inner_text()
    assert "over budget" in h100.page.locator(".more:visible").inner_text()
    h100.page.locator(".roofline a").nth(1).click()
    expect(h100.page.locator(".more:visible")).to_have_count(2)  # hashchange comes after the click


def test_the_theme_can_be_switched_and_is_remembered(h100: Opened) -> None:
    def background() -> str:
        return str(h100.page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = background()
    h100.page.click(".theme")
    dark = background()
    assert dark != light
    h100.page.reload()
    assert background() == dark
    h100.page.click(".theme")
    assert background() == light


@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen(browser: Any, tmp_path: Path, width: int, scheme: str) -> None:
    path = tmp_path / "report.html"
    write_html(
        path, h100_records(), facts=FACTS, findings=FINDINGS, title="O" * 80, asv_page="a", profile="full"
    )
    opened = Opened(browser, path, viewport={"width": width, "height": 800}, color_scheme=scheme)
    for button in opened.page.locator(".open").all()[:2]:
        button.click()
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.told == []
    opened.context.close()


def test_without_scripts_every_detail_is_shown(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_html(path, cpu_records(), facts={}, findings=[], title="Ops", asv_page=None, profile="")
    opened = Opened(browser, path, java_script_enabled=False)
    timed = [record for record in cpu_records() if record.clocks]
    assert opened.page.locator(".more:visible").count() == len(timed)
    assert not opened.page.locator(".toolbar").is_visible()
    opened.context.close()


def test_a_hostile_name_runs_nothing(browser: Any, tmp_path: Path) -> None:
    evil = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    first = cpu_records()[0]
    path = tmp_path / "report.html"
    records = [replace(first, case=replace(first.case, op=evil, shape=evil))]
    write_html(
        path, records, facts={evil: evil}, findings=[{"name": evil}], title="Ops", asv_page=None, profile=evil
    )
    opened = Opened(browser, path)
    assert opened.page.title() == "Ops"
    assert opened.told == []
    assert opened.outside(path) == set()
    opened.context.close()
