import html.parser
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from accel_micro.builds import Ledger, Target
from accel_micro.builds.archive import ArchiveBusy, archive
from accel_micro.builds.contents import sha256_of
from accel_micro.builds.index import read_all
from accel_micro.builds.sync import sync
from accel_micro.builds.web import Web
from accel_micro.builds.wheels import Place, Wheel
from tests.builds.fake_torch import GIT, write_wheel
from tests.builds.index_server import Index

HERE = Target.here(("cpu",), "3.11")
VERSIONS = ["2.15.0.dev20261105+cpu", "2.15.0.dev20261106+cpu"]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.beside(tmp_path / "results")


def served(index: Index, folder: Path, ledger: Ledger, web: Web, **how: Any) -> list[Wheel]:
    """Wheels of an index, as the ledger knows them."""
    names = []
    for version in VERSIONS:
        path = write_wheel(folder / "served", version, tag=HERE.tags[0])
        index.file(f"/whl/{path.name}", path.read_bytes(), **how)
        names.append(path.name)
    sync(ledger, [index.links("/whl/cpu/", names)], [HERE], web, commits=False)
    return ledger.wheels()


def test_an_archive_is_an_index(index: Index, web: Web, ledger: Ledger, tmp_path: Path) -> None:
    wheels = served(index, tmp_path, ledger, web)
    done = archive(ledger, wheels, tmp_path / "kept", web)
    assert [wheel.file_name for wheel, _ in done.kept] == [wheel.file_name for wheel in wheels]
    (listing,) = read_all([str(tmp_path / "kept")], (), web)
    assert {link.file_name for link in listing.links} == {wheel.file_name for wheel in wheels}
    for link in listing.links:
        assert link.sha256 == sha256_of(tmp_path / "served" / link.file_name)
    known = Ledger(ledger.path).wheel(wheels[0].file_name)
    assert known is not None
    assert (known.sha256, known.git_version) == (listing.links[0].sha256, GIT)
    assert known.urls[0] == listing.links[0].url
    index.answers.clear()
    found = sync(Ledger(ledger.path), [str(tmp_path / "kept")], [HERE], web)
    assert found.builds == found.wheels == found.failures == found.problems == []


class _Page(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name == "href"]


def test_its_pages_are_as_pep_503_wants_them(index: Index, web: Web, ledger: Ledger, tmp_path: Path) -> None:
    archive(ledger, served(index, tmp_path, ledger, web), tmp_path / "kept", web)
    assert _Page((tmp_path / "kept" / "index.html").read_text()).links == ["torch/"]
    links = _Page((tmp_path / "kept" / "torch" / "index.html").read_text()).links
    assert [link.partition("#")[0] for link in links] == [
        f"{path.name.replace('+', '%2B')}" for path in sorted((tmp_path / "kept" / "torch").glob("*.whl"))
    ]


def test_what_is_there_is_not_downloaded_again(
    index: Index, web: Web, ledger: Ledger, tmp_path: Path
) -> None:
    wheels = served(index, tmp_path, ledger, web)
    archive(ledger, wheels[:1], tmp_path / "kept", web)
    asked = index.asked.copy()
    done = archive(ledger, wheels, tmp_path / "kept", web)
    assert [wheel.file_name for wheel in done.already] == [wheels[0].file_name]
    assert len(done.kept) == 1
    assert index.asked[f"/whl/{wheels[0].file_name}"] == asked[f"/whl/{wheels[0].file_name}"]


def test_it_goes_on_where_it_stopped(index: Index, web: Web, ledger: Ledger, tmp_path: Path) -> None:
    wheels = served(index, tmp_path, ledger, web)
    name = wheels[0].file_name
    data = index.answers[f"/whl/{name}"].body
    partial = tmp_path / "kept" / "torch" / f"{name}.partial"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(data[:700])
    dry = archive(ledger, wheels[:1], tmp_path / "kept", web, dry_run=True)
    assert dry.total_bytes == len(data) - 700
    progress: list[int] = []
    archive(ledger, wheels[:1], tmp_path / "kept", web, advance=progress.append)
    assert index.requests[-1][1] == "bytes=700-"
    assert (tmp_path / "kept" / "torch" / name).read_bytes() == data
    assert not partial.exists()
    assert progress[-1] == len(data)


