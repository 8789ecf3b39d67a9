"""One virtual environment for each build and interpreter, made when it is first asked for and kept.

env/builds/
    20261105ab12-cpu-cp311/   an environment; whole, since it is renamed into place
    .broken/…json             why one cannot be made
    .locks/…                  shared by those who use an environment, held alone to make or remove it
    .uv-cache/                from where uv links files, so that what builds share is on disk once
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from accel_micro.builds.disk import human_bytes
from accel_micro.builds.installing import (
    BESIDE,
    PARTIAL,
    Broken,
    DefectiveWheel,
    Facts,
    NotInstalled,
    install,
)
from accel_micro.builds.interpreters import Interpreter
from accel_micro.builds.locks import FileLock, used_at
from accel_micro.builds.uv import Uv
from accel_micro.builds.wheels import Wheel

FOLDER: Final = "builds"
"""Below asv's folder of environments."""

UV_CACHE: Final = ".uv-cache"
_LOCKS: Final = ".locks"
_BROKEN: Final = ".broken"
_ID_DIGITS: Final = 12
_TRIES: Final = 5


@dataclass(frozen=True)
class Environment:
    """An environment that is there. `name` is that of its folder; `made_now` tells that it was not there before."""

    name: str
    folder: Path
    facts: Facts
    made_now: bool = False

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"


class Lease:
    """The use of an environment: while it lasts, nobody removes it. A context manager."""

    def __init__(self, environment: Environment, lock: FileLock) -> None:
        self.environment = environment
        self._lock = lock

    def release(self) -> None:
        """Let others remove it; harmless a second time."""
        self._lock.release()

    def __enter__(self) -> Environment:
        return self.environment

    def __exit__(self, *_: object) -> None:
        self.release()


def installed_words(facts: Facts) -> str:
    """What making an environment took, a sentence."""
    return (
        f"Installed torch {facts.version} in {facts.uv_seconds + facts.check_seconds:.1f} s "
        f"({facts.uv_seconds:.1f} s of it by uv): {human_bytes(facts.own_bytes)} "
        f"besides {human_bytes(facts.shared_bytes)} linked from uv's cache"
    )


