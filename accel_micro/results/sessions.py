"""What held for each session, read back from the lines that are written before it: host, torch, profile, command."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

FILE_NAME: Final = "sessions.jsonl"
"""One file a machine, beside its results; one line a session, build and environment."""


def read(results: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(machine, line) of all machines, in the order of their files. Lines that are none are skipped.

    A line has at least `session`, `started` (ISO 8601), `build` and `host`, the facts of the host by group.
    """
    for path in sorted(results.glob(f"*/{FILE_NAME}")):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for line in text.splitlines():
            with contextlib.suppress(ValueError):
                data = json.loads(line)
                if isinstance(data, dict) and isinstance(data.get("session"), str) and _is_whole(data):
                    yield path.parent.name, data


def _is_whole(data: dict[str, Any]) -> bool:
    return isinstance(data.get("host"), dict) and all(
        isinstance(data.get(key), str) for key in ("started", "build")
    )
