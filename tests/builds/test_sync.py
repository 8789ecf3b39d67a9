from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_micro.builds import Ledger, Target, identify
from accel_micro.builds.commits import Nightlies
from accel_micro.builds.sync import Synced, sync
from accel_micro.builds.web import Web
from tests.builds.fake_torch import GIT, write_wheel
from tests.builds.index_server import Answer, Index, serving

HERE = Target.here(("cpu",), "3.11")
TAG = HERE.tags[0]
FOREIGN = ("cp312-cp312-win_amd64", "cp39-cp39-macosx_11_0_arm64")
PAGE = "/whl/cpu/torch/"


def nightly(day: int) -> str:
    return f"2.15.0.dev202611{day:02d}+cpu"


def name_of(version: str, tag: str = TAG) -> str:
    return f"torch-{version}-{tag}.whl"


def serve(index: Index, folder: Path, versions: Sequence[str], attributes: str = "", **how: Any) -> str:
    """An index with whole wheels, which know their commit; returns its address."""
    for version in versions:
        path = write_wheel(folder, version, tag=TAG)
        index.file(f"/whl/{path.name}", path.read_bytes(), **how)
    return index.links("/whl/cpu/", [name_of(version) for version in versions], attributes=attributes)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.beside(tmp_path / "results")


def read(ledger: Ledger, web: Web, *indexes: str, **how: Any) -> Synced:
    """Sync as a new process would."""
    return sync(Ledger(ledger.path), indexes, [HERE], web, **how)


def again(ledger: Ledger) -> Ledger:
    return Ledger(ledger.path)


def lines(ledger: Ledger) -> int:
    return len(ledger.path.read_text().splitlines()) if ledger.path.exists() else 0


def test_what_is_listed_is_remembered(index: Index, web: Web, ledger: Ledger, tmp_path: Path) -> None:
    address = serve(index, tmp_path, [nightly(5), nightly(6), "2.14.0+cpu"])
    found = read(ledger, web, address)
    assert (len(found.builds), len(found.wheels), found.commits, found.failures) == (3, 3, 3, [])
    known = again(ledger)
    assert [build.version for build in known.ordered("nightly")] == [
        nightly(5).removesuffix("+cpu"),
        nightly(6).removesuffix("+cpu"),
    ]
    assert {build.git_version for build in known} == {GIT}
    (wheel,) = known.wheels(identify(nightly(5)).id)
    assert (wheel.variant, wheel.listed, wheel.git_version) == ("cpu", True, GIT)
    assert wheel.urls == [f"{index.url}/whl/{name_of(nightly(5)).replace('+', '%2B')}"]
    assert wheel.size_bytes == len(index.answers[f"/whl/{wheel.file_name}"].body)


def test_releases_are_read_elsewhere_where_an_index_is_out_of_reach(
    index: Index, web: Web, ledger: Ledger, tmp_path: Path
) -> None:
    with serving() as away:
        pass
    otherwise = serve(index, tmp_path, ["2.14.0"])
    found = read(ledger, web, f"{away.url}/whl/{{variant}}/", otherwise=otherwise)
    assert [build.version for build in found.builds] == ["2.14.0"]
    assert found.failures[0].startswith("127.0.0.1 cannot be reached"), "which is still told"
    assert found.instead == f"releases are read from {index.url}{PAGE}"
    assert found.notes == [*found.failures, found.instead]
    (wheel,) = again(ledger).wheels()
    assert (wheel.variant, wheel.git_version) == ("default", GIT)


def test_where_all_can_be_read_the_other_index_is_not_asked(
    index: Index, web: Web, ledger: Ledger, tmp_path: Path
) -> None:
    address = serve(index, tmp_path, [nightly(5)])
    found = read(ledger, web, address, f"{index.url}/lacks/{{variant}}/", otherwise=f"{index.url}/other/")
    assert (found.instead, found.failures, index.asked["/other/torch/"]) == ("", [], 0)


def test_wheels_without_a_variant_are_looked_for_in_the_other_index(
    index: Index, web: Web, ledger: Ledger, tmp_path: Path
) -> None:
    serve(index, tmp_path, [nightly(5)])
    path = write_wheel(tmp_path, "2.14.0", tag=TAG)
    index.file(f"/other/{path.name}", path.read_bytes())
    otherwise = index.links("/other/", [path.name], base="/other/")
    target = Target.here(("default",), "3.11")
    found = sync(Ledger(ledger.path), [f"{index.url}/whl/{{variant}}/"], [target], web, otherwise=otherwise)
    assert ([wheel.version for wheel in found.wheels], found.failures) == (["2.14.0"], [])


