"""What is measured once and remembered for this machine: the full speed of its cores, its peak rates.

A JSON file in the user's cache folder, guarded by a lock; losing it costs a few seconds of measuring again.
"""

import contextlib
import json
import os
import platform
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from accel_micro.host.cache import ENVIRONMENT_VARIABLE as ENVIRONMENT_VARIABLE
from accel_micro.host.cache import cache_folder as cache_folder


@lru_cache(maxsize=1)
def cpu_model() -> str:
    """A name of the processor that is cheap to read and stable: never empty."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or "unknown"


def load(name: str) -> dict[str, Any]:
    """The remembered facts of that name; empty when there are none or the file is damaged."""
    try:
        data = json.loads((cache_folder() / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def update(name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the remembered facts of that name under a lock; the file is replaced whole or not at all.

    A cache folder that cannot be written costs the memory, not the measurement.
    """
    from filelock import FileLock

    folder = cache_folder()
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(str(folder / f"{name}.lock"), timeout=10):
            data = load(name)
            change(data)
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(data, file)
            Path(temporary).replace(folder / f"{name}.json")
