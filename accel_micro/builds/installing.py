"""One wheel of torch into one virtual environment, whole or not at all.

torch is asked for by the URL of its wheel, so no resolver can choose another; what it depends on is resolved
together with what benchmark processes import; and it is imported once, which proves that it works here and says
what it is.
"""

import json
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from packaging.version import InvalidVersion, Version

from accel_micro.builds.bytecode import take_over
from accel_micro.builds.disk import usage
from accel_micro.builds.interpreters import Interpreter
from accel_micro.builds.locks import FileLock
from accel_micro.builds.uv import DefectiveFile, DiskFull, Unreachable, Unresolvable, Uv, UvError
from accel_micro.builds.wheels import PROJECT, Wheel, local_path
from accel_micro.shell import signal_name

BESIDE: Final = (
    "asv_runner>=0.3,<0.4",
    "filelock",
    "numpy",
    "packaging",
    "platformdirs",
    "psutil",
    "pympler",
    "threadpoolctl",
)
"""What benchmark processes import besides torch. accel_micro itself comes to them by `PYTHONPATH`, so that all
builds are measured by the very same code."""

MODULES: Final = ("asv_runner", "filelock", "numpy", "packaging", "platformdirs", "psutil", "threadpoolctl")
"""Those of `BESIDE` that nothing works without; all are called as their projects are."""

FACTS: Final = "accel-micro.json"
"""File in an environment that says what it is. Written last: where it lies, the environment is whole."""

PARTIAL: Final = ".partial-"
"""Starts the name of an environment in the making; what is left under it, a killed run left there."""

SCHEMA: Final = 1
IMPORT_PATIENCE_SECONDS: Final = 600

_MOST_DROPPED: Final = 40  # a CUDA wheel pins about 20 packages
_NUMPY_2_SINCE: Final = Version("2.3")
# Whoever measures imports torch._dynamo too, see asv_plugin.timing: compiled once here where it is not yet, it need not
# be in each server. Python in isolated mode keeps bytecode whatever PYTHONDONTWRITEBYTECODE says, of this folder alone.
_ASK: Final = (
    "import contextlib, importlib.util, json, os, torch, torch.version\n"
    "with contextlib.suppress(Exception):\n"
    "    cached = importlib.util.find_spec('torch._dynamo').cached\n"
    "    cached and not os.path.exists(cached) and __import__('torch._dynamo')\n"
    "print('\\n' + json.dumps([torch.__version__, getattr(torch.version, 'git_version', None)]))"
)


class NotInstalled(RuntimeError):
    """A wheel could not be installed; the message is the reason.

    Attributes:
        lasting: trying again would fail again.
        defect: the file itself is the reason, so it fails on every machine.
    """

    lasting = False
    defect = False


class Broken(NotInstalled):
    """It does not install or does not work here."""

    lasting = True


class DefectiveWheel(Broken):
    """It is no sound wheel, or not the one that is known by its name."""

    defect = True


@dataclass(frozen=True)
class Facts:
    """What an environment is and what it took.

    Attributes:
        build_id, file_name, url, sha256: of the wheel that was installed; `sha256` is None when it was not checked.
        version, git_version: as torch says.
        python, interpreter: version and path of the Python it was made of.
        beside: requirements that were installed with it.
        without: dependencies of torch that were to be had nowhere and are left out.
        made: when, ISO 8601 in UTC.
        uv_seconds, check_seconds: downloading, unpacking and linking; taking over bytecode and importing torch for the
            first time.
        own_bytes: on disk for this environment alone. shared_bytes: linked to uv's cache and other environments.
    """

    build_id: str
    file_name: str
    url: str
    version: str
    python: str
    interpreter: str
    beside: tuple[str, ...]
    without: tuple[str, ...]
    made: str
    uv_seconds: float
    check_seconds: float
    own_bytes: int
    shared_bytes: int
    sha256: str | None = None
    git_version: str | None = None

    @classmethod
    def read(cls, folder: Path) -> "Facts | None":
        """Those of an environment, or None when it is not whole."""
        try:
            data = json.loads((folder / FACTS).read_text(encoding="utf-8"))
            if data.pop("schema") != SCHEMA:
                return None
            return cls(**{**data, "beside": tuple(data["beside"]), "without": tuple(data["without"])})
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None


