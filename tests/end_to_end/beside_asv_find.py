"""`accel-micro bisect` and `asv find` on the same builds, through the real asv. Run by hand; takes some minutes.

    python -m tests.end_to_end.beside_asv_find [--turns 3] [--builds 12] [--effect 0.06]

Wheels, index, environments and processes are real. Torch is a few lines of Python, and what a process reads is drawn:
the seconds of its build, times a scatter of 2 % from process to process. So which build is guilty is known.
"""

import argparse
import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.asv_plugin.builds import INIT, Builds
from tests.asv_plugin.conftest import CHECKOUT, Suite
from tests.asv_plugin.conftest import INIT as SUITE_INIT
from tests.end_to_end.bisecting import Bisecting

SPREAD = 0.02
OPS = f"""
import math
import random

import torch
from accel_micro.measure import Process
from accel_micro.measure.records import Record
from accel_micro.suite import OpBenchmark, op


def answer(self, direction, *parameters, clocks, samples=None, budget_seconds=None):
    chance = random.SystemRandom()
    middle = torch.seconds * math.exp(chance.gauss(0, {SPREAD}))
    values = tuple(middle * math.exp(chance.gauss(0, 0.005)) for _ in range(samples or 20))
    read = {{c: Process(parameters[0], c, values, values, (1.0,) * len(values), 7) for c in clocks}}
    return Record(self.case(direction, *parameters), clocks=read)


OpBenchmark.run = answer


@op(quick=["n=1"], backward=False)
def plain(t, n):
    pass
"""
CASE = "ops.plain.time_forward('cpu', 'float32', 'n=1')"


@dataclass
class Answer:
    """What a search named, the day of November or 0, and what it took."""

    named: int
    seconds: float


def main() -> None:
    """Print who named which build."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--builds", type=int, default=12)
    parser.add_argument("--effect", type=float, default=0.06)
    options = parser.parse_args()
    right = {"accel-micro bisect": 0, "asv find": 0}
    for turn in range(options.turns):
        culprit = 2 + (5 * turn + 3) % (options.builds - 1)
        with tempfile.TemporaryDirectory(prefix="accel-micro-find-") as name:
            bisecting = prepared(Path(name), options.builds, culprit, options.effect)
            for who, search in (("accel-micro bisect", ours), ("asv find", theirs)):
                answer = search(bisecting, options.builds)
                right[who] += answer.named == culprit
                word = "right" if answer.named == culprit else "wrong" if answer.named else "names none"
                print(
                    f"build {culprit} of {options.builds} is slower by {100 * options.effect:g} %: {who} names "
                    f"{answer.named or '-'}, {word}, in {answer.seconds:.0f} s",
                    flush=True,
                )
    print(", ".join(f"{who}: right {count} of {options.turns}" for who, count in right.items()))


def prepared(folder: Path, builds: int, culprit: int, effect: float) -> Bisecting:
    """A suite with an index of so many nightlies."""
    path = folder / "suite"
    (path / "benchmarks").mkdir(parents=True)
    (path / "asv.conf.json").write_text((CHECKOUT / "asv.conf.json").read_text())
    (path / "benchmarks" / "__init__.py").write_text(SUITE_INIT)
    (path / "benchmarks" / "ops.py").write_text(OPS)
    (folder / "runtime").mkdir(mode=0o700)
    environment = {
        **os.environ,
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder / "runtime"),
        "PYTHONPATH": str(CHECKOUT),
        "ACCEL_MICRO_INDEXES": str(folder / "index"),
        "ACCEL_MICRO_VARIANT": "cpu",
        "UV_CACHE_DIR": str(folder / "uv-cache"),
    }
    suite = Suite(path, environment)
    found = Builds(suite, folder / "index")
    for day in range(1, builds + 1):
        seconds = 1e-3 * (1 + (effect if day >= culprit else 0.0))
        found.nightly(day, git=f"{day:040x}", init=INIT.format(seconds=seconds))
    return Bisecting(found)


def ours(bisecting: Bisecting, builds: int) -> Answer:
    """`accel-micro bisect`."""
    start = time.perf_counter()
    done = bisecting.run(CASE, "--good", "20261101", "--bad", f"202611{builds:02}")
    found = re.search(r"first bad +2\.15\.0\.dev202611(\d\d)\n", done.output)
    if found is None and done.code not in (0, 4):
        sys.exit(done.output)
    return Answer(int(found[1]) if found else 0, time.perf_counter() - start)


def theirs(bisecting: Bisecting, builds: int) -> Answer:
    """`asv find` with our builds, and asv's own search."""
    start = time.perf_counter()
    done = bisecting.builds.asv("find", f"20261031..202611{builds:02}", "ops.plain.time_forward")
    found = re.search(r"Greatest regression found: 202611(\d\d)", done.output)
    if found is None:
        sys.exit(done.output)
    return Answer(int(found[1]), time.perf_counter() - start)


if __name__ == "__main__":
    main()
