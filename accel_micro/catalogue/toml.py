"""TOML, on every Python that this runs on."""

import json
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read(path: Path) -> dict[str, Any]:
    """A file's tables.

    Raises:
        OSError: it cannot be read. ValueError: it is no TOML; the message names the file.
    """
    try:
        return dict(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def quoted(text: str) -> str:
    """A string or key, in quotes. What JSON writes, TOML reads."""
    return json.dumps(text, ensure_ascii=False)
