"""24 combinations on three builds, whole, here and by plain asv. Run by hand; takes a quarter of an hour and 8 GB.

    python -m tests.end_to_end.whole_suite

Both are given the same wheels, files on this disk: the installed torch under other versions. Plain asv is asv without a
plugin: one virtualenv into which each build is installed over the last, by asv's own commands for a project, and a
process spawned for each combination. What is measured takes next to no time in either, so that the rest is compared.
Both begin without environments, and with what torch depends on in the caches of pip and of uv. Then both run once more:
here each build has kept its environment, and plain asv installs each again over the last.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from accel_micro.builds.installing import BESIDE
from accel_micro.builds.uv import Uv
from accel_micro.commands.selfcheck_cost import COMBINATIONS, ours_suite, plain_suite
from tests.asv_plugin.conftest import CHECKOUT
from tests.end_to_end.repacked import Repacked

DAYS = (1, 2, 3)

INSTALL = """
import pathlib, subprocess, sys
wheel = (pathlib.Path(__file__).parent / "wheel.txt").read_text().strip()
command = [sys.executable, "-m", "pip", "install", "-q", "--force-reinstall", wheel]
raise SystemExit(subprocess.run(command).returncode)
"""


def main() -> None:
    """Print seconds of both, and how often each installed and started a process."""
    with tempfile.TemporaryDirectory(prefix="accel-micro-suite-") as name:
        folder = Path(name)
        torch = Repacked(folder / "common")
        variant = torch.version.partition("+")[2]
        (folder / "index").mkdir()
        wheels = [
            torch.wheel(f"2.13.0.dev2026110{day}+{variant}".rstrip("+"), f"{day:040x}").save(folder / "index")
            for day in DAYS
        ]
        (folder / "common").unlink()
        mine = ours(folder / "ours", folder / "index")
        theirs = plain(folder / "plain", wheels)
        for what, ours_seconds, plain_seconds in zip(("first run", "run again"), mine, theirs, strict=True):
            print(f"{what}: plain asv ÷ ours {plain_seconds / ours_seconds:.1f}")


def ours(folder: Path, index: Path) -> list[float]:
    """`asv run` of all builds with the plugin, twice."""
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "asv.conf.json").write_text((CHECKOUT / "asv.conf.json").read_text())
    (folder / "benchmarks" / "__init__.py").write_text(ours_suite(COMBINATIONS))
    (folder / "runtime").mkdir(mode=0o700)
    environment = {
        "XDG_RUNTIME_DIR": str(folder / "runtime"),  # nothing is timed: no other run needs to be waited for
        "PYTHONPATH": str(CHECKOUT),
        "ACCEL_MICRO_INDEXES": str(index),
        "ACCEL_MICRO_VARIANT": "cpu",
        "ACCEL_MICRO_PROFILE": "quick",
        "ACCEL_MICRO_DEVICES": "cpu",
        "UV_CACHE_DIR": str(folder / "uv-cache"),
    }
    dependencies_in_cache(folder)
    command = [sys.executable, "-m", "asv", "run", "20261031..20261103", "-a", "rounds=1"]
    seconds = [run("accel_micro", folder, command, environment) for _ in range(2)]
    measured(folder)
    return seconds


def dependencies_in_cache(folder: Path) -> None:
    """Let uv have downloaded what torch depends on, as pip has since torch was installed here."""
    wanted = [Requirement(line) for line in metadata.requires("torch") or []]
    needed = [
        f"{one.name}{one.specifier}"
        for one in wanted
        if one.marker is None or one.marker.evaluate({"extra": ""})
    ]
    uv = Uv(folder / "uv-cache")
    uv.run("pip", "install", "--quiet", "--target", folder / "dependencies", *needed, *BESIDE, cwd=folder)


def plain(folder: Path, wheels: Sequence[Path]) -> list[float]:
    """`asv run` of a project whose three commits install one wheel each, twice."""
    repository = folder / "repository"
    repository.mkdir(parents=True)
    git = ["git", "-C", str(repository), "-c", "user.name=suite", "-c", "user.email=suite@localhost"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    (repository / "install.py").write_text(INSTALL)
    for number, wheel in enumerate(wheels):
        (repository / "wheel.txt").write_text(str(wheel))
        subprocess.run([*git, "add", "."], check=True)
        date = f"2026-11-0{DAYS[number]}T00:00:00Z"
        subprocess.run(
            [*git, "commit", "-q", "-m", wheel.name, "--date", date],
            check=True,
            env={"GIT_COMMITTER_DATE": date, "PATH": "/usr/bin:/bin"},
        )
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "__init__.py").touch()
    (folder / "benchmarks" / "ops.py").write_text(plain_suite(COMBINATIONS))
    conf = {
        "version": 1,
        "project": "torch",
        "repo": str(repository),
        "branches": ["main"],
        "environment_type": "virtualenv",
        "pythons": [f"{sys.version_info.major}.{sys.version_info.minor}"],
        "build_command": [],
        "install_command": ["in-dir={build_dir} python install.py"],
        "build_cache_size": 0,
    }
    (folder / "asv.conf.json").write_text(json.dumps(conf))
    subprocess.run(
        [sys.executable, "-m", "asv", "machine", "--yes"], cwd=folder, check=True, capture_output=True
    )
    command = [sys.executable, "-m", "asv", "run", "ALL", "--launch-method", "spawn"]
    seconds = [run("plain asv", folder, command, {}) for _ in range(2)]
    measured(folder)
    return seconds


def measured(folder: Path) -> None:
    """Refuse a run that left a combination out: it would be fast for the wrong reason."""
    found = [json.loads(path.read_text()) for path in (folder / "results").glob("*/*-*.json")]
    counts = []
    for result in found:
        for values in result.get("results", {}).values():
            row = values[0] if isinstance(values, list) and isinstance(values[0], list) else values
            counts.append(sum(value is not None for value in row))
    assert len(found) == len(DAYS), f"{len(found)} builds were measured in {folder.name}"
    assert max(counts) >= COMBINATIONS, f"{counts} combinations were measured in {folder.name}"


def run(what: str, folder: Path, command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Run it to its end; its seconds are printed."""
    import os

    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True
    )
    seconds = time.perf_counter() - start
    assert done.returncode in (0, 2), done.stdout[-3000:] + done.stderr[-3000:]
    print(f"{what:12s} {seconds:7.1f} s for {COMBINATIONS} combinations × {len(DAYS)} builds", flush=True)
    return seconds


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    main()