def install(
    wheel: Wheel,
    interpreter: Interpreter,
    folder: Path,
    *,
    uv: Uv,
    beside: Sequence[str] = BESIDE,
    lock: FileLock | None = None,
    neighbour: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Facts:
    """Make `folder` an environment with this wheel; nothing is left there when that fails.

    Args:
        wheel: whatever its places; they are tried in the order of its `urls`.
        folder: must not exist; it is made under another name first and renamed when it is whole.
        lock: held by uv too, so that it outlives a killed run until uv has ended.
        neighbour: an environment of the same interpreter, whose bytecode is used where the sources are the same.
        say: told what is done, a sentence at a time.

    Raises:
        NotInstalled: see there. Broken, DefectiveWheel: for good.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f"{PARTIAL}{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise NotInstalled(f"{folder.parent} cannot be written: {error}") from None
    try:
        job = _Installation(wheel, interpreter, partial, uv, (*beside, *_older_numpy(wheel)), lock, say)
        facts = job.run(neighbour)
        (partial / FACTS).write_text(
            json.dumps({"schema": SCHEMA, **asdict(facts)}, indent=1), encoding="utf-8"
        )
        partial.rename(folder)
    except DiskFull as error:
        raise NotInstalled(
            f"the disk is full: {error}; `accel-micro builds prune` removes environments"
        ) from None
    except UvError as error:
        raise NotInstalled(str(error)) from None
    except OSError as error:
        raise NotInstalled(f"{folder.parent} cannot be written: {error}") from None
    finally:
        if partial.exists():
            shutil.rmtree(partial, ignore_errors=True)
    return facts


class _Installation:
    """The steps, each of which may fail."""

    def __init__(
        self,
        wheel: Wheel,
        interpreter: Interpreter,
        folder: Path,
        uv: Uv,
        beside: tuple[str, ...],
        lock: FileLock | None,
        say: Callable[[str], None],
    ) -> None:
        self.wheel, self.interpreter, self.folder, self.uv = wheel, interpreter, folder, uv
        self.beside, self.say = beside, say
        self.python = folder / "bin" / "python"
        self.without: list[str] = []
        self.holding = () if lock is None else (lock.fileno(),)

    def run(self, neighbour: Path | None) -> Facts:
        began = time.perf_counter()
        url = self._from_any_place()
        linked = time.perf_counter()
        if neighbour is not None:
            take_over(self.folder, neighbour)
        version, git_version = self._import_torch()
        checked = time.perf_counter()
        own, shared = usage(self.folder)
        return Facts(
            build_id=self.wheel.build_id,
            file_name=self.wheel.file_name,
            url=url,
            sha256=self.wheel.sha256,
            version=version,
            git_version=git_version,
            python=self.interpreter.python,
            interpreter=str(self.interpreter.path.resolve()),
            beside=self.beside,
            without=tuple(self.without),
            made=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            uv_seconds=round(linked - began, 3),
            check_seconds=round(checked - linked, 3),
            own_bytes=own,
            shared_bytes=shared,
        )

    def _from_any_place(self) -> str:
        urls = self.wheel.urls
        if not urls:
            raise NotInstalled(nowhere(self.wheel))
        self._uv("venv", "--relocatable", "--no-project", "--allow-existing",
                 "--python", self.interpreter.path, self.folder)  # fmt: skip
        failure: NotInstalled | None = None
        for url in urls:
            try:
                self._from_place(url)
                return url
            except NotInstalled as error:
                # A place that may answer another time leaves the question open.
                failure = error if failure is None or failure.lasting else failure
        assert failure is not None
        raise failure

    def _from_place(self, url: str) -> None:
        while True:
            try:
                self._pip(url)
                return
            except Unresolvable as error:
                dropped = [name for name in error.pins_of_torch() if name not in self.without]
                if not dropped or len(self.without) + len(dropped) > _MOST_DROPPED:
                    raise Broken(str(error)) from None
                self.say(
                    f"{self.wheel.version} pins {', '.join(dropped)} to what is nowhere to be had: left out"
                )
                self.without += dropped
            except Unreachable as error:
                try:
                    self._pip(url, "--offline")  # all of it may be in the cache, or in a folder here
                    return
                except DiskFull:
                    raise
                except UvError:
                    raise NotInstalled(str(error)) from None
            except DefectiveFile as error:
                raise (
                    DefectiveWheel(str(error)) if error.is_of(PROJECT) else NotInstalled(str(error))
                ) from None

    def _pip(self, url: str, *options: str) -> None:
        excludes = self.folder / "accel-micro-excludes.txt"
        excludes.write_text("\n".join(self.without), encoding="utf-8")
        if re.search(r"\s", url):
            raise DefectiveWheel(f"its address {url!r} is none")
        fragment = f"#sha256={self.wheel.sha256}" if self.wheel.sha256 else ""
        self._uv(
            "pip", "install", "--python", self.python, "--only-binary", ":all:", "--excludes", excludes,
            *self._sources(url), *options, f"torch @ {url}{fragment}", *self.beside,
        )  # fmt: skip
        excludes.unlink()

    def _sources(self, url: str) -> list[str]:
        """Where dependencies may be had besides uv's own indexes: triton of a nightly lies beside it only."""
        index = next((place.index for place in self.wheel.places if place.url == url), "")
        folder = local_path(index)
        if (folder is not None and not folder.exists()) or not urlsplit(index).scheme:
            return []
        root, slash, page = index.rstrip("/").rpartition("/")
        if slash and page == "torch":
            # As pip does: the best version of all indexes, since such an index has old ones of common packages.
            return ["--index", root + "/", "--index-strategy", "unsafe-best-match"]
        return ["--find-links", index]

    def _import_torch(self) -> tuple[str, str | None]:
        try:
            done = subprocess.run(
                [self.python, "-I", "-c", _ASK],
                cwd=self.folder,
                env=self.uv.variables(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=IMPORT_PATIENCE_SECONDS,
                pass_fds=self.holding,
            )
        except subprocess.TimeoutExpired:
            raise Broken(f"torch was not imported within {IMPORT_PATIENCE_SECONDS} s") from None
        if "No space left on device" in done.stderr:
            raise DiskFull(done.stderr)
        if done.returncode == -signal.SIGKILL:
            raise NotInstalled("importing torch was ended by SIGKILL: out of memory, or somebody ended it")
        if done.returncode:
            raise Broken(f"torch cannot be imported: {_last_words(done.returncode, done.stderr)}")
        try:
            answer: list[Any] = json.loads(done.stdout.strip().splitlines()[-1])
            version, git_version = str(answer[0]), None if answer[1] is None else str(answer[1])
        except (ValueError, IndexError, TypeError):
            raise Broken("torch was imported and said no version") from None
        self._assert_identity(version, git_version)
        return version, git_version

    def _assert_identity(self, version: str, git_version: str | None) -> None:
        if not same_version(self.wheel.version, version):
            raise DefectiveWheel(f"its name says {self.wheel.version}, torch.__version__ says {version}")
        known = self.wheel.git_version
        if known is not None and git_version is not None and known != git_version:
            raise DefectiveWheel(
                f"it was made from PyTorch {git_version}; the file known by this name is of {known}"
            )

    def _uv(self, *arguments: str | Path) -> None:
        # Where the user is: relative paths in their settings start there.
        self.uv.run(*arguments, cwd=Path.cwd(), holding=self.holding)


def nowhere(wheel: Wheel) -> str:
    """What to say of a wheel without `urls`."""
    if not wheel.places:
        return f"nobody knows where {wheel.file_name} is to be had"
    return f"{wheel.file_name} is no longer at {wheel.places[0].url.rpartition('/')[0]}"


def same_version(name: str, said: str) -> bool:
    """Whether a wheel named after one version may call itself by another: only a variant may be added."""
    try:
        named, reported = Version(name), Version(said)
    except InvalidVersion:
        return name == said
    if named.public != reported.public:
        return False
    locals_ = [version.local.split(".")[0] for version in (named, reported) if version.local]
    return len(set(locals_)) <= 1


def _last_words(code: int, errors: str) -> str:
    if code < 0:
        return f"it died of {signal_name(code)}"
    return (errors.strip().splitlines() or [f"exit code {code}"])[-1]


def _older_numpy(wheel: Wheel) -> tuple[str, ...]:
    # torch before 2.3 was built against numpy 1 and cannot talk to numpy 2.
    try:
        return ("numpy<2",) if Version(wheel.version) < _NUMPY_2_SINCE else ()
    except InvalidVersion:
        return ()
