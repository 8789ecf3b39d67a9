"""A suite with an index of builds whose torch is a few lines of Python, and as fast as its wheel says."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.asv_plugin.conftest import Done, Suite
from tests.builds.fake_torch import write_wheel

# Enough of a torch for the devices to be looked for, and for ops that are answered by hand.
INIT = """
from torch.version import __version__, git_version


class _Nothing:
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args, **options):
        return False


backends = cuda = xpu = mps = accelerator = _Nothing()
seconds = {seconds}
"""

OPS = """
import torch
from accel_micro.measure import Process
from accel_micro.measure.records import Record
from accel_micro.suite import OpBenchmark, op


def answer(self, direction, *parameters, clocks, samples=None, budget_seconds=None):
    values = tuple(torch.seconds * (1 + 0.0001 * i) for i in range(samples or 20))
    read = {c: Process(parameters[0], c, values, values, (1.0,) * len(values), 7) for c in clocks}
    return Record(self.case(direction, *parameters), clocks=read)


OpBenchmark.run = answer


@op(quick=["n=1"], backward=False)
def plain(t, n):
    pass
"""

DAY = "2.15.0.dev202611{:02}+cpu"


@dataclass
class Builds:
    """The suite, and the folder that is its index."""

    suite: Suite
    index: Path

    def nightly(self, day: int, seconds: float = 1e-3, **options: Any) -> Path:
        """Write the nightly of a day of November 2026."""
        return self.wheel(DAY.format(day), seconds, **options)

    def wheel(self, version: str, seconds: float = 1e-3, **options: Any) -> Path:
        """Write any build."""
        return write_wheel(self.index, version, **{"init": INIT.format(seconds=seconds), **options})

    def asv(self, *arguments: str) -> Done:
        return self.suite.asv(*arguments)

    def results(self) -> dict[str, dict[str, Any]]:
        """asv's results by the first eight digits of the build."""
        return {
            path.name[:8]: json.loads(path.read_text())
            for path in self.suite.results.glob("*/*-torch-py*.json")
        }

    def environments(self) -> Mapping[str, Path]:
        """Environments by the first eight digits of the build."""
        folder = self.suite.path / "env" / "builds"
        return {path.name[:8]: path for path in folder.iterdir() if not path.name.startswith(".")}


def samples(result: Mapping[str, Any], name: str = "ops.plain.time_forward") -> list[float]:
    """Those of the only case that was run."""
    row = dict(zip(result["result_columns"], result["results"][name], strict=False))
    (found,) = [values for values in row["samples"] if values]
    return list(found)