def test_another_index_that_cannot_be_read_either_is_told(index: Index, web: Web, ledger: Ledger) -> None:
    with serving() as away:
        pass
    found = read(ledger, web, f"{away.url}/a/", otherwise=f"{index.url}/other/")
    assert (len(found.failures), found.instead) == (2, "")


def test_a_second_sync_writes_nothing_and_asks_nothing(
    index: Index, web: Web, ledger: Ledger, tmp_path: Path
) -> None:
    address = serve(index, tmp_path, [nightly(5), nightly(6)])
    read(ledger, web, address)
    before, index.asked = lines(ledger), type(index.asked)()
    found = read(ledger, web, address)
    assert (found.builds, found.wheels, found.gone) == ([], [], [])
    assert lines(ledger) == before
    assert set(index.asked) == {PAGE}


def test_a_build_that_left_the_index_is_kept(index: Index, web: Web, ledger: Ledger, tmp_path: Path) -> None:
    read(ledger, web, serve(index, tmp_path, [nightly(5), nightly(6)]))
    found = read(ledger, web, serve(index, tmp_path, [nightly(6), nightly(7)]))
    assert [wheel.file_name for wheel in found.gone] == [name_of(nightly(5))]
    known = again(ledger)
    assert len(known.ordered("nightly")) == 3
    (wheel,) = known.wheels(identify(nightly(5)).id)
    assert not wheel.listed
    assert wheel.urls, "the file often outlives its link"
    found = read(ledger, web, serve(index, tmp_path, [nightly(5)]))
    assert {wheel.file_name for wheel in found.gone} == {name_of(nightly(6)), name_of(nightly(7))}
    (wheel,) = again(ledger).wheels(identify(nightly(5)).id)
    assert wheel.listed


def test_a_variant_that_is_no_longer_offered(index: Index, web: Web, ledger: Ledger) -> None:
    target = Target.here(("cu132", "cu126"), "3.11")
    for variant in target.variants:
        index.links(f"/whl/{variant}/", [name_of(f"2.15.0.dev20261105+{variant}")])
    sync(ledger, [index.url + "/whl/{variant}/"], [target], web, commits=False)
    del index.answers["/whl/cu126/torch/"]
    found = sync(again(ledger), [index.url + "/whl/{variant}/"], [target], web, commits=False)
    assert found.failures == []
    assert [wheel.variant for wheel in found.gone] == ["cu126"]
    index.answers.clear()
    found = sync(again(ledger), [index.url + "/whl/{variant}/"], [target], web, commits=False)
    assert len(found.failures) == 2, "a server that has nothing at all is not believed"
    assert found.gone == []


def test_wheels_of_other_pythons_and_platforms_make_builds_known_and_are_not_noted(
    index: Index, web: Web, ledger: Ledger
) -> None:
    names = [name_of(nightly(5), tag) for tag in FOREIGN] + [name_of("2.15.0.dev20261106+cu130")]
    found = read(ledger, web, index.links("/whl/cpu/", names))
    assert len(found.builds) == 2
    assert found.wheels == []
    assert again(ledger).wheels() == []
    assert found.problems == []


def test_one_build_has_one_id_across_variants_and_pages(index: Index, web: Web, ledger: Ledger) -> None:
    target = Target.here(("cu132", "cu130"), "3.11")
    mac = "torch-2.15.0.dev20261105-cp311-none-macosx_11_0_arm64.whl"
    for variant in target.variants:
        index.links(f"/whl/{variant}/", [name_of(f"2.15.0.dev20261105+{variant}"), mac])
    index.links("/mirror/", [name_of("2.15.0.dev20261105+cu132")])
    indexes = [index.url + "/whl/{variant}/", index.url + "/mirror/"]
    for _ in range(2):
        found = sync(again(ledger), indexes, [target], web, commits=False)
    (build,) = again(ledger).ordered()
    assert [wheel.variant for wheel in again(ledger).wheels(build.id)] == ["cu130", "cu132"]
    assert len(again(ledger).wheels(build.id)[1].places) == 2
    assert found.builds == found.wheels == []
    assert lines(ledger) == 3


def test_an_index_that_is_down_leaves_the_ledger_as_it_was(web: Web, ledger: Ledger, tmp_path: Path) -> None:
    with serving() as index:
        address = serve(index, tmp_path, [nightly(5)])
        read(ledger, web, address)
    before = ledger.path.read_bytes()
    found = read(ledger, web, address)
    assert found.failures[0].startswith("127.0.0.1 cannot be reached")
    assert (found.builds, found.gone) == ([], [])
    assert ledger.path.read_bytes() == before


