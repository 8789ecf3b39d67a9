"""Environments made ahead of their use, by a process that can be paused at any moment.

While something is measured nothing may be downloaded, unpacked or imported beside it. So whoever makes environments
ahead is a process group of its own: the system stops all of it at once, wherever it is, and lets it go on later. It
ends with the process that started it, paused or not.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from accel_micro.builds.environments import Environments
from accel_micro.builds.installing import NotInstalled
from accel_micro.builds.interpreters import Interpreter
from accel_micro.builds.wheels import Place, Wheel

COMMAND: Final = (sys.executable, "-m", "accel_micro.builds.ahead")

MOST_UNUSED: Final = 4
"""Environments that are made and that nobody has asked for yet: which builds a search takes is a guess."""

LEAST_FREE_BYTES: Final = 10_000_000_000
"""Room on the disk below which nothing is made that may not be needed."""

_TRIES: Final = 2  # a server may have given up a download that was paused
_STOP_SECONDS: Final = 0.1  # within which a group stops, unless one waits for a child or for the disk
_STOPPED: Final = (
    psutil.STATUS_STOPPED,
    psutil.STATUS_TRACING_STOP,
    psutil.STATUS_ZOMBIE,
    psutil.STATUS_DEAD,
)


@dataclass(frozen=True)
class Job:
    """An environment that may be wanted."""

    store: Environments
    wheel: Wheel
    interpreter: Interpreter

    @property
    def name(self) -> str:
        """Of the environment."""
        return self.store.name(self.wheel, self.interpreter)

    @property
    def is_open(self) -> bool:
        """Whether it is neither there nor known to be impossible."""
        known = self.store.find(self.wheel, self.interpreter) or self.store.why_broken(
            self.wheel, self.interpreter
        )
        return known is None and bool(self.wheel.urls)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "folder": str(self.store.folder),
            "beside": list(self.store.beside),
            "wheel": asdict(self.wheel),
            "interpreter": [str(self.interpreter.path), self.interpreter.python],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Job":
        """The inverse of `to_json`."""
        places = tuple(Place(**place) for place in data["wheel"]["places"])
        path, python = data["interpreter"]
        return cls(
            Environments(Path(data["folder"]), beside=data["beside"]),
            Wheel(**{**data["wheel"], "places": places}),
            Interpreter(Path(path), python),
        )


class Ahead:
    """Makes environments one after the other, in the background and only when it is allowed to.

    Args:
        say: told what is begun, a sentence at a time.
        command: reads a job from its input and makes it.

    Attributes:
        made: names of environments that were made, and not yet `taken`.
    """

    def __init__(self, say: Callable[[str], None] = lambda _: None, command: Sequence[str] = COMMAND) -> None:
        self._say, self._command = say, tuple(command)
        self._queue: list[Job] = []
        self._tries: Counter[str] = Counter()
        self._process: subprocess.Popen[str] | None = None
        self._name = ""
        self._paused = False
        self.made: set[str] = set()

    def want(self, jobs: Sequence[Job]) -> None:
        """Make these, the first one first, and go on; one that is being made is made to its end."""
        self._queue = list(jobs)
        self.go_on()

    def go_on(self) -> None:
        """Go on until `pause`; to be called now and then, since it begins the next one."""
        self._notice_end()
        if self._process is not None:
            if self._paused:
                self._signal(signal.SIGCONT)
                self._paused = False
            return
        while self._queue and len(self.made) < MOST_UNUSED:
            job = self._queue.pop(0)
            if self._tries[job.name] < _TRIES and job.name not in self.made and job.is_open:
                if _free_bytes(job.store.folder) >= LEAST_FREE_BYTES:
                    self._begin(job)
                return

    def pause(self) -> None:
        """When this returns, nothing of it runs."""
        self._notice_end()
        if self._process is None:
            return
        if not self._paused:
            self._signal(signal.SIGSTOP)
            self._paused = True
        while not self._stands_still():
            # Who was stopped between vfork and exec holds its parent in a wait that no stop ends: let both get past it.
            self._signal(signal.SIGCONT)
            time.sleep(_STOP_SECONDS)
            self._signal(signal.SIGSTOP)

    def _stands_still(self) -> bool:
        """Whether all of the group stopped, soon after it was told to."""
        assert self._process is not None
        end = time.monotonic() + _STOP_SECONDS
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(self._process.pid)
            for one in (process, *process.children(recursive=True)):
                # That one is gone, and the others may run yet.
                with contextlib.suppress(psutil.NoSuchProcess):
                    while one.status() not in _STOPPED:
                        if time.monotonic() > end:
                            return False
                        time.sleep(0.001)
        return True

    def finish(self, name: str) -> None:
        """Let the environment of that name be made to its end, if it is being made."""
        if self._process is not None and self._name == name:
            self.go_on()
        if self._process is not None and self._name == name:
            self._process.wait()
            self._end()

    def taken(self, name: str) -> bool:
        """Whether the environment of that name was made here; somebody uses it from now on."""
        was_made = name in self.made
        self.made.discard(name)
        return was_made

    def lost(self, names: Iterable[str]) -> bool:
        """Whether one of these, which were removed, had been made here for nothing; then no other is begun."""
        self._notice_end()
        gone = self.made.intersection(names)
        self.made -= gone
        if gone:
            self._queue.clear()
        return bool(gone)

    def close(self) -> None:
        """Give up what is being made; an environment is whole or not at all."""
        self._queue.clear()
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _begin(self, job: Job) -> None:
        self._say(f"making torch {job.wheel.version} ready ahead; it pauses while something is measured")
        self._tries[job.name] += 1
        self._name, self._paused = job.name, False
        # A group of the same session: when we are killed while it is paused, the kernel hangs it up.
        group: dict[str, Any] = (
            {"process_group": 0} if sys.version_info >= (3, 11) else {"preexec_fn": os.setpgrp}
        )
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            **group,
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            json.dump(job.to_json(), self._process.stdin)
            self._process.stdin.close()

    def _notice_end(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            self._end()

    def _end(self) -> None:
        assert self._process is not None
        if self._process.returncode == 0:
            self.made.add(self._name)
        self._process, self._paused = None, False

    def _signal(self, number: int) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _free_bytes(folder: Path) -> int:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(there).free


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main() -> int:
    """Make one environment; 1 when it cannot be made, which whoever needs it will be told."""
    threading.Thread(target=_leave_with, args=(os.getppid(),), daemon=True).start()
    job = Job.from_json(json.load(sys.stdin))
    try:
        job.store.acquire(job.wheel, job.interpreter).release()
    except NotInstalled:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
