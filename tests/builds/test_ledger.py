from dataclasses import replace
from datetime import date, timedelta
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.builds import (
    AmbiguousBuild,
    ChangedFile,
    Installation,
    Ledger,
    Place,
    UnknownBuild,
    Wheel,
    identify,
)
from accel_micro.builds.identity import from_id
from accel_micro.builds.ranges import select

VERSIONS = ["2.8.0", "2.9.0", "2.14.0.dev20261105", "2.14.0.dev20261106", "2.14.0a0+git1234567", "2.13.0"]


def ledger_of(path: Path, *versions: str) -> Ledger:
    ledger = Ledger.beside(path)
    for now, version in enumerate(versions, start=1_800_000_000_000):
        ledger.remember(identify(version), now_milliseconds=now)
    return ledger


def test_what_is_remembered_is_read_again(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, *VERSIONS)
    assert list(Ledger.beside(tmp_path)) == list(ledger)
    assert {b.version for b in ledger} == set(VERSIONS)


def test_a_missing_ledger_is_empty(tmp_path: Path) -> None:
    assert list(Ledger.beside(tmp_path / "nowhere")) == []


def test_known_dates_are_kept_and_unknown_ones_are_when_it_was_first_seen(tmp_path: Path) -> None:
    local = identify("2.14.0a0+git1234567")
    for now in (5, 7):
        Ledger.beside(tmp_path).remember(local, now_milliseconds=now)
    ledger = ledger_of(tmp_path, "2.6.0")
    assert ledger.date_milliseconds(local.id) == 5
    assert ledger.date_milliseconds(identify("2.6.0").id) == 1738108800000
    assert len(ledger.path.read_text().splitlines()) == 2


def test_what_becomes_known_later_is_folded_in(tmp_path: Path) -> None:
    git = "cf30153c4c131c8164ee7798e5022d810682e2cb"
    ledger = ledger_of(tmp_path, "2.14.0.dev20261105")
    ledger.remember(identify("2.14.0.dev20261105", git))
    (build,) = Ledger.beside(tmp_path)
    assert build.git_version == git


def test_a_version_replaces_what_the_id_alone_told(tmp_path: Path) -> None:
    build = identify("2.14.0.dev20261105")
    ledger = Ledger.beside(tmp_path)
    assert ledger.add(from_id(build.id)).version == "nightly 20261105"
    assert ledger.add(build).version == "2.14.0.dev20261105"
    assert not ledger.path.exists()


@given(st.permutations(VERSIONS))
def test_merged_ledgers_agree_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, versions: list[str]
) -> None:
    one, other = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("other")
    lines = ledger_of(one, *versions).path.read_text().splitlines(keepends=True)
    ledger = Ledger.beside(other)
    ledger.path.write_text("".join(reversed(lines)))
    assert list(Ledger(ledger.path)) == list(Ledger.beside(one))


def test_releases_first_seen_in_the_wrong_order_are_still_in_order(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, "2.13.0", "2.12.0", "2.11.0rc1")
    assert [b.version for b in ledger.ordered("release")] == ["2.11.0rc1", "2.12.0", "2.13.0"]
    assert Ledger.beside(tmp_path).ordered() == ledger.ordered()


def test_names(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, *VERSIONS)
    nightly = identify("2.14.0.dev20261105")
    for name in ("2.14.0.dev20261105", "2.14.0.dev20261105+cpu", "20261105", "2026-11-05", nightly.id[:10]):
        assert ledger.resolve(name) == nightly
    assert ledger.resolve("2.13.0+cu130").version == "2.13.0"
    assert ledger.resolve("nightly").version == "2.14.0.dev20261106"
    assert ledger.resolve("release").version == "2.13.0"


@given(
    st.sets(st.integers(0, 400), min_size=1),
    st.sets(st.tuples(st.integers(0, 30), st.integers(0, 9)), min_size=1),
)
def test_every_build_is_found_by_all_its_names(days: set[int], releases: set[tuple[int, int]]) -> None:
    ledger = Ledger(Path("nowhere.jsonl"))
    nightlies = [f"2.15.0.dev{date(2026, 1, 1) + timedelta(n):%Y%m%d}" for n in days]
    for version in (*nightlies, *(f"2.{minor}.{patch}" for minor, patch in releases)):
        ledger.add(identify(version))
    for build in ledger:
        for name in (build.version, build.version + "+cu130", build.id, build.id[:12]):
            assert ledger.resolve(name) == build
    for version in nightlies:
        assert ledger.resolve(version[-8:]).version == version
    for build in map(ledger.resolve, ("nightly", "release")):
        assert build == ledger.ordered(build.channel)[-1]


