"""Which builds have results, told by the names of asv's files: `RESULTS/MACHINE/HASH8-ENVIRONMENT.json`."""

import re
from pathlib import Path
from typing import Final

_RESULT: Final = re.compile(r"([0-9a-f]{8})-.+\.json")


def measured_on(results: Path) -> dict[str, set[str]]:
    """Start of a build's id, eight digits → machines that have results of it."""
    found: dict[str, set[str]] = {}
    for path in results.glob("*/*.json"):
        match = _RESULT.fullmatch(path.name)
        if match:
            found.setdefault(match[1], set()).add(path.parent.name)
    return found
