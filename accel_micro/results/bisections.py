"""Bisections, kept beside asv's results: one file of JSON lines each, which several workers may share.

results/bisections/
    20261128-104500-matmul.mm.jsonl     a question, then every event of its search, never changed, only added to
    20261128-104500-matmul.mm.lock      held by whoever reads to decide and writes
    20261128-104500-matmul.mm.HOST.PID  when that worker last gave a sign of life

Whatever is written is on the disk before the next thing is done: what crashes loses the blocks that were in flight.
"""

import contextlib
import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

import psutil
from filelock import FileLock

from accel_micro.appending import append_text

FOLDER: Final = "bisections"
SCHEMA: Final = 1
SUFFIX: Final = ".jsonl"

SECONDS_BETWEEN_SIGNS: Final = 30.0
SILENCE_SECONDS: Final = 600.0
"""After that long without a sign of life a worker of another machine is taken for dead."""


class NoBisection(LookupError):
    """There is no bisection of that name, or its file is none; the message says which there are."""


class Bisection:
    """The journal of one bisection, in the name of one worker.

    Args:
        now: the clock for signs of life, seconds since 1970.

    Attributes:
        name: of its file, without the ending.
    """

    def __init__(self, path: Path, *, now: Callable[[], float] = time.time) -> None:
        self.path, self._now = path, now
        self.name = path.name.removesuffix(SUFFIX)
        self.worker = f"{re.sub(r'[^A-Za-z0-9-]', '-', socket.gethostname())}.{os.getpid()}"
        self._lock = FileLock(path.with_name(f"{self.name}.lock"))

    @classmethod
    def begin(cls, results: Path, title: str, question: Mapping[str, Any]) -> "Bisection":
        """A new one, with its question written.

        Args:
            title: of what is measured; the file is named for it and the time.

        Raises:
            OSError: it cannot be written.
        """
        folder = results / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        what = re.sub(r"[^A-Za-z0-9_.-]+", "-", title)[:60].strip("-")
        stem = f"{datetime.now(timezone.utc):%Y%m%d-%H%M%S}-{what}"
        for count in range(1, 1000):
            path = folder / f"{stem}{'' if count == 1 else f'-{count}'}{SUFFIX}"
            with contextlib.suppress(FileExistsError):
                path.touch(exist_ok=False)
                begun = cls(path)
                begun._append([{"event": "question", "schema": SCHEMA, **question}])
                return begun
        raise FileExistsError(f"{folder} has a thousand bisections of one second")

    @property
    def question(self) -> dict[str, Any]:
        """What was asked.

        Raises:
            NoBisection: the file is none.
        """
        for event in self._lines():
            if event.get("event") == "question" and event.get("schema") == SCHEMA:
                return event
            break
        raise NoBisection(f"{self.path} is not a bisection of this version")

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else reads to decide, or writes."""
        with self._lock:
            yield

    def events(self) -> list[dict[str, Any]]:
        """Those of the search, without what was decided, which follows from them."""
        return [event for event in self._lines() if event.get("event") not in ("question", "decided", "note")]

    def all_events(self) -> list[dict[str, Any]]:
        """All but the question, in order."""
        return [event for event in self._lines() if event.get("event") != "question"]

    def notes(self) -> list[dict[str, Any]]:
        """What workers noted beside the search, see `note`."""
        return [event for event in self._lines() if event.get("event") == "note"]

    def write(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Add events, with the time and the worker.

        Raises:
            OSError: the disk is full, or gone; nothing of them is there then.
        """
        when = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self._append([{**event, "worker": self.worker, "when": when} for event in events])

    def note(self, **what: Any) -> None:
        """Add what is worth knowing of a build or a worker, and decides nothing."""
        with self.alone():
            self.write([{"event": "note", **what}])

    def lost(self) -> list[int]:
        """Blocks in flight whose worker is dead, or silent for too long."""
        flying: dict[int, str] = {}
        for event in self.events():
            if event["event"] == "search":
                flying.clear()
            elif event["event"] == "block":
                flying[event["number"]] = str(event.get("worker", ""))
            else:
                flying.pop(event["number"], None)
        return [number for number, worker in flying.items() if not self._lives(worker)]

    @property
    def workers(self) -> list[str]:
        """Those that live."""
        names = (path.name.removeprefix(f"{self.name}.") for path in self._signs())
        return [name for name in names if self._lives(name)]

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Give signs of life inside the block."""
        sign, over = self._sign(self.worker), threading.Event()
        sign.touch()

        def signs() -> None:
            while not over.wait(SECONDS_BETWEEN_SIGNS):
                with contextlib.suppress(OSError):
                    os.utime(sign)

        thread = threading.Thread(target=signs, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            sign.unlink(missing_ok=True)

    def _lives(self, worker: str) -> bool:
        if worker == self.worker:
            return False  # it is this process that asks, between two blocks
        host, _, number = worker.rpartition(".")
        sign = self._sign(worker)
        try:
            touched = sign.stat().st_mtime
        except OSError:
            return False
        if host == self.worker.rpartition(".")[0] and number.isdecimal():
            try:  # a number may be another process's by now, which began after the last sign
                return psutil.Process(int(number)).create_time() <= touched + 1
            except psutil.Error:
                return False
        return self._now() - touched < SILENCE_SECONDS

    def _sign(self, worker: str) -> Path:
        return self.path.with_name(f"{self.name}.{worker}")

    def _signs(self) -> list[Path]:
        return [
            path
            for path in sorted(self.path.parent.glob(f"{self.name}.*"))
            if path.suffix not in (SUFFIX, ".lock")
        ]

    def _append(self, events: Sequence[Mapping[str, Any]]) -> None:
        text = "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events)
        append_text(self.path, text, durable=True)

    def _lines(self) -> Iterator[dict[str, Any]]:
        """Those that are whole: a line that was cut short is of an event that was lost."""
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict):
                    yield event


def bisections(results: Path) -> list[Bisection]:
    """All of a folder of results, from old to new."""
    found = (Bisection(path) for path in (results / FOLDER).glob(f"*{SUFFIX}"))
    return sorted(found, key=lambda one: one.name)


def find(results: Path, name: str | None = None) -> Bisection:
    """The one of that name or beginning of a name, or the last one.

    Raises:
        NoBisection: there is none, or there are several.
    """
    known = bisections(results)
    found = [one for one in known if name is None or one.name.startswith(name)]
    exact = [one for one in known if one.name == name]
    if name is None and found:
        return found[-1]
    if exact or len(found) == 1:
        return (exact or found)[0]
    if not known:
        raise NoBisection("there are no bisections yet; `accel-micro bisect BENCHMARK` begins one")
    listed = ", ".join(one.name for one in known[-8:])
    which = "no bisection" if not found else "more than one bisection"
    raise NoBisection(f"there is {which}{'' if name is None else f' called {name!r}'}; there are: {listed}")
