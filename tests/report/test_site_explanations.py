"""Explanations of models among the pages about results: listed, linked both ways, and kept when asv publishes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_micro.explain.attribution import explain
from accel_micro.explain.causes import causes
from accel_micro.report import explain_words as words
from accel_micro.report.explain_page import write_page
from accel_micro.report.site import publish_explanation, write_site
from accel_micro.report.site.explanations import INDEX, listed, name_of
from tests.explain.worlds import capture
from tests.report.site_results import write_results
from tests.report.test_explain import found


def publish(folder: Path, *parts: Any) -> Path:
    path, problems = publish_explanation(
        folder, words.title(parts[0]), lambda path, back: write_page(path, *parts, list_page=back)
    )
    assert problems == []
    return path


def later(**changes: Any) -> Any:
    e = explain(capture(slower={4: 3.0}, **changes), capture(started="2026-11-29T08:30:00Z", **changes))
    return e, causes(e)


def test_a_page_is_listed_with_what_it_says(tmp_path: Path) -> None:
    assert listed(tmp_path) == ([], [])
    first = publish(tmp_path, *found())
    second = publish(tmp_path, *later(model="resnet18"))
    (newest, oldest), problems = listed(tmp_path)
    assert problems == []
    assert (tmp_path / newest.href, tmp_path / oldest.href) == (second, first)
    assert (
        newest.title.startswith("resnet18, training: cpu batch=4")
        and newest.started == "2026-11-29 08:30 UTC"
    )
    assert newest.summary.startswith("The contender is faster: speedup ")
    assert "denormal numbers" in oldest.causes
    text = (tmp_path / INDEX).read_text(encoding="utf-8")
    assert text.index("resnet18") < text.index("denormal numbers")
    # Nothing was measured for the other pages, so none of them is linked.
    assert "overview.html" not in text and f'href="{INDEX}" aria-current="page"' in text


def test_the_same_question_has_one_page(tmp_path: Path) -> None:
    once, again = publish(tmp_path, *later()), publish(tmp_path, *later())
    other = publish(tmp_path, *later(model="resnet18"))
    assert once == again != other and len(listed(tmp_path)[0]) == 2
    assert name_of("../../etc/passwd").startswith("etc-passwd-") and len(name_of("x" * 999)) < 120


def test_what_is_no_explanation_is_said_and_left_alone(tmp_path: Path) -> None:
    folder = publish(tmp_path, *found()).parent
    (folder / "other.html").write_text("<title>mine</title>")
    (folder / "bytes.html").write_bytes(b"\xff\xfe\x00")
    (folder / "large.html").write_bytes(b" " * (5 << 20))
    pages, problems = listed(tmp_path)
    assert len(pages) == 1 and len(problems) == 3
    assert any("other.html is no page of `accel-micro explain`" in problem for problem in problems)
    assert {path.name for path in folder.iterdir()} >= {"other.html", "bytes.html", "large.html"}


def test_text_of_a_page_is_escaped_in_the_list(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    e = explain(capture(model=evil), replace(capture(model=evil), machine={"cpu": evil}))
    publish(tmp_path, e)
    text = (tmp_path / INDEX).read_text(encoding="utf-8")
    assert "<script>alert" not in text and "&lt;script&gt;alert" in text


def test_publishing_by_asv_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    from accel_micro.asv_plugin.pages import _kept

    page = publish(tmp_path / "html", *found())
    with _kept(tmp_path / "html"):
        shutil.rmtree(tmp_path / "html")
        (tmp_path / "html").mkdir()
    assert "denormal numbers" in page.read_text(encoding="utf-8")
    with pytest.raises(KeyboardInterrupt), _kept(tmp_path / "html"):
        shutil.rmtree(tmp_path / "html")
        raise KeyboardInterrupt
    assert page.is_file()


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Pages about results and an explanation, whichever was there first."""
    folder = tmp_path_factory.mktemp("explained")
    write_results(folder / "results")
    write_site(folder / "html", folder / "results")
    publish(folder / "html", *found())
    yield folder / "html"


@pytest.mark.slow
def test_the_way_from_the_overview_to_a_page_and_back(browser: Any, html: Path) -> None:
    context = browser.new_context(offline=True, viewport={"width": 400, "height": 800})
    page = context.new_page()
    told: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    page.goto((html / "overview.html").as_uri())
    page.click("nav a:text('Explanations')")
    page.wait_for_url(f"**/{INDEX}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert "denormal numbers" in page.locator(".explained li").inner_text()
    page.click(".explained a")
    page.wait_for_url("**/explanations/*.html")
    assert page.locator("svg:visible").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.click("nav a:text('All explanations')")
    page.wait_for_url(f"**/{INDEX}")
    page.click("nav a:text('Overview')")
    page.wait_for_url("**/overview.html")
    assert told == []
    context.close()