def test_a_dry_run_tells_sizes_and_writes_nothing(
    index: Index, web: Web, ledger: Ledger, tmp_path: Path
) -> None:
    wheels = served(index, tmp_path, ledger, web)
    done = archive(ledger, wheels, tmp_path / "kept", web, dry_run=True)
    sizes = [len(index.answers[f"/whl/{wheel.file_name}"].body) for wheel in wheels]
    assert [size for _, size in done.kept] == sizes
    assert done.total_bytes == sum(sizes)
    assert not (tmp_path / "kept").exists()


def test_a_wrong_hash_is_not_kept(index: Index, web: Web, ledger: Ledger, tmp_path: Path) -> None:
    first, second = served(index, tmp_path, ledger, web)
    wrong = replace(first, sha256="0" * 64)
    done = archive(ledger, [wrong, second], tmp_path / "kept", web)
    assert "is not the file it was: its sha256 was 0000" in done.failures[first.file_name]
    assert [path.name for path in (tmp_path / "kept" / "torch").glob("*.whl*")] == [second.file_name]


def test_a_truncated_wheel_is_not_kept(index: Index, web: Web, ledger: Ledger, tmp_path: Path) -> None:
    first, second = served(index, tmp_path, ledger, web)
    answer = index.answers[f"/whl/{first.file_name}"]
    answer.body = answer.body[:500]
    done = archive(ledger, [first, second], tmp_path / "kept", web)
    assert "is no whole wheel" in done.failures[first.file_name]
    assert len(done.kept) == 1


def test_parts_of_two_files_are_not_taken_for_one(
    index: Index, web: Web, ledger: Ledger, tmp_path: Path
) -> None:
    name = f"torch-{VERSIONS[0]}-{HERE.tags[0]}.whl"
    data = [
        write_wheel(
            tmp_path / folder, VERSIONS[0], tag=HERE.tags[0], more={"torch/lib": content * 4000}
        ).read_bytes()
        for folder, content in (("one", b"a"), ("two", b"b"))
    ]
    index.file(f"/whl/{name}", data[1])
    sync(ledger, [index.links("/whl/cpu/", [name])], [HERE], web, commits=False)
    partial = tmp_path / "kept" / "torch" / f"{name}.partial"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(data[0][:3000])
    done = archive(ledger, ledger.wheels(), tmp_path / "kept", web)
    assert "has a wrong sum" in done.failures[name] or "is no whole wheel" in done.failures[name]
    assert archive(ledger, ledger.wheels(), tmp_path / "kept", web).failures == {}
    assert (partial.parent / name).read_bytes() == data[1]


def test_other_places_are_tried(index: Index, web: Web, ledger: Ledger, tmp_path: Path) -> None:
    first, second = served(index, tmp_path, ledger, web)
    lost = replace(first, places=(Place(index.url + "/lost.whl", "i"), *first.places))
    local = replace(second, places=(Place((tmp_path / "served" / second.file_name).as_uri(), "j"),))
    done = archive(ledger, [replace(lost, size_bytes=None), local], tmp_path / "kept", web)
    assert len(done.kept) == 1, "its size could not be asked for"
    done = archive(
        ledger,
        [replace(lost, size_bytes=len(index.answers[f"/whl/{first.file_name}"].body)), local],
        tmp_path / "kept",
        web,
    )
    assert done.failures == {}


def test_a_wheel_of_another_machine_alone(web: Web, ledger: Ledger, tmp_path: Path) -> None:
    place = Place((tmp_path / "elsewhere.whl").as_uri(), "i")
    name = f"torch-{VERSIONS[0]}-{HERE.tags[0]}.whl"
    done = archive(ledger, [Wheel("0" * 40, VERSIONS[0], name, "cpu", (place,))], tmp_path / "kept", web)
    assert done.failures == {name: f"{name} was on another machine only"}


def test_one_archive_at_a_time(index: Index, web: Web, ledger: Ledger, tmp_path: Path) -> None:
    wheels = served(index, tmp_path, ledger, web)
    folder = tmp_path / "kept" / "torch"
    folder.mkdir(parents=True)
    with FileLock(folder / ".lock"), pytest.raises(ArchiveBusy, match="another process archives into"):
        archive(ledger, wheels, tmp_path / "kept", web)


def test_no_room(
    index: Index, web: Web, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = served(index, tmp_path, ledger, web)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 8, 1))  # type: ignore[attr-defined]
    with pytest.raises(OSError, match=r"has room for 1 bytes, and [\d,]+ are to come"):
        archive(ledger, wheels, tmp_path / "kept", web)
    assert not list((tmp_path / "kept" / "torch").glob("*.whl*"))
