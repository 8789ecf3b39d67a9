"""The page as text: complete in itself, escaped, and written whole or not at all."""

import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from accel_micro.measure.records import Case, Failure, Record
from accel_micro.report.html import write_html
from accel_micro.report.rows import collect
from accel_micro.report.words import GLOSSARY
from tests.report.fixtures import FACTS, FINDINGS, cpu_records, h100_records

EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'&{{ 7*7 }}"


def page(tmp_path: Path, records: Sequence[Record], **options: Any) -> str:
    path = tmp_path / "report.html"
    options = {
        "facts": FACTS,
        "findings": FINDINGS,
        "title": "Ops",
        "asv_page": None,
        "profile": "quick",
    } | options
    write_html(path, records, **options)
    return path.read_text(encoding="utf-8")


class Elements(HTMLParser):
    """Tags with attributes, all text by tag, and a check that tags close in order."""

    VOID = frozenset({"meta", "link", "input", "br", "img"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text.append(data)


def test_the_page_refers_to_nothing_outside_itself(tmp_path: Path) -> None:
    text = page(tmp_path, h100_records(), asv_page="asv/index.html")
    for tag, attributes in Elements(text).tags:
        assert tag not in ("img", "iframe", "object", "embed", "base")
        for name in ("src", "href", "action", "data", "xlink:href"):
            value = attributes.get(name)
            assert value is None or value.startswith("#") or value in ("data:,", "asv/index.html"), (
                tag,
                value,
            )
    assert not re.search(r"@import|url\(|https?://", text)


def test_links_within_the_page_lead_somewhere(tmp_path: Path) -> None:
    tags = Elements(page(tmp_path, h100_records())).tags
    places = {attributes["id"] for _, attributes in tags if "id" in attributes}
    links = {attributes["href"] for _, attributes in tags if str(attributes.get("href", "")).startswith("#")}
    assert len(links) > 10
    assert {str(link)[1:] for link in links} <= places


def test_everything_that_was_measured_is_there(tmp_path: Path) -> None:
    text = " ".join(" ".join(Elements(page(tmp_path, h100_records())).text).split())
    report = collect(h100_records())
    for row in report.rows:
        assert row.case.shape in text
    for word in ("gpu-node-3", "2.13.0.dev20261105+cu130", "2026-11-27 12:00 UTC", "quick", "NVIDIA H100"):
        assert word in text
    for finding in FINDINGS:
        assert finding["what"] in text
        assert finding["remedy"] in text
    for row in report.failed:
        for failure in row.failures:
            assert failure.detail.splitlines()[-1] in text, "details are shown whole"
    for word, meaning in GLOSSARY.items():
        assert word in text
        assert meaning in text
    assert "launch-bound 3.7×" in text
    assert "this torch was built without MPS" in text


def test_text_from_records_facts_findings_and_title_is_escaped(tmp_path: Path) -> None:
    first = h100_records()[0]
    case = Case(f"matmul.{EVIL}", "forward", EVIL, EVIL, EVIL)
    records = [
        replace(first, case=case, machine=EVIL, build=EVIL, environment=EVIL, precision={EVIL: EVIL}),
        Record(replace(case, shape="n=2"), failure=Failure("failed", EVIL)),
        Record(replace(case, shape="n=3"), skipped=EVIL),
    ]
    finding = {"name": EVIL, "severity": EVIL, "what": f"`{EVIL}` and `", "remedy": EVIL}
    text = page(
        tmp_path,
        records,
        facts={EVIL: {EVIL: EVIL}},
        findings=[finding],
        title=EVIL,
        asv_page=EVIL,
        profile=EVIL,
    )
    elements = Elements(text)
    assert [tag for tag, _ in elements.tags].count("script") == 1
    assert not any(name.startswith("on") for _, attributes in elements.tags for name in attributes)
    assert "img" not in [tag for tag, _ in elements.tags]
    assert "".join(elements.text).count(EVIL) > 10, "and it is shown as it was"


def test_findings_come_worst_first_and_may_lack_keys(tmp_path: Path) -> None:
    findings = [{"name": "c"}, {"name": "b", "severity": "note"}, {"name": "a", "severity": "problem"}]
    text = page(tmp_path, cpu_records(), findings=findings)
    assert re.findall(r"<strong>(\w)</strong>", text) == ["a", "b", "c"]


def test_a_cpu_has_no_bound_column_and_no_link_to_asv(tmp_path: Path) -> None:
    text = page(tmp_path, cpu_records(), findings=[])
    assert 'data-key="launch"' not in text
    assert "History across builds" not in text
    assert 'id="findings"' not in text


def test_many_failures_are_folded(tmp_path: Path) -> None:
    case = h100_records()[0].case
    records = [Record(replace(case, shape=f"n={i}"), failure=Failure("crashed")) for i in range(30)]
    text = page(tmp_path, records)
    assert "<summary>21 more</summary>" in text
    assert "No case has a time." in text


def test_an_empty_report_is_a_page(tmp_path: Path) -> None:
    elements = Elements(page(tmp_path, [], facts={}, findings=[]))
    assert "No case has a time." in "".join(elements.text)


def test_a_broken_write_leaves_the_old_page_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = page(tmp_path, cpu_records())

    def half_written(path: Path, text: str, encoding: str) -> None:
        path.write_bytes(text[:100].encode(encoding))
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_text", half_written)
    with pytest.raises(OSError, match="no space left"):
        page(tmp_path, h100_records())
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == old
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_size_grows_gently(tmp_path: Path) -> None:
    first, *_ = h100_records()
    records = [
        replace(first, case=replace(first.case, shape=f"n={i}"), round=r)
        for i in range(300)
        for r in (1, 2, 3)
    ]
    assert len(page(tmp_path, records)) < 8_000 * 300


def test_a_cold_case_says_what_was_cold_and_how_much_that_costs(tmp_path: Path) -> None:
    text = page(tmp_path, cpu_records())
    assert "<small>1.3× the hot case</small>" in text
    assert "129 sets in turn, of which a call reads 2.10 MB each; cache 134 MB (assumed: Linux tells" in text
    assert text.count("the hot case</small>") == 1, "of that case alone"
