import io
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from accel_micro.builds import contents as module
from accel_micro.builds.contents import BrokenWheel, Contents, inspect, read_contents, read_file, sha256_of
from accel_micro.builds.web import NoParts, Part, Web
from accel_micro.builds.wheels import ChangedFile, NotAWheel
from tests.builds.fake_torch import GIT, wheel_of, write_wheel
from tests.builds.index_server import Index

VERSION = "2.14.0.dev20261105+cpu"
MEMBERS = {f"torch/lib/{number}.bin": bytes(1000) for number in range(2000)}


def large(folder: Path) -> Path:
    """Larger than what is fetched of it, with a directory larger than the tail."""
    return write_wheel(folder, VERSION, more=MEMBERS)


def test_the_commit_is_read_from_afar_in_three_requests(index: Index, web: Web, tmp_path: Path) -> None:
    data = large(tmp_path).read_bytes()
    url = index.file(f"/whl/{large(tmp_path).name}", data)
    assert read_contents(url, web) == Contents(VERSION, GIT, len(data))
    assert len(index.requests) == 3
    assert sum(index.sent_bytes.values()) < len(data) / 5


def test_a_small_wheel_takes_one_request(index: Index, web: Web, tmp_path: Path) -> None:
    path = write_wheel(tmp_path, VERSION)
    assert read_contents(index.file("/" + path.name, path.read_bytes()), web).git_version == GIT
    assert len(index.requests) == 1


def test_a_server_without_ranges_is_named(index: Index, web: Web, tmp_path: Path) -> None:
    path = write_wheel(tmp_path, VERSION)
    with pytest.raises(NoParts, match="gives files only as a whole"):
        read_contents(index.file("/" + path.name, path.read_bytes(), ranges=False), web)


def test_a_file_on_this_disk(tmp_path: Path, web: Web) -> None:
    path = write_wheel(tmp_path, VERSION)
    assert read_contents(path.as_uri(), web) == Contents(VERSION, GIT, path.stat().st_size)


@pytest.mark.parametrize("remote", [True, False])
@pytest.mark.parametrize("keep", [0, 1, 100, 0.5, 0.999])
def test_a_truncated_wheel_is_broken(
    index: Index, web: Web, tmp_path: Path, keep: float, remote: bool
) -> None:
    path = large(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: int(keep if keep >= 1 else keep * len(data))])
    url = index.file("/" + path.name, path.read_bytes()) if remote and keep else path.as_uri()
    with pytest.raises(BrokenWheel, match=r"is no whole wheel .* was its upload cut off\?"):
        read_contents(url, web)


def zipped(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (zipped({"other": b""}), "it has no torch/version.py"),
        (zipped({"torch/version.py": b"cuda = None"}), "without a version"),
        (zipped({"torch/version.py": b"def ("}), "is not Python"),
        (zipped({"torch/version.py": b"\xff\xfe"}), "is not Python"),
        (zipped({"torch/version.py": b"x = " + b"(" * 100_000}), "is not Python"),
        (zipped({"torch/version.py": bytes(2 << 20)}), "more than 1,048,576 bytes"),
        (b"<html>not found</html>", "is no whole wheel"),
    ],
)
def test_wheels_that_are_none(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / f"torch-{VERSION}-cp311-cp311-linux_x86_64.whl"
    path.write_bytes(data)
    with pytest.raises(BrokenWheel, match=said):
        read_file(path)


def test_a_directory_that_claims_gigabytes_is_not_fetched() -> None:
    # Of a file of 8 GiB, a ZIP64 record says that half is its directory.
    total, rest = 8 << 30, 2**32 - 1
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, rest, rest, 0)
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, 4 << 30, 0)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, total - len(record) - 20 - len(end), 1)
    tail = record + locator + end

    def fetch(start: int, length: int) -> Part:
        assert start < 0, "nothing but the tail may be asked for"
        return Part(total - len(tail), tail, total)

    remote = module.RemoteFile(fetch)
    with pytest.raises(BrokenWheel, match=r"its directory would be [\d,]+ bytes"):
        module._contents(remote, "torch.whl", total)


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    data = large(tmp_path).read_bytes()

    def fetch(start: int, length: int) -> Part:
        if start < 0:
            return Part(len(data) + start, data[start:], len(data))
        return Part(start, data[start : start + length], len(data) + 1)

    with pytest.raises(BrokenWheel, match="it changed while it was read"):
        module._contents(module.RemoteFile(fetch), "torch.whl", len(data))


def test_a_commit_that_is_none_is_not_believed(tmp_path: Path) -> None:
    assert read_file(write_wheel(tmp_path, VERSION, git="Unknown")).git_version is None


def test_inspecting_tells_size_hash_and_commit(tmp_path: Path) -> None:
    path = write_wheel(tmp_path, VERSION)
    wheel = replace(wheel_of(path), size_bytes=None)
    seen = inspect(path, wheel)
    assert (seen.size_bytes, seen.sha256, seen.git_version) == (path.stat().st_size, sha256_of(path), GIT)
    assert inspect(path, seen) == seen


def test_inspecting_finds_another_file(tmp_path: Path) -> None:
    path = write_wheel(tmp_path, VERSION)
    wheel = wheel_of(path)
    for known in (
        replace(wheel, sha256="0" * 64),
        replace(wheel, size_bytes=5),
        replace(wheel, git_version="b" * 40),
    ):
        with pytest.raises(ChangedFile, match="is not the file it was"):
            inspect(path, known)


def test_inspecting_finds_another_version_and_wrong_sums(tmp_path: Path) -> None:
    path = write_wheel(tmp_path, VERSION, says="2.13.0")
    with pytest.raises(BrokenWheel, match=r"is a wheel of torch 2\.13\.0"):
        inspect(path, wheel_of(path))
    path = large(tmp_path)
    data = bytearray(path.read_bytes())
    data[data.index(b"torch/lib/7.bin") + 500] ^= 1
    path.write_bytes(data)
    with pytest.raises(BrokenWheel, match=r"torch/lib/7\.bin"):
        inspect(path, wheel_of(path))
    with pytest.raises(NotAWheel):
        read_file(tmp_path / "numpy-1.0-py3-none-any.whl")
