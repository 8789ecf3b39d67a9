"""What the pages say of two weeks of nightlies with a planted regression, and where plots put it."""

import re
from html import unescape as html_text
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from accel_micro.builds import Ledger, UnknownBuild, identify
from accel_micro.cli import app
from accel_micro.comparison.comparing import Request, compare
from accel_micro.measure.records import SUFFIX
from accel_micro.report.site import plots, write_site
from accel_micro.report.site.changes import proposals
from accel_micro.report.site.compared import choose, compare_builds
from accel_micro.report.site.gather import Place, Point, gather
from accel_micro.report.site.significance import options, sections
from accel_micro.report.site.text import change, file_name
from accel_micro.results.calibrations import FILE_NAME as CALIBRATIONS
from accel_micro.stats.estimate import estimate
from accel_micro.stats.verdict import Verdict
from tests.report.site_results import (
    ADAM,
    BEFORE,
    BMM,
    CONV,
    DAYS,
    ENVIRONMENT,
    MM,
    NEWEST,
    SLOWER,
    WRONG,
    write_results,
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_results(tmp_path_factory.mktemp("site") / "results")


@pytest.fixture(scope="module")
def html(results: Path) -> Path:
    folder = results.parent / "html"
    write_site(folder, results)
    return folder


def page_of(html: Path, case: object) -> str:
    return (html / "cases" / file_name(Place("workshop", ENVIRONMENT), case)).read_text()  # type: ignore[arg-type]


def plain(text: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def test_a_history_has_every_build_that_was_measured(results: Path) -> None:
    gathered = gather(results)
    (place,) = gathered.measured
    assert [build.version for build in gathered.measured[place]] == list(DAYS)
    found = {history.case: history for history in gathered.histories}
    assert len(found[MM].points["throughput"]) == len(DAYS)
    assert len(found[ADAM].points["throughput"]) == len(DAYS) - 1, "one day lacks it"
    assert set(found[WRONG].failures) == {identify(NEWEST).id, identify(BEFORE).id}
    newest = found[MM].points["throughput"][identify(NEWEST).id]
    assert newest.estimate.seconds == pytest.approx(12e-3 * SLOWER, rel=0.01)
    assert len(newest.medians) == 5
    assert not gathered.problems


def test_the_newest_build_is_compared_with_the_one_before(results: Path) -> None:
    gathered = gather(results)
    chosen = [(machine, a.version, b.version) for machine, a, b in choose(gathered)]
    assert chosen == [("workshop", BEFORE, NEWEST)]
    named = [(a.version, b.version) for _, a, b in choose(gathered, DAYS[0])]
    assert named == [(DAYS[0], NEWEST)]
    assert [(a.version, b.version) for _, a, b in choose(gathered, None, DAYS[3])] == [(DAYS[2], DAYS[3])]
    assert [(a.version, b.version) for _, a, b in choose(gathered, DAYS[5], DAYS[2])] == [(DAYS[5], DAYS[2])]
    assert list(choose(gathered, None, DAYS[0])) == [], "nothing came before"
    with pytest.raises(UnknownBuild):
        list(choose(gathered, "2.99.0"))


def test_the_page_and_the_command_say_the_same(results: Path) -> None:
    (section,) = sections(compare_builds(gather(results)))
    told = compare(Request(BEFORE, NEWEST), results, Ledger.beside(results))
    assert [(row.op, row.kind) for row in section.rows] == [
        (row.pair.case.op, row.verdict.kind) for row in told.rows
    ]
    assert section.counts == {"regression": 1, "improvement": 0, "invariant": 2, "inconclusive": 1}
    first = section.rows[0]
    assert (first.op, first.sign, first.word) == ("matmul.mm", "▲", "regression")
    assert first.change.startswith("+20.")
    assert section.differences == (("cpu governor", "performance → powersave"),)
    assert section.command.endswith("--machine workshop --measure")
    assert options([section])["verdict"] == ["regression", "invariant", "inconclusive"]
    assert "machine" not in options([section]), "one machine is no choice"


def test_steps_are_those_of_the_history(results: Path) -> None:
    found = proposals(gather(results))
    (step,) = found[Place("workshop", ENVIRONMENT), CONV]
    assert not step.slower
    assert step.change.ratio == pytest.approx(1 / 1.1, rel=0.01)
    assert step.after.version == DAYS[-8]
    assert (Place("workshop", ENVIRONMENT), BMM) not in found


def test_a_regression_is_the_first_thing_on_the_overview(html: Path) -> None:
    text = plain((html / "overview.html").read_text().partition("<main")[2])
    assert text.index("▲ 1 regression") < text.index("Every case")
    assert re.search(r"▲ slower \+20\.\d % \[.*?\] matmul\.mm forward fp32 cpu m=1024", text)
    table = text[text.index("newest against before") :]
    assert table.index("matmul.mm") < table.index("attention.sdpa") < table.index("conv2d.conv3x3")
    assert f"wrong result on {NEWEST}" in table
    assert "faster by −9.1 %" in text


def test_a_case_shows_what_failed_and_what_is_missing(html: Path) -> None:
    wrong = page_of(html, WRONG)
    assert wrong.count('class="without bad"') == 2
    assert "wrong result: relative error 0.3 &lt;script&gt;" in wrong
    adam = page_of(html, ADAM)
    assert len(re.findall(r'class="without"', adam)) == 1
    assert "<title>not measured</title>" in adam
    assert page_of(html, MM).count("<tr data-at") == len(DAYS)
    assert "▲ +20." in page_of(html, MM)
    assert "Proposed step: faster by −9.1 %" in plain(page_of(html, CONV))


def test_the_machine_is_described_and_asked_to_be_calibrated(html: Path, results: Path) -> None:
    text = plain((html / "machines.html").read_text())
    assert "AMD EPYC 9R14" in text
    assert "Not calibrated: run accel-micro calibrate" in text
    assert not (results / "workshop" / CALIBRATIONS).exists()


def test_pages_of_cases_that_are_gone_are_removed(results: Path, tmp_path: Path) -> None:
    write_site(tmp_path, results)
    pages = sorted((tmp_path / "cases").iterdir())
    (tmp_path / "cases" / "old.html").write_text("")
    (tmp_path / "index.html").write_text("asv's")
    write_site(tmp_path, results)
    assert sorted((tmp_path / "cases").iterdir()) == pages
    assert (tmp_path / "index.html").read_text() == "asv's"
    assert 'href="../index.html">asv</a>' in pages[0].read_text()


def test_torn_lines_are_named_and_cost_nothing(tmp_path: Path) -> None:
    results = write_results(tmp_path / "results")
    with next(results.glob(f"*/*{SUFFIX}")).open("a") as file:
        file.write('{"torn\n')
    written = write_site(tmp_path / "html", results)
    assert (written.cases, written.builds, written.regressions) == (5, len(DAYS), 1)
    assert len(written.problems) == 1
    assert "not a record" in (tmp_path / "html" / "overview.html").read_text()


def test_an_empty_folder_gives_pages_that_say_what_to_do(tmp_path: Path) -> None:
    write_site(tmp_path / "html", tmp_path / "results")
    assert "accel-micro quick" in (tmp_path / "html" / "overview.html").read_text()
    assert "nothing is compared" in (tmp_path / "html" / "significance.html").read_text()


def command(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["report", *arguments])
    return done.exit_code, done.output


def test_the_command(results: Path, tmp_path: Path) -> None:
    write_results(tmp_path / "results")
    code, said = command("--out", str(tmp_path))
    assert code == 0, said
    assert "5 cases on 13 builds, 1 regression, in " in said
    assert (tmp_path / "html" / "overview.html").as_uri() in said
    code, said = command("--out", str(tmp_path), "--baseline", DAYS[0], "--contender", DAYS[1])
    assert code == 0
    assert f"torch {DAYS[0]} → torch {DAYS[1]}" in (tmp_path / "html" / "significance.html").read_text()
    assert command("--out", str(tmp_path), "--baseline", "2.99.0")[0] == 2
    code, said = command("--out", str(tmp_path / "nothing"))
    assert code == 3
    assert "holds no results yet" in said


def test_builds_that_were_asked_for_are_not_called_the_newest(results: Path, tmp_path: Path) -> None:
    write_site(tmp_path, results, baseline=DAYS[0], contender=DAYS[3])
    assert "newest against" not in (tmp_path / "overview.html").read_text()
    assert "Newest builds" not in (tmp_path / "overview.html").read_text()
    assert f"throughput, 12.0 → 12.0 ms, {DAYS[0]} → {DAYS[3]}." in plain(page_of(tmp_path, MM))


def test_a_command_can_be_copied_whatever_the_machine_is_called(tmp_path: Path) -> None:
    write_results(tmp_path / "results", "my laptop")
    write_site(tmp_path / "html", tmp_path / "results")
    shown = html_text((tmp_path / "html" / "significance.html").read_text())
    assert f"accel-micro compare {BEFORE} {NEWEST} --machine 'my laptop' --measure" in shown


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--contender", DAYS[0]), f"has measured {DAYS[0]} and a build before it"),
        (("--baseline", NEWEST), f"has measured {NEWEST} and a newer build"),
        (("--baseline", NEWEST, "--contender", NEWEST), f"has measured {NEWEST} and {NEWEST} as two builds"),
    ],
)
def test_where_the_builds_asked_for_cannot_be_compared_it_is_said_which_are_lacking(
    options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    write_results(tmp_path / "results")
    code, output = command("--out", str(tmp_path), *options)
    assert code == 2
    assert said in output
    assert "two builds of one channel" not in (tmp_path / "html" / "overview.html").read_text()


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=40), st.integers(1, 4))
def test_every_mark_of_a_history_lies_in_its_plot(times: list[float], processes: int) -> None:
    builds = [identify(f"2.{number}.0") for number in range(len(times))]
    points = {
        build.id: Point(
            e := estimate([[seconds * (1 + 0.01 * n)] for n in range(processes)]), (e.seconds,), (), (), ""
        )
        for build, seconds in zip(builds, times, strict=True)
    }
    plot = plots.history_plot(builds, points, {})
    numbers = [
        float(n) for n in re.findall(r"[\d.]+", plot.line + plot.intervals + plot.processes + plot.release)
    ]
    assert all(0 <= number <= plots.WIDTH for number in numbers)
    ys = [float(y) for y in re.findall(r"M[\d.]+ (-?[\d.]+)", plot.release)]
    assert all(0 <= y <= plots.HEIGHT for y in ys)
    assert all(0 <= at <= 100 for at in plot.at.values())
    assert list(plot.at.values()) == sorted(plot.at.values())


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=30))
def test_a_forest_keeps_order_and_puts_equality_in_the_middle(ratios: list[float]) -> None:
    verdicts = [Verdict("inconclusive", r, r / 1.1, r * 1.1, 0.5, 3) for r in sorted(ratios)]
    axis = plots.ForestAxis(verdicts, 0.02)
    rows = [axis.row(verdict) for verdict in verdicts]
    places = [row.at for row in rows if row.at is not None]
    assert places == sorted(places)
    assert all(0 <= row.low <= (row.at or 0) <= row.high <= 100 for row in rows)
    assert axis.place(1.0) == 50
    assert axis.band[0] < 50 < axis.band[1]
    assert axis.row(Verdict("inconclusive", float("nan"), 0.0, float("inf"), 1.0, None)).at is None


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.234, "+23.4 %"), (0.95, "−5.0 %"), (2.5, "×2.5"), (0.25, "÷4.0"), (float("nan"), "unknown")],
)
def test_ratios_in_words(ratio: float, text: str) -> None:
    assert change(ratio) == text