class Environments:
    """The environments in a folder, on this machine's own disk: others may use them at the same time.

    Args:
        folder: see the module; it need not exist.
        beside: what is installed with torch.
        say: told what takes long, a sentence at a time.
    """

    def __init__(
        self, folder: Path, *, beside: Sequence[str] = BESIDE, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self.folder = folder.absolute()
        self.beside = tuple(beside)
        self.uv = Uv(self.folder / UV_CACHE)
        self._say = say

    @classmethod
    def below(cls, env_dir: Path, **options: object) -> "Environments":
        """Those in asv's folder of environments, `env_dir` of its configuration."""
        return cls(env_dir / FOLDER, **options)  # type: ignore[arg-type]

    def acquire(self, wheel: Wheel, interpreter: Interpreter, *, retry: bool = False) -> Lease:
        """The environment with this wheel, made now unless it is there.

        Args:
            retry: try again what is known as broken, and what had to be installed without some dependency.

        Raises:
            Broken, DefectiveWheel: it cannot be made; remembered, so that asking again answers at once.
            NotInstalled: it could not be made now.
        """
        name = self.name(wheel, interpreter)
        lock = self._lock(name)
        made_now = False
        try:
            for _ in range(_TRIES):
                lock.acquire(
                    shared=True, waiting=lambda: self._say(f"Waiting for another run to finish {name}")
                )
                facts = self._whole(name, wheel, interpreter)
                if facts is not None and not (retry and facts.without and not made_now):
                    lock.touch()
                    return Lease(Environment(name, self.folder / name, facts, made_now), lock)
                if not retry:
                    self._raise_if_broken(name, wheel)
                lock.acquire(
                    shared=False, waiting=lambda: self._say(f"Waiting for other runs to leave {name}")
                )
                made_now = self._make(name, wheel, interpreter, lock, retry) or made_now
            raise NotInstalled(f"{self.folder / name} is removed as often as it is made")
        except OSError as error:
            lock.release()
            raise NotInstalled(f"{self.folder} cannot be used: {error}") from None
        except BaseException:
            lock.release()
            raise

    def find(self, wheel: Wheel, interpreter: Interpreter) -> Environment | None:
        """The environment with this wheel if it is there. Without a lease, it may be gone the next moment."""
        name = self.name(wheel, interpreter)
        facts = self._whole(name, wheel, interpreter)
        return None if facts is None else Environment(name, self.folder / name, facts)

    def why_broken(self, wheel: Wheel, interpreter: Interpreter) -> str | None:
        """Why this wheel cannot be installed, as remembered, or None."""
        try:
            self._raise_if_broken(self.name(wheel, interpreter), wheel)
        except Broken as error:
            return str(error)
        return None

    def forget_broken(self, wheel: Wheel, interpreter: Interpreter) -> bool:
        """Let the next `acquire` try again; says whether it was known as broken."""
        path = self._broken_path(self.name(wheel, interpreter))
        known = path.exists()
        path.unlink(missing_ok=True)
        return known

    def name(self, wheel: Wheel, interpreter: Interpreter) -> str:
        """Of the environment's folder: start of the build's id, variant and interpreter."""
        variant = re.sub(r"[^A-Za-z0-9.]", "_", wheel.variant)
        parts = [wheel.build_id[:_ID_DIGITS], variant, interpreter.tag]
        extra = [requirement for requirement in self.beside if requirement not in BESIDE]
        if extra:
            parts.append(hashlib.sha256("\n".join(extra).encode()).hexdigest()[:8])
        return "-".join(parts)

    def __iter__(self) -> Iterator[Environment]:
        """Those that are there, by name."""
        with contextlib.suppress(OSError):
            for folder in sorted(self.folder.iterdir()):
                facts = None if folder.name.startswith(".") else Facts.read(folder)
                if facts is not None:
                    yield Environment(folder.name, folder, facts)

    def used_at(self, name: str) -> float:
        """When an environment was last asked for, seconds since 1970."""
        return used_at(self._lock(name).path)

    @contextlib.contextmanager
    def held_alone(self, name: str) -> Iterator[bool]:
        """Whether nobody uses the environment of that name, and while inside nobody starts to."""
        lock = self._lock(name)
        try:
            yield lock.try_acquire(shared=False)
        finally:
            lock.release()

    def leftovers(self) -> list[tuple[str, Path]]:
        """(name of the environment, folder) of what killed runs left half made."""
        pattern = re.compile(re.escape(PARTIAL) + r"(.+)\.[^.]+")
        with contextlib.suppress(OSError):
            found = [(pattern.fullmatch(path.name), path) for path in sorted(self.folder.iterdir())]
            return [(match[1], path) for match, path in found if match]
        return []

    def _make(self, name: str, wheel: Wheel, interpreter: Interpreter, lock: FileLock, retry: bool) -> bool:
        """Make it, alone, unless another run did meanwhile; says whether it was made."""
        facts = self._whole(name, wheel, interpreter)
        if facts is not None and not (retry and facts.without):
            return False
        if not retry:
            self._raise_if_broken(name, wheel)
        for leftover in [path for of, path in self.leftovers() if of == name]:
            shutil.rmtree(leftover, ignore_errors=True)
        self.remove(name)
        size = f" ({human_bytes(wheel.size_bytes)})" if wheel.size_bytes else ""
        self._say(f"Installing torch {wheel.version}{size} for Python {interpreter.python}")
        try:
            facts = install(
                wheel,
                interpreter,
                self.folder / name,
                uv=self.uv,
                beside=self.beside,
                lock=lock,
                neighbour=self._neighbour(interpreter),
                say=self._say,
            )
        except Broken as error:
            self._remember_broken(name, wheel, error)
            raise
        self._broken_path(name).unlink(missing_ok=True)
        self._say(installed_words(facts))
        return True

    def remove(self, name: str) -> None:
        """Remove an environment that is `held_alone`: out of sight at once, since removing takes its time."""
        folder = self.folder / name
        if folder.exists():
            doomed = self.folder / f"{PARTIAL}{name}.removed"
            shutil.rmtree(doomed, ignore_errors=True)
            folder.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)

    def _neighbour(self, interpreter: Interpreter) -> Path | None:
        """The environment of this interpreter that was made last: of those that are there, the likest as a rule."""
        path = str(interpreter.path.resolve())
        made = [
            one for one in self if one.facts.interpreter == path and one.facts.python == interpreter.python
        ]
        return max(made, key=lambda one: one.facts.made).folder if made else None

    def _whole(self, name: str, wheel: Wheel, interpreter: Interpreter) -> Facts | None:
        """Facts of an environment that is as it would be made now, or None."""
        folder = self.folder / name
        facts = Facts.read(folder)
        if facts is None or not os.access(folder / "bin" / "python", os.X_OK):
            return None
        same_file = facts.file_name == wheel.file_name and (
            None in (facts.sha256, wheel.sha256) or facts.sha256 == wheel.sha256
        )
        same_commit = None in (facts.git_version, wheel.git_version) or facts.git_version == wheel.git_version
        same_rest = set(self.beside) <= set(facts.beside) and facts.interpreter == str(
            interpreter.path.resolve()
        )
        return facts if same_file and same_commit and same_rest else None

    def _lock(self, name: str) -> FileLock:
        return FileLock(self.folder / _LOCKS / name)

    def _broken_path(self, name: str) -> Path:
        return self.folder / _BROKEN / f"{name}.json"

    def _raise_if_broken(self, name: str, wheel: Wheel) -> None:
        try:
            known = json.loads(self._broken_path(name).read_text(encoding="utf-8"))
            if known["file"] != _fingerprint(wheel):
                return  # another file, or another place to get it
            kind = DefectiveWheel if known["defect"] else Broken
            reason = str(known["reason"])
        except (OSError, ValueError, KeyError, TypeError):
            return
        raise kind(reason)

    def _remember_broken(self, name: str, wheel: Wheel, error: Broken) -> None:
        path = self._broken_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        known = {
            "file": _fingerprint(wheel),
            "reason": str(error),
            "defect": error.defect,
            "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(known, indent=1), encoding="utf-8")
        partial.replace(path)


def _fingerprint(wheel: Wheel) -> list[str]:
    return [wheel.file_name, wheel.sha256 or "", *sorted(wheel.urls)]
