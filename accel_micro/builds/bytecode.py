"""Bytecode of an environment's modules, taken over from a neighbour that has the very same source.

Python compiles a module when it is first imported, 3 s for torch alone, and most modules of one build are those of the
next, byte for byte. What Python compiled for the one is what it would compile for the other: the path of the source
inside it is set when it is loaded, and whether it belongs to the source is told by time and size in its first bytes.
Those are written anew.
"""

import contextlib
import os
from collections.abc import Iterator
from importlib.util import source_from_cache
from pathlib import Path
from typing import Final

_MAGIC_BYTES: Final = 4  # tells the version of Python
_HEADER_BYTES: Final = 16  # that, flags, time of the source, its size: PEP 552
_BY_TIME: Final = bytes(4)  # flags of bytecode that is held against time and size of its source
_FOLDER: Final = "__pycache__"


def take_over(folder: Path, neighbour: Path) -> int:
    """Have bytecode of `neighbour`'s modules in `folder` where both have the same source.

    Both are environments of one interpreter. What cannot be read or written is left to Python, which compiles it.

    Returns:
        How many modules have bytecode that had none.
    """
    taken = 0
    for theirs in _bytecode(neighbour):
        with contextlib.suppress(OSError, ValueError):
            source = Path(source_from_cache(str(theirs)))
            mine = folder / theirs.relative_to(neighbour)
            taken += _take(theirs, source, mine, folder / source.relative_to(neighbour))
    return taken


def _bytecode(environment: Path) -> Iterator[Path]:
    for library in environment.glob("lib/python*/site-packages"):
        for root, folders, files in os.walk(library):
            if Path(root).name == _FOLDER:
                folders.clear()
                yield from (Path(root, name) for name in files if name.endswith(".pyc"))


def _take(theirs: Path, their_source: Path, mine: Path, source: Path) -> bool:
    """Whether it was taken; not where the sources differ, or theirs is not what Python made of their source."""
    if mine.exists():
        return False
    text = source.read_bytes()
    there = their_source.stat()
    if there.st_size != len(text) or their_source.read_bytes() != text:
        return False
    code = theirs.read_bytes()
    if code[_MAGIC_BYTES:_HEADER_BYTES] != _belonging_to(there):
        return False
    mine.parent.mkdir(exist_ok=True)
    partial = mine.with_suffix(f".{os.getpid()}")
    partial.write_bytes(code[:_MAGIC_BYTES] + _belonging_to(source.stat()) + code[_HEADER_BYTES:])
    partial.replace(mine)
    return True


def _belonging_to(source: os.stat_result) -> bytes:
    """What follows the magic number in bytecode that Python takes for that of a source."""
    numbers = (int(source.st_mtime) & 0xFFFFFFFF, source.st_size & 0xFFFFFFFF)
    return _BY_TIME + b"".join(number.to_bytes(4, "little") for number in numbers)
