"""What became of each installation: a JSON line beside a machine's results, for its page and for people."""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from accel_micro.appending import append_text
from accel_micro.builds.installing import Facts
from accel_micro.builds.wheels import Wheel

FILE_NAME: Final = "installs.jsonl"
SCHEMA: Final = 1


def install_line(
    build_id: str, environment: str, wheel: Wheel | None, outcome: Facts | str
) -> dict[str, Any]:
    """Plain data of an installation, or of its failure when the outcome is a reason."""
    line: dict[str, Any] = {
        "schema": SCHEMA,
        "build": build_id,
        "environment": environment,
        "file_name": wheel.file_name if wheel else None,
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "failure": outcome if isinstance(outcome, str) else None,
    }
    if isinstance(outcome, Facts):
        line |= {
            key: value
            for key, value in asdict(outcome).items()
            if key not in ("build_id", "file_name", "made")
        }
    return line


def append(folder: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Add lines for a machine, `folder` being that of its results; not a failure that is known to be so still."""
    known = {_whose(line): line.get("failure") for line in _read_file(folder / FILE_NAME)}
    new = [line for line in lines if line["failure"] is None or known.get(_whose(line)) != line["failure"]]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in new)
    if not text:
        return
    folder.mkdir(parents=True, exist_ok=True)
    append_text(folder / FILE_NAME, text)


def read(results: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(machine, line) of all machines, in the order of their files. Lines that are none are skipped."""
    for path in sorted(results.glob(f"*/{FILE_NAME}")):
        for line in _read_file(path):
            yield path.parent.name, line


def _read_file(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            data = json.loads(line)
            if isinstance(data, dict) and data.get("schema") == SCHEMA and isinstance(data.get("build"), str):
                yield data


def _whose(line: Mapping[str, Any]) -> tuple[str, str]:
    return str(line["build"]), str(line.get("environment"))
