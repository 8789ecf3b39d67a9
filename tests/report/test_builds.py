import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from accel_micro.builds import Installation, Ledger, Place, Target, Wheel, identify
from accel_micro.builds.measured import measured_on
from accel_micro.builds.ranges import missing_days
from accel_micro.report.builds import BuildRow, build_rows, print_build, print_builds, to_json

TAG = "cp311-cp311-linux_x86_64"
HERE = Target("3.11", (TAG,), ("cu130",))
ADDRESS = "https://example.org/whl/nightly/cu130/torch/"
A, B, MAIN = "a" * 40, "b" * 40, "1" * 40


def wheel(version: str, git: str | None = None, listed: bool = True, **facts: object) -> Wheel:
    name = f"torch-{version}-{TAG}.whl"
    places = (Place(ADDRESS + name, ADDRESS, listed),)
    return Wheel(identify(version).id, version, name, "cu130", places, git_version=git, **facts)  # type: ignore[arg-type]


def ledger() -> Ledger:
    """A few of each kind: listed, hidden, broken, of no wheel for this machine, of one commit twice, from source."""
    found = Ledger(Path("nowhere.jsonl"))
    wheels = [
        wheel("2.15.0.dev20261105+cu130", A, listed=False, size_bytes=812_345_678, sha256="c" * 64),
        wheel("2.15.0.dev20261106+cu130", B, size_bytes=812_345_999),
        wheel("2.15.0.dev20261109+cu130", broken="incomplete: cut off\x1b[2J\nin the middle"),
    ]
    local = "2.15.0a0+git1234567"
    for version, git in (
        ("2.15.0.dev20261105", A),
        ("2.15.0.dev20261106", B),
        ("2.15.0.dev20261107", B),
        ("2.15.0.dev20261109", None),
        ("2.9.1", None),
        (local, "d" * 40),
    ):
        build = identify(version, git)
        found.add(replace(build, date_milliseconds=build.date_milliseconds or 1_800_000_000_000))
    for record in (*wheels, Installation("d" * 40, "/src/venv/bin/python")):
        found._fold(record)
    return found


def rows(known: Ledger) -> list[BuildRow]:
    measured = {"20261105": {"gpu-node-3", "laptop"}, "2a9a1f55": {"laptop"}}
    return build_rows(known, known.ordered(), [HERE], measured)


def written(width: int = 110) -> Console:
    return Console(file=io.StringIO(), width=width, highlight=False)


def text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_table(snapshot: SnapshotAssertion) -> None:
    known = ledger()
    console = written()
    print_builds(rows(known), missing_days(known.ordered()), console)
    assert text(console) == snapshot
    assert "\x1b" not in text(console)


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_a_narrow_table_keeps_what_names_a_build(width: int) -> None:
    known = ledger()
    console = written(width)
    print_builds(rows(known), [], console)
    for build in known:
        assert build.version in text(console)
        assert build.id[:8] in text(console)


def test_one_build_in_full(snapshot: SnapshotAssertion) -> None:
    known = ledger()
    console = written()
    for row in rows(known):
        print_build(row, known.wheels(row.build.id), console)
        console.print("-----")
    assert text(console) == snapshot


def test_states() -> None:
    states = {row.build.version: row.state for row in rows(ledger())}
    assert states == {
        "2.15.0.dev20261105": "hidden",
        "2.15.0.dev20261106": "listed",
        "2.15.0.dev20261107": "no wheel",
        "2.15.0.dev20261109": "broken",
        "2.9.1": "no wheel",
        "2.15.0a0+git1234567": "here",
    }


def test_a_file_that_is_here(tmp_path: Path) -> None:
    known = ledger()
    path = tmp_path / f"torch-2.9.1+cu130-{TAG}.whl"
    path.touch()
    place = Place(path.as_uri(), tmp_path.as_uri() + "/")
    known._fold(replace(wheel("2.9.1+cu130"), places=(place,)))
    (row,) = build_rows(known, [known.resolve("2.9.1")], [HERE])
    assert row.state == "here"


def test_json_holds_what_a_program_needs() -> None:
    found = {row["version"]: row for row in json.loads(json.dumps([to_json(row) for row in rows(ledger())]))}
    nightly = found["2.15.0.dev20261106"]
    assert nightly["date"] == "2026-11-06"
    assert nightly["compare_url"].endswith(f"/compare/{A}...{B}")
    assert nightly["wheel"]["size_bytes"] == 812_345_999
    assert nightly["wheel"]["urls"] == [ADDRESS + nightly["wheel"]["file_name"]]
    assert found["2.15.0.dev20261107"]["same_commit_as_before"]
    assert found["2.15.0.dev20261105"]["measured_on"] == ["gpu-node-3", "laptop"]
    assert found["2.15.0a0+git1234567"]["python"] == "/src/venv/bin/python"


def test_commits_of_main_are_shown_where_they_are_known() -> None:
    known = ledger()
    build = known.resolve("20261106")
    known.add(replace(build, main_commit=MAIN))
    (row,) = build_rows(known, [known.resolve("20261106")], [HERE])
    assert to_json(row)["commit_url"].endswith(MAIN)


def test_results_tell_what_is_measured(tmp_path: Path) -> None:
    for name in (
        "laptop/20261105-existing.json",
        "gpu/20261105-cu130-py3.11.json",
        "gpu/2a9a1f55-x.json",
        "gpu/machine.json",
        "benchmarks.json",
        "gpu/2026110-x.json",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert measured_on(tmp_path) == {"20261105": {"laptop", "gpu"}, "2a9a1f55": {"gpu"}}
    assert measured_on(tmp_path / "nowhere") == {}
