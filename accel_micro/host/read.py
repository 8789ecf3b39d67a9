"""Reading files, kernel variables and programs' output without ever raising: None when it cannot be read."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path("/")


def text(path: str, root: Path = ROOT) -> str | None:
    """The text of the file `path` (relative to `root`), stripped; None when it cannot be read or is empty."""
    try:
        return (root / path).read_text(errors="replace").strip() or None
    except (OSError, ValueError):
        return None


def integer(path: str, root: Path = ROOT) -> int | None:
    """The whole number that the file holds; None when there is none."""
    return to_integer(text(path, root))


def to_integer(value: object) -> int | None:
    """The whole number that a text holds; None when it holds something else, or more than 64 bits."""
    try:
        number = int(str(value).strip())
    except ValueError:
        return None
    return number if abs(number) < 1 << 64 else None


def to_float(value: object) -> float | None:
    """The number that a text holds; None when it holds something else, or one that no quantity reaches."""
    try:
        number = float(str(value).strip())
    except ValueError:
        return None
    return number if abs(number) < 1e100 else None


def output(command: Sequence[str], timeout_seconds: float = 10.0) -> str | None:
    """What a program prints; None when it is missing, fails or outlasts the timeout. No shell is used."""
    import subprocess

    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout_seconds,
            check=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace").strip() or None


def sysctl(name: str) -> bytes | None:
    """A kernel variable of macOS as raw bytes, without starting a process; None when there is none."""
    if os.uname().sysname != "Darwin":
        return None
    import ctypes

    libc, nothing = ctypes.CDLL(None), ctypes.c_size_t(0)
    size = ctypes.c_size_t(0)
    if libc.sysctlbyname(name.encode(), None, ctypes.byref(size), None, nothing) != 0:
        return None
    buffer = ctypes.create_string_buffer(size.value)
    if libc.sysctlbyname(name.encode(), buffer, ctypes.byref(size), None, nothing) != 0:
        return None
    return buffer.raw[: size.value]


def sysctl_integer(name: str) -> int | None:
    """A kernel variable of macOS that is a whole number."""
    raw = sysctl(name)
    return int.from_bytes(raw, sys.byteorder, signed=True) if raw and len(raw) in (4, 8) else None


def sysctl_text(name: str) -> str | None:
    """A kernel variable of macOS that is a text."""
    raw = sysctl(name)
    return raw.rstrip(b"\0").decode(errors="replace") or None if raw else None
