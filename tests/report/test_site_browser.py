"""The pages in a browser, opened as files with no network: they ask nobody, and work by mouse and keyboard."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from accel_micro.report.site import write_site
from accel_micro.report.site.gather import Place
from accel_micro.report.site.text import file_name
from tests.report.site_results import CONV, DAYS, ENVIRONMENT, MM, NEWEST, WRONG, write_results

pytestmark = pytest.mark.slow

pytest.importorskip("playwright.sync_api")

CASE, STEPPED, FAILED = (
    f"cases/{file_name(Place('workshop', ENVIRONMENT), case)}" for case in (MM, CONV, WRONG)
)
PAGES = (
    "overview.html", "significance.html", "builds.html", "machines.html", "explanations.html", CASE, STEPPED, FAILED
)  # fmt: skip


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    write_results(folder / "results")
    write_results(folder / "results", "loft")
    write_site(folder / "html", folder / "results")
    return folder / "html"


class Opened:
    """A page, with what it told the console and asked for."""

    def __init__(self, browser: Any, html: Path, name: str, **options: Any) -> None:
        self.html = html
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.told: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.told.append(message.text))
        self.page.on("pageerror", lambda error: self.told.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(f"{(html / name.partition('#')[0]).as_uri()}{name[len(name.partition('#')[0]) :]}")

    def close(self) -> None:
        """Nothing was said, and nothing but files of the folder was asked for."""
        assert self.told == []
        allowed = (self.html.as_uri(), "data:")
        assert [url for url in self.asked if not url.startswith(allowed)] == []
        self.context.close()

    def ops(self) -> list[str]:
        """Ops of the visible rows, top to bottom."""
        return list(self.page.locator("table.list tbody tr:visible .op").all_inner_texts())


@pytest.fixture
def open_page(browser: Any, html: Path) -> Iterator[Any]:
    opened: list[Opened] = []

    def open_one(name: str, **options: Any) -> Opened:
        opened.append(Opened(browser, html, name, **options))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (768, "dark"), (1200, "dark")])
def test_nothing_is_wider_than_the_screen(open_page: Any, name: str, width: int, scheme: str) -> None:
    page = open_page(name, viewport={"width": width, "height": 800}, color_scheme=scheme).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.title() != "owned"


@pytest.mark.parametrize("name", PAGES)
def test_everything_has_a_name_and_a_place(open_page: Any, name: str) -> None:
    page = open_page(name).page
    for landmark in ("header", "main", "nav", "footer"):
        assert page.locator(landmark).count() == 1, landmark
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map((h) => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels)), levels
    unnamed = """[...document.querySelectorAll('a, button, input, select, output')].filter((e) =>
      !e.closest('[aria-hidden=true]') && e.tagName !== 'OUTPUT' && !e.textContent.trim()
      && !e.getAttribute('aria-label') && !(e.labels && e.labels.length))"""
    assert page.evaluate(f"{unnamed}.map((e) => e.outerHTML)") == []
    assert page.evaluate("[...document.querySelectorAll('table')].every((t) => t.caption)")
    assert page.evaluate(
        "[...document.querySelectorAll('thead th')].every((h) => h.scope && h.textContent.trim())"
    )
    duplicates = (
        "(ids => ids.length - new Set(ids).size)([...document.querySelectorAll('[id]')].map((e) => e.id))"
    )
    assert page.evaluate(duplicates) == 0
    assert page.evaluate("document.documentElement.lang") == "en"


def test_a_regression_is_visible_at_first_sight(open_page: Any) -> None:
    page = open_page("overview.html", viewport={"width": 1200, "height": 700}).page
    first = page.locator(".worst li").first
    box = first.bounding_box()
    assert box["y"] + box["height"] < 700, "without scrolling"
    assert "▲ slower +20." in " ".join(first.inner_text().split())
    first.locator("a").click()
    page.wait_for_selector("svg.plot")
    assert "regression" in page.locator(".found").first.inner_text()


def test_rows_are_filtered_by_words_and_choices(open_page: Any) -> None:
    opened = open_page("significance.html")
    page = opened.page
    assert page.locator(".shown").inner_text() == "8 of 8 rows"
    page.select_option("select[name=verdict]", "regression")
    assert opened.ops() == ["matmul.mm", "matmul.mm"]
    page.select_option("select[name=machine]", "loft")
    assert opened.ops() == ["matmul.mm"]
    assert page.locator("table.list:visible").count() == 1
    page.select_option("select[name=verdict]", "")
    page.select_option("select[name=family]", "conv2d")
    assert opened.ops() == ["conv2d.conv3x3"]
    page.select_option("select[name=family]", "")
    page.select_option("select[name=machine]", "")
    page.fill("input[name=words]", "MATMUL fp32 workshop")
    assert opened.ops() == ["matmul.mm", "matmul.bmm"]
    page.fill("input[name=words]", "nothing of that name")
    assert opened.ops() == []
    assert page.locator(".shown").inner_text() == "0 of 8 rows"


def test_a_link_chooses_what_is_shown(open_page: Any) -> None:
    opened = open_page("significance.html#verdict=inconclusive&machine=workshop")
    assert opened.ops() == ["matmul.bmm"]
    assert opened.page.locator("select[name=verdict]").input_value() == "inconclusive"


def test_a_link_to_what_no_row_has_shows_none(open_page: Any) -> None:
    opened = open_page("overview.html")
    opened.page.locator("a.tile", has_text="0 improvements").first.click()
    opened.page.wait_for_selector("table.verdicts", state="attached")
    assert opened.ops() == []
    assert opened.page.locator(".shown").inner_text() == "0 of 8 rows"
    assert opened.page.locator("select[name=verdict]").input_value() == "improvement"


def test_rows_are_sorted_by_mouse_and_keyboard(open_page: Any) -> None:
    opened = open_page("significance.html#machine=workshop")
    page = opened.page
    as_it_matters = opened.ops()
    assert as_it_matters[0] == "matmul.mm"
    header = page.locator("table:visible thead button[data-key=noise]").first
    header.click()
    assert opened.ops()[0] == "matmul.bmm"
    assert header.locator("xpath=..").get_attribute("aria-sort") == "descending"
    header.press("Enter")
    assert opened.ops()[-1] == "matmul.bmm"
    header.press("Space")
    assert opened.ops() == as_it_matters
    page.focus("select[name=sort]")
    page.select_option("select[name=sort]", "ratio")
    assert opened.ops()[-1] == "matmul.mm"


def test_all_of_it_is_reached_by_keyboard(open_page: Any) -> None:
    page = open_page("significance.html").page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["x"] >= 0, "it can be seen while it has the focus"
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate(
                "(e => e.name || e.dataset.key || e.className || e.textContent.trim())(document.activeElement)"
            )
        )
    assert {"words", "verdict", "family", "sort", "ratio", "q", "noise", "op", "theme", "Overview"} <= seen


def test_the_slider_names_every_build(open_page: Any) -> None:
    page = open_page(CASE).page
    readout = page.locator(".readout")
    assert readout.inner_text().startswith(NEWEST)
    slider = page.locator("#build")
    slider.press("ArrowLeft")
    assert readout.inner_text().startswith(DAYS[-2])
    assert "throughput 1" in readout.inner_text()
    assert slider.get_attribute("aria-valuetext") == readout.inner_text()
    slider.press("Home")
    assert readout.inner_text().startswith(DAYS[0])
    assert page.locator("tr.current th").inner_text() == DAYS[0]
    box = page.locator("svg.plot").first.bounding_box()
    page.mouse.move(box["x"] + 0.98 * box["width"], box["y"] + 50)
    assert readout.inner_text().startswith(NEWEST)


def test_marks_of_a_plot_are_round_at_any_width(open_page: Any) -> None:
    page = open_page(STEPPED, viewport={"width": 360, "height": 800}).page
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.plot .nightly')).vectorEffect")
        == "non-scaling-stroke"
    )
    assert "▼" in page.locator(".steptext").first.text_content()


def test_without_scripts_every_row_is_shown(open_page: Any) -> None:
    opened = open_page("significance.html", java_script_enabled=False)
    assert len(opened.ops()) == 8
    assert not opened.page.locator(".toolbar").is_visible()
    case = open_page(CASE, java_script_enabled=False)
    assert case.page.locator("table.builds tbody tr:visible").count() == len(DAYS)
    assert not case.page.locator(".scrubber").is_visible()


def test_the_theme_is_remembered_on_all_pages(open_page: Any) -> None:
    page = open_page("overview.html").page
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.click(".theme")
    dark = page.evaluate(background)
    assert dark != light
    page.click("nav a:text('Significance')")
    page.wait_for_url("**/significance.html*")  # until it is loaded: a click does not wait for that
    assert page.evaluate(background) == dark


def test_links_lead_to_pages_that_are_there(html: Path, open_page: Any) -> None:
    for name in PAGES:
        page = open_page(name).page
        hrefs = page.evaluate("[...document.querySelectorAll('a[href]')].map((a) => a.href)")
        local = {href.partition("#")[0] for href in hrefs if href.startswith("file:")}
        assert local
        for href in local:
            assert Path(href.removeprefix("file://")).is_file(), href
