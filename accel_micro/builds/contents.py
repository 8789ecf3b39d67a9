"""What a wheel is from inside, `torch/version.py`, without downloading the rest of it.

A wheel is a ZIP archive: its directory is at its end. Of a file on a server three parts are fetched by HTTP
range requests, the tail, the directory and that one member; PyTorch's wheels are a thousand times as large.
"""

import hashlib
import io
import re
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote

from accel_micro.builds.identity import public_version
from accel_micro.builds.installed import read_constants
from accel_micro.builds.web import LARGEST_WHEEL_BYTES, Part, Web
from accel_micro.builds.wheels import ChangedFile, Wheel, changed, local_path, named

MEMBER: Final = "torch/version.py"

_TAIL_BYTES: Final = 64 << 10
_LEAST_BYTES: Final = 16 << 10
_LARGEST_READ_BYTES: Final = 64 << 20
_LARGEST_MEMBER_BYTES: Final = 1 << 20
_PIECE_BYTES: Final = 1 << 20
_UNREADABLE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
"""What `zipfile` raises for files that are damaged, encrypted or made to confuse it."""


class BrokenWheel(ValueError):
    """A file is no whole wheel of torch; the message says what it lacks."""


@dataclass(frozen=True)
class Contents:
    """What a wheel says of itself.

    Attributes:
        version: `torch.__version__`. git_version: `torch.version.git_version`, when it is a commit.
        size_bytes: of the file.
    """

    version: str
    git_version: str | None
    size_bytes: int


def read_contents(url: str, web: Web) -> Contents:
    """What the wheel at a URL, `file://` or `http(s)://`, says of itself.

    Raises:
        BrokenWheel: it is no whole wheel of torch.
        NoParts: its server gives files only as a whole.
        Absent, Unreachable: it cannot be had.
    """
    path = local_path(url)
    if path is not None:
        return read_file(path)
    remote = RemoteFile(lambda start, length: web.part(url, start, length))
    return _contents(remote, unquote(url.rpartition("/")[2]), remote.total_bytes)


def read_file(path: Path, file_name: str | None = None) -> Contents:
    """What a wheel on this disk says of itself.

    Args:
        file_name: its name, where `path` is not called so.

    Raises:
        NotAWheel: its name is none of a wheel of torch.
        BrokenWheel: it is no whole wheel of torch, or cannot be read.
    """
    name = file_name or path.name
    named(name)
    try:
        with path.open("rb") as file:
            return _contents(file, name, path.stat().st_size)
    except OSError as error:
        raise BrokenWheel(f"{path} cannot be read ({error})") from error


def inspect(path: Path, wheel: Wheel) -> Wheel:
    """The wheel with what the file at `path`, read whole, tells of it: size, sha256, commit.

    Raises:
        ChangedFile: it is not the file known by that name.
        BrokenWheel: it is no whole wheel of torch, or one of another version than its name says.
    """
    seen = replace(wheel, size_bytes=path.stat().st_size, sha256=sha256_of(path))
    difference = changed(wheel, seen)
    if difference:
        raise ChangedFile(f"{wheel.file_name} is not the file it was: {difference}")
    contents = read_file(path, wheel.file_name)
    version, _, _ = named(wheel.file_name)
    if public_version(contents.version) != public_version(version):
        raise BrokenWheel(f"{wheel.file_name} is a wheel of torch {contents.version}")
    if wheel.sha256 is None:
        _check_members(path, wheel.file_name)
    seen = replace(seen, git_version=contents.git_version)
    difference = changed(wheel, seen)
    if difference:
        raise ChangedFile(f"{wheel.file_name} is not the file it was: {difference}")
    return seen


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


class RemoteFile(io.RawIOBase):
    """A file on a server that is read where it is looked at, for `zipfile`.

    Args:
        fetch: gives a part by start and length; a negative start counts from the end.
    """

    def __init__(self, fetch: Callable[[int, int], Part]) -> None:
        self._fetch = fetch
        self._parts = [fetch(-_TAIL_BYTES, _TAIL_BYTES)]
        self.total_bytes = self._parts[0].total_bytes
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.total_bytes}[whence]
        if base + offset < 0:
            raise ValueError("before the start of the file")
        self._position = base + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        left = max(0, self.total_bytes - self._position)
        size = left if size < 0 else min(size, left)
        data = self._at(self._position, size)
        self._position += len(data)
        return data

    def _at(self, start: int, size: int) -> bytes:
        if size == 0:
            return b""
        if size > _LARGEST_READ_BYTES:
            raise BrokenWheel(f"its directory would be {size:,} bytes")
        for part in self._parts:
            if part.start <= start and start + size <= part.start + len(part.data):
                return part.data[start - part.start :][:size]
        # A little more than asked for: a member's header, name and data are read in small pieces.
        part = self._fetch(start, min(max(size, _LEAST_BYTES), self.total_bytes - start))
        if part.total_bytes != self.total_bytes or part.start != start or len(part.data) < size:
            raise BrokenWheel("it changed while it was read")
        self._parts.append(part)
        return part.data[:size]


def _contents(file: IO[bytes] | RemoteFile, name: str, size_bytes: int) -> Contents:
    if size_bytes > LARGEST_WHEEL_BYTES:
        raise BrokenWheel(f"{name} would be {size_bytes:,} bytes")
    try:
        with zipfile.ZipFile(file) as archive, archive.open(MEMBER) as member:
            text = member.read(_LARGEST_MEMBER_BYTES + 1)
    except BrokenWheel as error:
        raise BrokenWheel(f"{name} is no whole wheel: {error}") from None
    except KeyError:
        raise BrokenWheel(f"{name} is no wheel of torch: it has no {MEMBER}") from None
    except _UNREADABLE as error:
        raise BrokenWheel(f"{name} is no whole wheel ({error}); was its upload cut off?") from error
    if len(text) > _LARGEST_MEMBER_BYTES:
        raise BrokenWheel(f"{name} has a {MEMBER} of more than {_LARGEST_MEMBER_BYTES:,} bytes")
    try:
        constants = read_constants(text.decode())
    except (SyntaxError, ValueError, RecursionError) as error:
        raise BrokenWheel(f"{name} has a {MEMBER} that is not Python ({error})") from error
    version, commit = constants.get("__version__"), constants.get("git_version", "")
    if version is None:
        raise BrokenWheel(f"{name} has a {MEMBER} without a version")
    return Contents(version, commit if re.fullmatch(r"[0-9a-f]{40}", commit) else None, size_bytes)


def _check_members(path: Path, name: str) -> None:
    """Where no hash is known, the archive's own sums tell whether it is in one piece."""
    try:
        with zipfile.ZipFile(path) as archive:
            bad = archive.testzip()
    except _UNREADABLE as error:
        raise BrokenWheel(f"{name} is no whole wheel ({error}); was its upload cut off?") from error
    if bad is not None:
        raise BrokenWheel(f"{name} is no whole wheel ({bad} has a wrong sum); was its upload cut off?")
