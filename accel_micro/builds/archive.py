"""Keeping wheels before an index hides them: in a folder that is itself an index, for pip and uv too.

FOLDER/torch/torch-….whl    the wheels, each there as a whole or not at all
FOLDER/torch/index.html     PEP 503, with their hashes
FOLDER/index.html
"""

import html
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

from filelock import FileLock, Timeout

from accel_micro.builds.contents import BrokenWheel, inspect, sha256_of
from accel_micro.builds.ledger import Ledger
from accel_micro.builds.web import Unreachable, Web
from accel_micro.builds.wheels import PROJECT, ChangedFile, Place, Wheel, local_path

_PARTIAL: Final = ".partial"
_HASHED_LINK: Final = re.compile(r'href="[^"#]*#sha256=([0-9a-f]{64})"[^>]*>([^<]+)<')


class ArchiveBusy(RuntimeError):
    """Another process writes into the folder."""


@dataclass
class Archived:
    """What was kept, or in a dry run would be.

    Attributes:
        kept: (wheel, bytes still to download, None when nobody says).
        already: wheels that were there.
        failures: file name → why it could not be kept.
    """

    folder: Path
    kept: list[tuple[Wheel, int | None]] = field(default_factory=list)
    already: list[Wheel] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def total_bytes(self) -> int:
        """To download, as far as sizes are known."""
        return sum(size or 0 for _, size in self.kept)


def archive(
    ledger: Ledger,
    wheels: Iterable[Wheel],
    folder: Path,
    web: Web,
    *,
    dry_run: bool = False,
    start: Callable[[Wheel, int | None], None] = lambda wheel, size: None,
    advance: Callable[[int], None] = lambda done: None,
) -> Archived:
    """Download wheels that are not there yet, going on where an earlier attempt stopped.

    A wheel gets its name once it is whole: of the size and the sha256 known, with `torch/version.py` of the
    version it is named for. What is learned of it goes into the ledger.

    Args:
        start, advance: told the wheel that is next, and the bytes of it that are there.

    Raises:
        ArchiveBusy: another process archives into the folder.
        OSError: the folder cannot be written, or has no room.
    """
    done = Archived(folder)
    target = folder.absolute() / PROJECT
    for wheel in wheels:
        if (target / wheel.file_name).is_file():
            done.already.append(wheel)
            continue
        try:
            done.kept.append((wheel, _left(wheel, target, web)))
        except Unreachable as error:
            done.failures[wheel.file_name] = str(error)
    if dry_run:
        return done
    target.mkdir(parents=True, exist_ok=True)
    lock = FileLock(target / ".lock", timeout=0)
    try:
        with lock:
            _check_room(done, target)
            wanted, done.kept = done.kept, []
            for wheel, size in wanted:
                start(wheel, size)
                try:
                    _keep(ledger, wheel, target, web, advance)
                except (BrokenWheel, ChangedFile, Unreachable) as error:
                    done.failures[wheel.file_name] = str(error)
                else:
                    done.kept.append((wheel, size))
                    write_index(folder)
            write_index(folder)
    except Timeout:
        raise ArchiveBusy(f"another process archives into {folder}") from None
    return done


def write_index(folder: Path) -> None:
    """Write the pages of a folder of wheels in `FOLDER/torch`, as PEP 503 wants them.

    Raises:
        OSError: they cannot be written.
    """
    target = folder / PROJECT
    hashes = _hashes(target)
    links = []
    for path in sorted(target.glob("*.whl")):
        sha256 = hashes.get(path.name) or sha256_of(path)
        links.append(f'<a href="{quote(path.name)}#sha256={sha256}">{html.escape(path.name)}</a><br/>')
    _write(target / "index.html", f"Wheels of {PROJECT}", links)
    _write(folder / "index.html", "Wheels", [f'<a href="{PROJECT}/">{PROJECT}</a><br/>'])


def _left(wheel: Wheel, target: Path, web: Web) -> int | None:
    size = wheel.size_bytes
    url = next(iter(wheel.urls), None)
    if url is None:
        raise Unreachable(f"{wheel.file_name} was on another machine only")
    if size is None:
        path = local_path(url)
        size = web.size_bytes(url) if path is None else path.stat().st_size
    partial = target / (wheel.file_name + _PARTIAL)
    return None if size is None else max(0, size - (partial.stat().st_size if partial.exists() else 0))


def _check_room(done: Archived, target: Path) -> None:
    free = shutil.disk_usage(target).free
    if done.total_bytes > free:
        raise OSError(f"{target} has room for {free:,} bytes, and {done.total_bytes:,} are to come")


def _keep(ledger: Ledger, wheel: Wheel, target: Path, web: Web, advance: Callable[[int], None]) -> None:
    partial = target / (wheel.file_name + _PARTIAL)
    _download(wheel, partial, web, advance)
    try:
        whole = inspect(partial, wheel)
    except (BrokenWheel, ChangedFile):
        partial.unlink()
        raise
    path = target / wheel.file_name
    partial.replace(path)
    ledger.remember_all([replace(whole, places=(Place(path.as_uri(), target.parent.as_uri() + "/"),))])


def _download(wheel: Wheel, partial: Path, web: Web, advance: Callable[[int], None]) -> None:
    failures = []
    for url in wheel.urls:
        path = local_path(url)
        try:
            if path is None:
                web.download(url, partial, advance)
            else:
                shutil.copyfile(path, partial)
                advance(partial.stat().st_size)
            return
        except Unreachable as error:
            failures.append(str(error))
    raise Unreachable("; ".join(failures))


def _hashes(target: Path) -> dict[str, str]:
    """File name → sha256, as the page that is there says."""
    try:
        text = (target / "index.html").read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return {}
    return {html.unescape(name): sha256 for sha256, name in _HASHED_LINK.findall(text)}


def _write(path: Path, title: str, links: list[str]) -> None:
    lines = [
        "<!doctype html>",
        f"<html><head><title>{title}</title></head><body>",
        *links,
        "</body></html>",
        "",
    ]
    temporary = path.with_name(f".{path.name}{_PARTIAL}")
    temporary.write_text("\n".join(lines), encoding="utf-8")
    temporary.replace(path)
