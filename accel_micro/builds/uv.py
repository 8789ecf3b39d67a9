"""uv, the installer: how it is called, and what its failures mean."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

CACHE_VARIABLE: Final = "UV_CACHE_DIR"

# What would make uv, or a Python that it starts, look at another environment than the one it is told to.
_DROPPED: Final = (
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "PYTHONHOME",
    "UV_PROJECT",
    "UV_SYSTEM_PYTHON",
)

_FULL: Final = re.compile(r"No space left on device|Disk quota exceeded|os error (28|122)\b")
_UNREACHABLE: Final = re.compile(
    r"error sending request|error decoding response body|timed out|Failed to fetch|HTTP status|network",
    re.IGNORECASE,
)
_DEFECT: Final = re.compile(
    r"from zip file|extract archive|zip file structure|Bad CRC|Hash mismatch|dist-info|malformed wheel"
    r"|does not match given name"
)
_UNRESOLVABLE: Final = re.compile(r"No solution found when resolving")
# "torch==2.15.0 depends on triton{sys_platform == 'linux'}==3.9.0+git1234abcd": one version and no other will do.
_PIN: Final = re.compile(
    r"\btorch==\S+ depends on ([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?(?:\{[^}]*\})?===?"
)


class UvError(RuntimeError):
    """uv failed. `output` is all it said; the message is its reason on one line."""

    def __init__(self, output: str) -> None:
        super().__init__(summary(output))
        self.output = output


class Unreachable(UvError):
    """An index or a file could not be fetched; another time it may."""


class DiskFull(UvError):
    """The disk is full."""


class DefectiveFile(UvError):
    """A file is no sound wheel, or not the one that was asked for."""

    def is_of(self, project: str) -> bool:
        """Whether it is the file of that project, rather than of a dependency."""
        return re.search(rf"error: Failed to \w+:? `?{project}\b", self.output) is not None


class Unresolvable(UvError):
    """The dependencies contradict each other, or one is nowhere to be had."""

    def pins_of_torch(self) -> list[str]:
        """Dependencies that torch pins to one version, among those that uv names as the trouble."""
        return sorted({match[1].lower() for match in _PIN.finditer(self.output)})


class NoUv(UvError):
    """There is no uv."""


class Uv:
    """The uv of this environment.

    Args:
        cache: folder of its cache, unless the user chose one with `UV_CACHE_DIR`. It links files from there into
            environments, which works within one file system only: keep the cache beside them.
    """

    def __init__(self, cache: Path | None = None) -> None:
        chosen = os.environ.get(CACHE_VARIABLE)
        self.cache = Path(chosen).absolute() if chosen else cache
        self.own_cache = cache is not None and not chosen

    def run(self, *arguments: str | Path, cwd: Path, holding: Iterable[int] = ()) -> str:
        """What uv printed on standard output.

        Args:
            holding: open files that uv inherits, such as a lock that is held while it works.

        Raises:
            NoUv, Unreachable, DiskFull, Unresolvable, DefectiveFile, UvError: it failed.
        """
        try:
            done = subprocess.run(
                [executable(), *arguments],
                cwd=cwd,
                env=self.variables(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                pass_fds=tuple(holding),
            )
        except OSError as error:
            raise NoUv(f"error: {error}") from None
        if done.returncode:
            raise _error(done.stderr + done.stdout or f"error: uv ended with code {done.returncode}")
        return done.stdout

    def variables(self) -> Mapping[str, str]:
        """Environment variables for uv: the user's, so that indexes, mirrors and proxies are theirs."""
        found = {name: value for name, value in os.environ.items() if name not in _DROPPED}
        if self.cache is not None:
            found[CACHE_VARIABLE] = str(self.cache)
        # Hard links everywhere: then it can be told what an environment takes besides what it shares.
        found.setdefault("UV_LINK_MODE", "hardlink")
        found.update(UV_NO_PROGRESS="1", NO_COLOR="1")
        return found


@lru_cache(maxsize=1)
def executable() -> str:
    """Path of uv.

    Raises:
        NoUv: it is not installed.
    """
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
        if found is None:
            raise NoUv("error: uv is not installed; python -m pip install uv") from None
        return found


def summary(output: str) -> str:
    """The reason in what uv printed, on one line: what failed, and its two innermost causes."""
    told: list[str] = []
    for line in output.splitlines():
        kind, _, text = line.strip().partition(": ")
        if kind in ("error", "cause"):
            told.append(text.strip())
        elif kind == "hint":
            break
        elif told and line.startswith(" ") and line.strip():
            told[-1] += f" {line.strip()}"
    if not told:
        return output.strip().splitlines()[-1] if output.strip() else "uv said nothing"
    inner = [cause for cause in told[1:] if not cause.startswith("an upstream reader")][-2:]
    # A wheel's address is long, and who reads this knows the file.
    return re.sub(r"`?torch @ \S*/([^/\s`#]+)(#\S*?)?`?(?=[\s:]|$)", r"\1", ": ".join([told[0], *inner]))


def _error(output: str) -> UvError:
    if _FULL.search(output):
        return DiskFull(output)
    if _UNRESOLVABLE.search(output):
        return Unresolvable(output)
    if _UNREACHABLE.search(output):
        return Unreachable(output)
    if _DEFECT.search(output):
        return DefectiveFile(output)
    return UvError(output)
