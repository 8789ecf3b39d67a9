"""Adding lines to a file that several processes write at once."""

import os
from pathlib import Path


def append_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Add whole lines to a file, in one write, so that processes which share it do not tear each other's lines.

    A line that was cut short before does not take them along; nothing is written for no text.

    Args:
        durable: they are on the disk when this returns, all of them, or the file is as it was.

    Raises:
        OSError: the file cannot be written, or its folder is not there.
    """
    if not text:
        return
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        left = memoryview((b"\n" if torn else b"") + text.encode())
        try:
            while left:
                left = left[os.write(handle, left) :]
                if durable and left:
                    raise OSError(f"no room for {path}")
            if durable:
                os.fsync(handle)
        except OSError:
            if durable:
                os.ftruncate(handle, size)
            raise
    finally:
        os.close(handle)
