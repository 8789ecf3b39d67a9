import dataclasses
import json
import re
from pathlib import Path

import pytest

from accel_micro.builds import Ledger, Place, Wheel, identify
from accel_micro.measure import Process
from accel_micro.measure.records import SUFFIX, Case, Failure, Record, append
from accel_micro.report.site import write_site
from accel_micro.results import installs

ONE, OTHER = "a" * 40, "b" * 40
DAYS = ["2.15.0.dev20261105", "2.15.0.dev20261106", "2.15.0.dev20261107"]
TIMED = {"throughput": Process("cpu", "throughput", (1e-3,) * 20, (1e-3,) * 20, (1.0,) * 20, 7)}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    ledger = Ledger.beside(folder)
    for version, git in zip(DAYS, (ONE, OTHER, OTHER), strict=True):
        ledger.remember(identify(version, git))
    ledger.remember(identify("2.9.0", ONE))
    name = f"torch-{DAYS[1]}+cpu-cp311-cp311-linux_x86_64.whl"
    place = Place(f"https://example.org/{name}", "https://example.org/torch/")
    wheel = Wheel(identify(DAYS[1]).id, f"{DAYS[1]}+cpu", name, "cpu", (place,), 812_000_000, "c" * 64)
    ledger.remember_all([wheel])
    return folder


def record(op: str, failure: Failure | None = None) -> Record:
    case = Case(op=op, direction="forward", device="cpu", dtype="float32", shape="n=1")
    return Record(case, clocks={} if failure else TIMED, failure=failure, build=identify(DAYS[0]).id)


def put(results: Path, machine: str, *records: Record) -> Path:
    path = results / machine / f"20261105-torch-py3.11{SUFFIX}"
    for one in records:
        append(path, dataclasses.replace(one, machine=machine, environment="torch-py3.11"))
    return path


def page(results: Path, html: Path) -> str:
    write_site(html, results)
    return (html / "builds.html").read_text()


def row(text: str, version: str) -> str:
    _, _, rest = text.partition(f'<tr id="{identify(version).id}">')
    return rest.partition("<tr")[0]


def test_a_build_is_described(results: Path, tmp_path: Path) -> None:
    text = page(results, tmp_path / "html")
    middle = row(text, DAYS[1])
    assert "2026-11-06" in middle
    assert "<small>812 MB</small>" in middle
    assert f'href="https://example.org/torch-{DAYS[1]}+cpu-cp311-cp311-linux_x86_64.whl"' in middle
    assert "sha256 cccccccc" in middle
    assert f'href="https://github.com/pytorch/pytorch/commit/{OTHER}"' in middle
    assert (
        f'<a href="https://github.com/pytorch/pytorch/compare/{ONE}...{OTHER}">since {DAYS[0]}</a>' in middle
    )
    assert f"none: made of the same commit as {DAYS[1]}" in row(text, DAYS[2])
    assert "compare" not in row(text, DAYS[0]), "nothing of its channel came before"
    assert text.index(identify(DAYS[2]).id) < text.index(identify(DAYS[0]).id), "newest first"


def test_what_was_measured_and_what_failed(results: Path, tmp_path: Path) -> None:
    wrong, crash = Failure("wrong result", "relative error 1"), Failure("crashed", "signal 11")
    put(results, "alpha", record("a.a"), record("a.b", wrong), record("a.c", crash), record("a.c"))
    path = put(results, "beta", record("a.a"))
    with path.open("a") as file:
        file.write('{"torn\n{"case": 5}\n[]\n')
    line = installs.install_line(identify(DAYS[1]).id, "torch-py3.11", None, "a disk was full")
    installs.append(results / "alpha", [line, {**line, "build": identify(DAYS[2]).id}])
    done = {**line, "failure": None, "build": identify(DAYS[2]).id, "without": ["triton"]}
    installs.append(results / "alpha", [done])
    Ledger.beside(results).mark_broken(
        f"torch-{DAYS[1]}+cpu-cp311-cp311-linux_x86_64.whl", "it is half a file"
    )
    text = page(results, tmp_path / "html")
    older = row(text, DAYS[0])
    assert "alpha: 2 cases<br>beta: 1 case<br>" in older
    assert "a.b forward float32 n=1 on cpu on alpha: wrong result: relative error 1" in older
    assert "a.c" not in older, "it succeeded later"
    assert "installation on alpha: a disk was full" in row(text, DAYS[1])
    assert "broken: it is half a file" in row(text, DAYS[1])
    assert "failed" not in row(text, DAYS[2]), "it could be installed later"
    assert "alpha: installed without triton" in row(text, DAYS[2])


def test_nothing_that_others_wrote_is_trusted(results: Path, tmp_path: Path) -> None:
    evil = '"><script>alert(1)</script>'
    ledger = Ledger.beside(results)
    ledger.remember(dataclasses.replace(identify("2.16.0a0"), version=evil, git_version=evil))
    name = "torch-2.16.0.dev20261201-cp311-cp311-linux_x86_64.whl"
    build = identify("2.16.0.dev20261201")
    place = Place("javascript:alert(1)", evil)
    ledger.remember_all([build, Wheel(build.id, evil, name, evil, (place,), 1, evil, broken=evil)])
    ledger.mark_broken(name, evil)
    put(results, "alpha", record(evil, Failure("failed", evil)))
    installs.append(results / "alpha", [installs.install_line(build.id, evil, None, evil)])
    text = page(results, tmp_path / "html")
    assert "<script>" not in text
    assert 'href="javascript' not in text
    assert text.count("&lt;script&gt;") >= 5
    for path in (tmp_path / "html").rglob("*.html"):
        assert "<script>" not in path.read_text()


def test_many_failures_are_counted(results: Path, tmp_path: Path) -> None:
    put(results, "alpha", *[record(f"a.op{i}", Failure("failed", "no")) for i in range(60)])
    older = row(page(results, tmp_path / "html"), DAYS[0])
    assert "60 failed" in older
    assert "and 10 more" in older
    assert older.count("<li>") == 51


def test_without_builds_it_says_what_to_do(tmp_path: Path) -> None:
    assert "accel-micro builds sync" in page(tmp_path / "nothing", tmp_path / "html")


def test_the_page_needs_no_other_server(results: Path, tmp_path: Path) -> None:
    text = page(results, tmp_path / "html")
    assert re.findall(r'src="(.*?)"|<link.*? href="(.*?)"', text) == [
        ("", "data:,"),
        ("", "site/style.css"),
        ("site/script.js", ""),
    ]
    assert "@import" not in text + (tmp_path / "html" / "site" / "style.css").read_text()


def test_lines_of_installs_are_not_repeated(tmp_path: Path) -> None:
    line = installs.install_line(ONE, "torch-py3.11", None, "no room")
    for _ in range(3):
        installs.append(tmp_path / "alpha", [line])
    installs.append(tmp_path / "alpha", [{**line, "failure": "no network"}])
    with (tmp_path / "alpha" / installs.FILE_NAME).open("a") as file:
        file.write('{"schema": 1}\n[1]\n{torn\n' + json.dumps({**line, "schema": 2}) + "\n")
    found = [(machine, entry["failure"]) for machine, entry in installs.read(tmp_path)]
    assert found == [("alpha", "no room"), ("alpha", "no network")]
