"""What it takes to go to another build: here, and as plain asv does it. Run by hand; takes minutes and some 6 GB.

    python -m tests.end_to_end.switching

Both are given the same wheels, files on this disk: the installed torch under other versions. Plain asv is taken by its
own commands for `environment_type: virtualenv`: uninstall, then `pip install --force-reinstall`.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from accel_micro.builds.disk import inodes
from accel_micro.builds.environments import Environments
from accel_micro.builds.interpreters import find_interpreter
from tests.builds.fake_torch import wheel_of
from tests.end_to_end.repacked import Repacked

IMPORT = "import torch"


def main() -> None:
    """Print seconds and megabytes of each step."""
    with tempfile.TemporaryDirectory(prefix="accel-micro-switching-") as name:
        folder = Path(name)
        (folder / "wheels").mkdir()
        torch = Repacked(folder / "common")
        variant = torch.version.partition("+")[2]
        paths = [
            torch.wheel(f"2.15.0.dev2026110{day}+{variant}".rstrip("+"), f"{day:040x}").save(
                folder / "wheels"
            )
            for day in (1, 2, 3)
        ]
        (folder / "common").unlink()
        print(
            f"wheels of {paths[0].stat().st_size / 1e6:.0f} MB\n\n{'':34s}{'seconds':>9s}{'MB more on disk':>17s}"
        )
        ours(folder / "env", paths)
        plain(folder / "plain", paths)


def ours(folder: Path, paths: list[Path]) -> None:
    """An environment for each build."""
    here = find_interpreter()
    store = Environments(folder)
    for index, path in enumerate(paths):
        wheel = wheel_of(path)
        what = "first build" if index == 0 else "another build"
        before = megabytes(folder)
        with timed(f"accel_micro: {what}") as step, store.acquire(wheel, here) as made:
            step.note = f"{made.facts.uv_seconds:.1f} s uv, {made.facts.check_seconds:.1f} s first import"
        step.print(megabytes(folder) - before)
        if index:
            print(f"{'':34s}{'':9s}{made.facts.own_bytes / 1e6:17.1f}  of it besides what uv's cache links")
    wheel = wheel_of(paths[0])
    with store.held_alone(store.name(wheel, here)):
        store.remove(store.name(wheel, here))
    before = megabytes(folder)
    with timed("accel_micro: made from uv's cache") as step, store.acquire(wheel, here) as made:
        step.note = f"{made.facts.uv_seconds:.1f} s uv, {made.facts.check_seconds:.1f} s first import"
    step.print(megabytes(folder) - before)
    with timed("accel_micro: back to a build") as step:
        store.acquire(wheel, here).release()
    step.print(0.0)


def plain(folder: Path, paths: list[Path]) -> None:
    """One environment, and each build over the last."""
    python = folder / "bin" / "python"

    def switch(path: Path) -> None:
        run(python, "-m", "pip", "uninstall", "-q", "-y", "torch")
        run(python, "-m", "pip", "install", "-q", "--force-reinstall", path)
        run(python, "-c", IMPORT)

    run(sys.executable, "-m", "virtualenv", "-q", folder)
    for what, path in (("first build", paths[0]), ("another build", paths[1]), ("back to a build", paths[0])):
        before = megabytes(folder)
        with timed(f"virtualenv + pip: {what}") as step:
            switch(path)
        step.print(megabytes(folder) - before)


class timed:
    """A step: seconds by the wall clock."""

    def __init__(self, what: str) -> None:
        self.what, self.note = what, ""

    def __enter__(self) -> "timed":
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._began

    def print(self, more: float) -> None:
        print(f"{self.what:34s}{self.seconds:9.3f}{more:17.1f}  {self.note}", flush=True)


def megabytes(folder: Path) -> float:
    """On disk, each file once, in units of 10⁶ bytes."""
    return sum({identity: size for identity, size, _ in inodes(folder)}.values()) / 1e6


def run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, stdin=subprocess.DEVNULL, cwd="/")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    main()
