"""Nightlies made of the installed torch: wheels as large as real ones, of which one index on loopback serves many.

All of them begin with the same 700 MB, what nightlies have in common, uncompressed. That part is written once; of each
wheel only its end is kept, with its version, its own files and the archive's directory.
"""

import base64
import contextlib
import hashlib
import importlib.metadata
import io
import re
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

LARGEST_BYTES = 2_000_000_000
OWN = ("torch/version.py", "torch/nn/functional.py")
"""Files that a nightly has for itself."""

_LEFT_OUT = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_cache.json")


class CannotRepack(RuntimeError):
    """The installed torch is no wheel that could be made again; the message says why."""


class Repacked:
    """The installed torch, ready to be called by other versions.

    Args:
        common: file for what all have in common; 700 MB for a CPU build.

    Raises:
        CannotRepack: it was built in place, or it is a CUDA build of gigabytes.
    """

    def __init__(self, common: Path) -> None:
        distribution = importlib.metadata.distribution("torch")
        recorded = [file for file in distribution.files or () if file.parts[0] != ".."]
        names = {str(file): file for file in recorded if "__pycache__" not in file.parts}
        info = next((name.split("/")[0] for name in names if name.endswith(".dist-info/METADATA")), None)
        if info is None or any(name not in names for name in OWN):
            raise CannotRepack("the installed torch is not from a wheel")
        if sum(file.size or 0 for file in names.values()) > LARGEST_BYTES:
            raise CannotRepack("the installed torch is too large to be copied")
        self.version = distribution.version
        self.common = common
        self._info = info
        self._texts = {name: Path(str(distribution.locate_file(name))).read_text() for name in OWN}
        self._metadata = {
            name.split("/", 1)[1]: Path(str(distribution.locate_file(name))).read_bytes()
            for name in names
            if name.startswith(info) and name.split("/")[1] not in _LEFT_OUT
        }
        self._record = []
        with zipfile.ZipFile(common, "w", zipfile.ZIP_STORED) as archive:
            for name, file in names.items():
                if name in OWN or name.startswith(info):
                    continue
                archive.write(str(distribution.locate_file(name)), name)
                digest = f"{file.hash.mode}={file.hash.value}" if file.hash else ""
                self._record.append(f"{name},{digest},{file.size or ''}")
            self._entries = list(archive.filelist)
            assert archive.fp is not None
            self._common_bytes = archive.fp.tell()
        with common.open("r+b") as whole:
            whole.truncate(self._common_bytes)

    def wheel(self, version: str, git: str, change: Callable[[str], str] = lambda text: text) -> "Repack":
        """A wheel of that version; `change` makes another `torch/nn/functional.py` of the one that is there."""
        text = self._texts["torch/version.py"].replace(repr(self.version), repr(version))
        text = re.sub(r"git_version(.*?)= '[0-9a-f]{40}'", rf"git_version\1= '{git}'", text)
        assert version in text
        assert git in text
        info = f"torch-{version}.dist-info"
        members: dict[str, bytes] = {
            "torch/version.py": text.encode(),
            "torch/nn/functional.py": change(self._texts["torch/nn/functional.py"]).encode(),
        }
        for name, content in self._metadata.items():
            if name == "METADATA":
                content = content.replace(f"Version: {self.version}".encode(), f"Version: {version}".encode())
            members[f"{info}/{name}"] = content
        record = [
            *self._record,
            *(_recorded(name, content) for name, content in members.items()),
            f"{info}/RECORD,,",
        ]
        members[f"{info}/RECORD"] = "\n".join(record).encode() + b"\n"
        tag = re.search(rb"^Tag: (\S+)", self._metadata["WHEEL"], re.MULTILINE)
        assert tag is not None
        return Repack(
            f"torch-{version}-{tag[1].decode()}.whl", self.common, self._common_bytes, self._end(members)
        )

    def _end(self, members: Mapping[str, bytes]) -> bytes:
        """What follows the common part: these members, and the directory of all."""
        end = _Behind(self._common_bytes)
        archive = zipfile.ZipFile(end, "w", zipfile.ZIP_STORED)  # type: ignore[arg-type]
        archive.filelist.extend(self._entries)
        for name, content in members.items():
            archive.writestr(name, content)
        archive.close()
        return end.getvalue()


@dataclass(frozen=True)
class Repack:
    """A wheel: the common part, and its own end."""

    name: str
    common: Path
    common_bytes: int
    end: bytes

    @property
    def size_bytes(self) -> int:
        return self.common_bytes + len(self.end)

    def send(self, start: int, stop: int, to: Any) -> None:
        """Write a part of it."""
        if start < self.common_bytes:
            with self.common.open("rb") as file:
                file.seek(start)
                left = min(stop, self.common_bytes) - start
                while left > 0:
                    piece = file.read(min(left, 1 << 20))
                    to.write(piece)
                    left -= len(piece)
        to.write(self.end[max(0, start - self.common_bytes) : max(0, stop - self.common_bytes)])

    def save(self, folder: Path) -> Path:
        """Write all of it into a folder."""
        path = folder / self.name
        with path.open("wb") as file:
            with self.common.open("rb") as common:
                shutil.copyfileobj(common, file, 1 << 20)
            file.write(self.end)
        return path


@dataclass
class Served:
    """An index on loopback. `truncated` maps names of wheels to how much of each there is."""

    url: str
    wheels: dict[str, Repack] = field(default_factory=dict)
    truncated: dict[str, int] = field(default_factory=dict)

    def add(self, wheel: Repack, size_bytes: int | None = None) -> None:
        self.wheels[wheel.name] = wheel
        if size_bytes is not None:
            self.truncated[wheel.name] = size_bytes


@contextlib.contextmanager
def serving() -> Iterator[Served]:
    """An index that is up inside the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    served = Served(f"http://127.0.0.1:{server.server_port}/nightly/cpu/")
    server.served = served  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        served: Served = self.server.served  # type: ignore[attr-defined]
        path = unquote(self.path)
        if path == "/nightly/cpu/torch/":
            links = "".join(f'<a href="{quote(name)}">{name}</a><br>' for name in served.wheels)
            page = f"<!DOCTYPE html><html><body>{links}</body></html>".encode()
            self._start(200, len(page), {"Content-Type": "text/html"})
            if self.command == "GET":
                self.wfile.write(page)
            return
        wheel = served.wheels.get(path.rpartition("/")[2])
        if wheel is None:
            self._start(404, 0, {})
            return
        size = served.truncated.get(wheel.name, wheel.size_bytes)
        start, stop, status = 0, size, 200
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked:
            first, last = asked.groups()
            start = int(first) if first else max(0, size - int(last))
            stop = min(size, int(last) + 1) if first and last else size
            status = 206
        headers = {"Accept-Ranges": "bytes", "Content-Type": "application/octet-stream"}
        if status == 206:
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        self._start(status, stop - start, headers)
        if self.command == "GET":
            with contextlib.suppress(OSError):  # whoever asked has seen enough
                wheel.send(start, stop, self.wfile)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _start(self, status: int, size: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(size)}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Behind(io.BytesIO):
    """A file that stands behind so many bytes which are somewhere else."""

    def __init__(self, before: int) -> None:
        super().__init__()
        self._before = before

    def tell(self) -> int:
        return super().tell() + self._before

    def seek(self, position: int, whence: int = 0) -> int:
        return super().seek(position - self._before if whence == 0 else position, whence) + self._before


def _recorded(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"
