"""One run at a time per device: two would measure each other."""

import contextlib
import json
import os
import re
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

import filelock
import platformdirs

from accel_micro.asv_plugin.errors import DeviceBusy


class DeviceLocks:
    """The devices that this run holds. The system lets go of them when the process dies."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._held: dict[str, filelock.BaseFileLock] = {}

    def acquire(self, devices: Iterable[str]) -> None:
        """Hold these devices too.

        Raises:
            DeviceBusy: another run holds one.
        """
        for device in sorted(set(devices)):
            name = lock_name(device)
            if name in self._held:
                continue
            directory = self._directory or lock_directory()
            lock = filelock.FileLock(directory / f"{name}.lock")
            holder = directory / f"{name}.json"
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                raise DeviceBusy(
                    f"{device} is being measured by {_who(holder)}; wait for it or end it"
                ) from None
            self._held[name] = lock
            holder.write_text(
                json.dumps({"pid": os.getpid(), "command": " ".join(sys.argv)}), encoding="utf-8"
            )

    def release(self) -> None:
        """Let go of all of them."""
        for lock in self._held.values():
            lock.release()
        self._held.clear()


def lock_name(device: str) -> str:
    """What is locked for a device: `cuda` is the first GPU that this process may see."""
    if device != "cuda":
        return device
    for variable in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        first = os.environ.get(variable, "").split(",")[0].strip()
        if first:
            return "cuda-" + re.sub(r"[^\w-]", "_", first)
    return "cuda-0"


def lock_directory() -> Path:
    """A folder of this user and machine that is gone or at least forgotten after a restart."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs says so when it falls back to /tmp
        runtime = platformdirs.user_runtime_path("accel_micro")
    with contextlib.suppress(OSError):
        runtime.mkdir(parents=True, exist_ok=True)
        if os.access(runtime, os.W_OK):
            return runtime
    return platformdirs.user_cache_path("accel_micro", ensure_exists=True)


def _who(holder: Path) -> str:
    try:
        facts = json.loads(holder.read_text(encoding="utf-8"))
        return f"process {int(facts['pid'])} ({facts['command']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