def test_a_server_that_is_down_is_named_once(web: Web, ledger: Ledger) -> None:
    targets = [Target.here([f"cu{number}" for number in range(110, 140)], "3.11")]
    found = sync(ledger, ["http://127.0.0.1:1/{variant}/", "http://127.0.0.1:1/whl/{variant}/"], targets, web)
    assert len(found.listings) == 60
    assert len(found.failures) < 10, "it is not tried again for each page"


def test_garbage_makes_nothing_vanish(index: Index, web: Web, ledger: Ledger, tmp_path: Path) -> None:
    address = serve(index, tmp_path, [nightly(5)])
    read(ledger, web, address)
    index.page(PAGE, "<html>please log in</html>")
    found = read(ledger, web, address)
    assert "lists no wheel of torch" in found.failures[0]
    assert again(ledger).wheels()[0].listed


def test_one_of_two_indexes_is_down(index: Index, web: Web, ledger: Ledger, tmp_path: Path) -> None:
    address = serve(index, tmp_path, [nightly(5)])
    found = read(ledger, web, "http://127.0.0.1:1/", address)
    assert len(found.failures) == len(found.builds) == 1


def test_trouble_that_passes(index: Index, web: Web, ledger: Ledger, tmp_path: Path) -> None:
    address = serve(index, tmp_path, [nightly(5)], failures=[500])
    index.answers[PAGE].failures = [502, 503]
    found = read(ledger, web, address)
    assert (len(found.builds), found.commits, found.failures) == (1, 1, [])


def test_a_changed_file_is_not_taken(index: Index, web: Web, ledger: Ledger, tmp_path: Path) -> None:
    served = serve(index, tmp_path, [nightly(5), nightly(6)], 'data-core-metadata="sha256=' + "a" * 64 + '"')
    read(ledger, web, served)
    before = again(ledger).wheels(identify(nightly(5)).id)
    page = index.answers[PAGE]
    page.body = page.body.replace(b"a" * 64, b"b" * 64, 1)
    found = read(ledger, web, served)
    (sentence,) = found.changed
    assert sentence.startswith(
        f"{name_of(nightly(5))} of {served}torch/ is not the file it was: its metadata"
    )
    assert again(ledger).wheels(identify(nightly(5)).id) == before
    found = read(ledger, web, served, accept=[name_of(nightly(5))])
    assert found.changed == []
    (wheel,) = again(ledger).wheels(identify(nightly(5)).id)
    assert (wheel.metadata_sha256, wheel.replaced, wheel.broken) == ("b" * 64, 1, None)
    assert read(ledger, web, served).changed == []


def test_two_indexes_disagree_about_a_file(index: Index, web: Web, ledger: Ledger) -> None:
    name = name_of(nightly(5))
    for path, sha in (("/one/", "a"), ("/two/", "b")):
        index.page(f"{path}torch/", f'<a href="/{path}{name}#sha256={sha * 64}">{name}</a>')
    found = read(ledger, web, index.url + "/one/", index.url + "/two/", commits=False)
    assert f"the first is that of {index.url}/one/torch/" in found.changed[0]
    (wheel,) = again(ledger).wheels()
    assert wheel.sha256 == "a" * 64
    assert len(wheel.places) == 1


def test_a_wheel_of_another_size_than_known(index: Index, web: Web, ledger: Ledger, tmp_path: Path) -> None:
    address = serve(index, tmp_path, [nightly(5)])
    read(ledger, web, address, commits=False)
    (wheel,) = again(ledger).wheels()
    again(ledger).remember_all([replace(wheel, size_bytes=5)])
    found = read(ledger, web, address)
    assert "its size_bytes was 5 and is now" in found.changed[0]
    assert again(ledger).wheels()[0].size_bytes == 5


def test_a_server_without_ranges_is_said_once(index: Index, web: Web, ledger: Ledger, tmp_path: Path) -> None:
    address = serve(index, tmp_path, [nightly(day) for day in range(1, 29)], ranges=False)
    found = read(ledger, web, address)
    (problem,) = found.problems
    assert "gives files only as a whole" in problem
    assert len(again(ledger).ordered()) == 28
    assert sum(index.asked.values()) < 20, "it is not asked for each wheel"