def test_two_nightlies_of_one_day_at_a_branch_cut() -> None:
    ledger = Ledger(Path("nowhere.jsonl"))
    both = [ledger.add(identify(f"2.{minor}.0.dev20261105")) for minor in (14, 15)]
    with pytest.raises(AmbiguousBuild, match=r"2\.14\.0\.dev20261105 .* or 2\.15\.0\.dev20261105"):
        ledger.resolve("20261105")
    assert [ledger.resolve(build.version) for build in both] == both
    assert set(select(ledger, "20261104..20261105")) == set(both)
    assert select(ledger, "20261105..20261106") == []


def test_names_that_fit_none_or_several(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, "2.14.0.dev20261105", "2.14.0.dev20261106")
    with pytest.raises(UnknownBuild, match=r"no build is called '2\.1'; newest known: 2\.14\.0\.dev20261105"):
        ledger.resolve("2.1")
    with pytest.raises(UnknownBuild, match="no release build is known yet"):
        ledger.resolve("release")
    with pytest.raises(AmbiguousBuild, match="202611 may be"):
        ledger.resolve("202611")


def test_torn_and_foreign_lines_are_named_and_skipped(tmp_path: Path) -> None:
    path = ledger_of(tmp_path, "2.8.0", "2.9.0").path
    good = path.read_text()
    path.write_text(
        '{"schema": 9}\n[]\n' + good.replace('"release"', '"elsewhere"', 1) + '{"schema": 1, "id": "to'
    )
    problems: list[str] = []
    ledger = Ledger(path, problems)
    assert [b.version for b in ledger] == ["2.9.0"]
    assert len(problems) == 4
    assert "schema 9" in problems[0]
    ledger.remember(identify("2.13.0"))  # and a torn line does not swallow the next one
    assert {b.version for b in Ledger(path)} == {"2.9.0", "2.13.0"}


def _remember(path: Path, number: int) -> None:
    Ledger.beside(path).remember(replace(identify(f"2.0.{number}"), date_milliseconds=number))


