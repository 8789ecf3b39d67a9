"""What folders take on disk, where hard links share it."""

import os
from collections.abc import Iterator
from pathlib import Path

_BLOCK_BYTES = 512  # the unit of st_blocks, whatever the file system's own


def inodes(folder: Path) -> Iterator[tuple[tuple[int, int], int, int]]:
    """(identity, bytes on disk, number of links) of each file and folder below `folder`, some several times.

    What vanishes meanwhile is left out.
    """
    pending = [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                found = list(entries)
        except OSError:
            continue
        for entry in found:
            try:
                status = entry.stat(follow_symlinks=False)
                is_folder = entry.is_dir(follow_symlinks=False)
            except OSError:
                continue
            links = 1 if is_folder else status.st_nlink
            yield (status.st_dev, status.st_ino), status.st_blocks * _BLOCK_BYTES, links
            if is_folder:
                pending.append(Path(entry.path))


def usage(folder: Path) -> tuple[int, int]:
    """Bytes on disk of a folder alone, and of files that are linked from elsewhere too."""
    own, shared = 0, {}
    for identity, size, links in inodes(folder):
        if links > 1:
            shared[identity] = size
        else:
            own += size
    return own, sum(shared.values())


def human_bytes(size: float) -> str:
    """A size for people: `812 MB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit in ("bytes", "kB") or size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
