"""One run at a time per device: two would measure each other.

What is locked is the card itself, whatever index the environment gives it. A run on the CPU has the host alone. A run
on an accelerator needs the host too, for a thread that enqueues: it shares the host with runs on other cards, which
leave it cores, and not with one on the CPU, which takes them all.
"""

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import platformdirs

from accel_micro.asv_plugin.errors import DeviceBusy, EnvironmentLacks
from accel_micro.builds.locks import FileLock
from accel_micro.device_names import index_of, kind_of
from accel_micro.devices import chosen
from accel_micro.host import cards

HOST = "cpu"
"""Name of the lock that runs on the CPU hold alone, and all others share."""


class DeviceLocks:
    """The devices that this run holds. The system lets go of them when the process dies."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._held: dict[str, FileLock] = {}
        self._names: dict[str, str] = {}
        self._alone = False

    def acquire(self, devices: Iterable[str]) -> None:
        """Hold these devices too, and the host.

        Raises:
            DeviceBusy: another run holds one.
        """
        names = {chosen.name_of(device) for device in devices}
        alone = HOST in names
        if names and (HOST not in self._held or (alone and not self._alone)):
            self._take_host(alone, ", ".join(sorted(names)))
        for device in sorted(names - {HOST}):
            if device not in self._names:
                self._names[device] = lock_name(device)  # asks the driver
            name = self._names[device]
            if name in self._held:
                continue
            lock = FileLock(self.directory / f"{name}.lock")
            if not lock.try_acquire(shared=False):
                raise DeviceBusy(
                    f"{device} is being measured by {_who(self.directory / f'{name}.json')}; wait for it or end it"
                )
            self._hold(name, lock, device)

    def release(self) -> None:
        """Let go of all of them."""
        for lock in self._held.values():
            lock.release()
        self._held.clear()
        self._names.clear()
        self._alone = False

    @property
    def directory(self) -> Path:
        """Where the locks lie."""
        if self._directory is None:
            self._directory = lock_directory()
        return self._directory

    def _take_host(self, alone: bool, wanted: str) -> None:
        lock = self._held.get(HOST) or FileLock(self.directory / f"{HOST}.lock")
        if not lock.try_acquire(shared=not alone):
            shared = lock.try_acquire(
                shared=True
            )  # by the others, too; and what cannot be changed may be lost
            if shared and HOST not in self._held:
                lock.release()
            other = next(self._others(), None) if shared else None
            if other is not None:
                raise DeviceBusy(
                    f"cpu is in use by {other[1]}, which measures {other[0]}; wait for it or end it"
                )
            reason = "" if alone else f", and a run on {wanted} needs the host too"
            raise DeviceBusy(
                f"cpu is being measured by {_who(self.directory / f'{HOST}.json')}{reason}; wait for it or end it"
            )
        self._alone = alone
        if alone:
            self._hold(HOST, lock, HOST)
        else:
            self._held[HOST] = lock

    def _hold(self, name: str, lock: FileLock, device: str) -> None:
        self._held[name] = lock
        facts = {"pid": os.getpid(), "command": " ".join(sys.argv), "device": device}
        (self.directory / f"{name}.json").write_text(json.dumps(facts), encoding="utf-8")

    def _others(self) -> Iterator[tuple[str, str]]:
        """(device, who) of the accelerators that other runs hold."""
        for path in sorted(self.directory.glob("*.json")):
            name = path.stem
            if name in self._held or name == HOST:
                continue
            lock = FileLock(path.with_suffix(".lock"))
            if lock.try_acquire(shared=True):
                lock.release()
                continue
            with contextlib.suppress(OSError, ValueError):
                facts = json.loads(path.read_text(encoding="utf-8"))
                yield str(facts.get("device", name)) if isinstance(facts, dict) else name, _who(path)


def lock_name(device: str) -> str:
    """What is locked for a device, such as `cuda` or `cuda:1`: the card that this process knows by that name.

    Raises:
        EnvironmentLacks: which card that is cannot be told.
    """
    name = chosen.name_of(device)
    kind, index = kind_of(name), index_of(name)
    if kind not in cards.WITH_CARDS:
        return kind
    try:
        card = cards.find(kind, index)
    except cards.UnknownOrder as reason:
        raise EnvironmentLacks(str(reason)) from None
    return card.lock if card is not None else f"{kind}-{index}"


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