def test_a_truncated_wheel_is_broken_until_it_is_whole(
    index: Index, web: Web, ledger: Ledger, tmp_path: Path
) -> None:
    address = serve(index, tmp_path, [nightly(5), nightly(6)])
    whole = index.answers[f"/whl/{name_of(nightly(5))}"].body
    index.answers[f"/whl/{name_of(nightly(5))}"] = Answer(whole[:300])
    found = read(ledger, web, address)
    assert found.commits == 1
    (wheel,) = again(ledger).wheels(identify(nightly(5)).id)
    assert wheel.broken is not None
    assert "is no whole wheel" in wheel.broken
    index.answers[f"/whl/{name_of(nightly(5))}"] = Answer(whole)
    read(ledger, web, address)
    (wheel,) = again(ledger).wheels(identify(nightly(5)).id)
    assert (wheel.broken, wheel.git_version) == (None, GIT)


def test_what_an_installation_found_broken_stays_so(
    index: Index, web: Web, ledger: Ledger, tmp_path: Path
) -> None:
    address = serve(index, tmp_path, [nightly(5)])
    read(ledger, web, address, commits=False)
    again(ledger).mark_broken(name_of(nightly(5)), "triton cannot be resolved")
    read(ledger, web, address)
    assert again(ledger).wheels()[0].broken == "triton cannot be resolved"


def test_releases_are_dated_by_their_first_upload(index: Index, web: Web, ledger: Ledger) -> None:
    links = [
        f'<a href="{name}" data-upload-time="2026-0{month}-01T00:00:00Z">{name}</a>'
        for month, name in ((7, name_of("2.99.0+cpu")), (6, name_of("2.99.0+cpu", FOREIGN[0])))
    ]
    index.page(PAGE, "".join(links))
    read(ledger, web, index.url + "/whl/cpu/", commits=False)
    (build,) = again(ledger)
    assert build.date_milliseconds == 1780272000000


def test_a_build_without_any_date_is_dated_when_it_was_first_seen(
    index: Index, web: Web, ledger: Ledger
) -> None:
    address = index.links("/whl/cpu/", [name_of("2.99.0+cpu")])
    read(ledger, web, address, commits=False)
    (build,) = again(ledger)
    assert build.date_milliseconds
    read(ledger, web, address, commits=False)
    assert list(again(ledger)) == [build]


def test_a_build_from_source_is_named_by_its_commit(web: Web, ledger: Ledger, tmp_path: Path) -> None:
    write_wheel(tmp_path / "wheels", "2.15.0a0+git1234567", tag=TAG, git="c" * 40)
    for _ in range(2):
        found = read(ledger, web, str(tmp_path / "wheels"))
    (build,) = again(ledger)
    assert (build.id, build.channel, build.version) == ("c" * 40, "local", "2.15.0a0+git1234567")
    assert [wheel.build_id for wheel in again(ledger).wheels()] == ["c" * 40]
    assert found.builds == found.wheels == []


def test_a_dry_run_writes_and_asks_nothing(index: Index, web: Web, ledger: Ledger, tmp_path: Path) -> None:
    address = serve(index, tmp_path, [nightly(5)])
    found = read(ledger, web, address, dry_run=True)
    assert (len(found.builds), len(found.wheels), found.commits) == (1, 1, 0)
    assert not ledger.path.exists()
    assert set(index.asked) == {PAGE}


def test_a_clone_completes_what_the_wheels_say(
    index: Index, web: Web, ledger: Ledger, tmp_path: Path
) -> None:
    nightlies = Nightlies({GIT: "1" * 40}, {})
    read(ledger, web, serve(index, tmp_path, [nightly(5)]), nightlies=nightlies)
    (build,) = again(ledger)
    assert (build.git_version, build.main_commit) == (GIT, "1" * 40)


def test_ledgers_of_two_machines_are_one_history(web: Web, tmp_path: Path) -> None:
    ours, theirs = Ledger.beside(tmp_path / "ours"), Ledger.beside(tmp_path / "theirs")
    write_wheel(tmp_path / "one", nightly(5), tag=TAG)
    for version in (nightly(5), nightly(6)):
        write_wheel(tmp_path / "two", version, tag=TAG)
    read(ours, web, str(tmp_path / "one"))
    read(theirs, web, str(tmp_path / "two"))
    texts = [ours.path.read_text(), theirs.path.read_text()]
    merged = []
    for number, order in enumerate((texts, texts[::-1])):
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(order))
        problems: list[str] = []
        merged.append(Ledger(path, problems))
        assert problems == []
    assert merged[0].ordered() == merged[1].ordered()
    assert merged[0].wheels() == merged[1].wheels()
    (wheel,) = merged[0].wheels(identify(nightly(5)).id)
    assert len(wheel.places) == 2
    assert len(merged[0].ordered("nightly")) == 2