def test_two_runs_may_remember_at_once(tmp_path: Path) -> None:
    context = get_context("spawn")
    processes = [context.Process(target=_remember, args=(tmp_path, number)) for number in range(20, 24)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert len(list(Ledger.beside(tmp_path))) == 4


NIGHTLY = identify("2.14.0.dev20261105")
GIT = "cf30153c4c131c8164ee7798e5022d810682e2cb"


def wheel(version: str = "2.14.0.dev20261105+cpu", **facts: object) -> Wheel:
    place = Place("https://example.org/w.whl", "https://example.org/")
    name = f"torch-{version}-cp311-cp311-linux_x86_64.whl"
    return Wheel(identify(version).id, version, name, "cpu", (place,), **facts)  # type: ignore[arg-type]


def test_wheels_and_installations_are_remembered_with_their_builds(tmp_path: Path) -> None:
    ledger = Ledger.beside(tmp_path)
    here = [Installation(NIGHTLY.id, "/old/python"), Installation(NIGHTLY.id, "/new/python")]
    assert ledger.remember_all([NIGHTLY, wheel(size_bytes=5), *here], now_milliseconds=7) == 4
    assert ledger.remember_all([NIGHTLY, wheel(), *here], now_milliseconds=9) == 0
    for known in (ledger, Ledger.beside(tmp_path)):
        assert known.wheels(NIGHTLY.id) == known.wheels() == [known.wheel(wheel().file_name)]
        assert known.wheels()[0] == wheel(size_bytes=5, first_seen_milliseconds=7, changed_milliseconds=7)
        assert known.installations(NIGHTLY.id) == here[::-1]
        assert known.wheels("0" * 40) == known.installations("0" * 40) == []


def test_a_build_knows_the_commit_of_its_wheels_whichever_comes_first(tmp_path: Path) -> None:
    for number, records in enumerate(([NIGHTLY, wheel(git_version=GIT)], [wheel(git_version=GIT), NIGHTLY])):
        ledger = Ledger(tmp_path / str(number))
        ledger.remember_all(records)
        assert ledger[NIGHTLY.id].git_version == Ledger(ledger.path)[NIGHTLY.id].git_version == GIT


def test_a_changed_file_writes_nothing(tmp_path: Path) -> None:
    ledger = Ledger.beside(tmp_path)
    ledger.remember_all([NIGHTLY, wheel(sha256="a" * 64)])
    before = ledger.path.read_bytes()
    with pytest.raises(ChangedFile, match=r"its sha256 was aaa.* and is now bbb"):
        ledger.remember_all([identify("2.13.0"), wheel(sha256="b" * 64)])
    assert ledger.path.read_bytes() == before
    assert ledger.conflict(wheel(sha256="b" * 64))
    assert ledger.conflict(wheel(sha256="a" * 64)) is None
    accepted = ledger.accept(wheel(sha256="b" * 64))
    assert Ledger.beside(tmp_path).wheels() == [accepted]
    assert (accepted.sha256, accepted.replaced) == ("b" * 64, 1)


def test_what_is_broken_may_be_whole_again(tmp_path: Path) -> None:
    ledger = Ledger.beside(tmp_path)
    ledger.remember_all([NIGHTLY, wheel()], now_milliseconds=9)
    ledger.mark_broken(wheel().file_name, "cut off", now_milliseconds=5)
    assert Ledger.beside(tmp_path).wheels()[0].broken == "cut off"
    ledger.remember_all([wheel(sha256="a" * 64)])
    assert Ledger.beside(tmp_path).wheels()[0].broken == "cut off"
    ledger.mark_broken(wheel().file_name, None, now_milliseconds=5)
    assert Ledger.beside(tmp_path).wheels()[0].broken is None
    with pytest.raises(KeyError):
        ledger.mark_broken("torch-1.0-py3-none-any.whl", "cut off")


def test_two_ledgers_that_know_a_name_as_two_files_say_so(tmp_path: Path) -> None:
    texts = []
    for number, sha256 in enumerate(("a" * 64, "b" * 64)):
        ledger = Ledger(tmp_path / str(number))
        ledger.remember_all([NIGHTLY, wheel(sha256=sha256)], now_milliseconds=number + 1)
        texts.append(ledger.path.read_text())
    for order in (texts, texts[::-1]):
        (tmp_path / "both").write_text("".join(order))
        problems: list[str] = []
        ledger = Ledger(tmp_path / "both", problems)
        assert [w.sha256 for w in ledger.wheels()] == ["a" * 64], "the one that was seen first"
        assert len(problems) == 1
        assert "is known as two files: its sha256 was" in problems[0]


@pytest.mark.parametrize(
    "line",
    [
        '{"schema": 1, "kind": "wheel", "build_id": "ID", "version": "1", "file_name": "../torch-1-py3-none-any.whl"}',
        '{"schema": 1, "kind": "wheel", "build_id": "x", "version": "1", "file_name": "torch-1-py3-none-any.whl"}',
        '{"schema": 1, "kind": "wheel", "build_id": "ID", "version": "1", "file_name": 5}',
        '{"schema": 1, "kind": "wheel", "build_id": "ID", "version": "1", '
        '"file_name": "torch-1-py3-none-any.whl", "places": [5]}',
        '{"schema": 1, "kind": "installation", "build_id": "ID"}',
        '{"schema": 1, "kind": "something new", "build_id": "ID"}',
        "[" * 5000,
    ],
)
def test_lines_of_a_shared_ledger_that_are_no_records(tmp_path: Path, line: str) -> None:
    ledger = ledger_of(tmp_path, "2.8.0")
    with ledger.path.open("a") as file:
        file.write(line.replace("ID", "0" * 40) + "\n")
    problems: list[str] = []
    again = Ledger(ledger.path, problems)
    assert [b.version for b in again] == ["2.8.0"]
    assert again.wheels() == []
    assert len(problems) == 1


def test_lines_of_older_versions_are_read(tmp_path: Path) -> None:
    path = tmp_path / "builds.jsonl"
    path.write_text(
        f'{{"schema": 1, "id": "{NIGHTLY.id}", "channel": "nightly", "version": "2.14.0.dev20261105", '
        '"date_milliseconds": 1793836800000, "git_version": null}\n'
    )
    assert list(Ledger(path)) == [NIGHTLY]
