"""A tiny suite of its own, in a temporary folder, run by the real asv or by parts of it."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

INIT = """
import torch  # noqa: F401

from accel_micro.asv_plugin import timing

timing.install()
"""

# Ops whose process answers at once with a record made by hand: how long measuring takes is not the plugin's matter.
FAKE = """
import os
import time

from accel_micro.measure import Process
from accel_micro.measure.records import Failure, Record
from accel_micro.suite import OpBenchmark, op


def answer(self, direction, *parameters, clocks, samples=None, budget_seconds=None):
    case = self.case(direction, *parameters)
    fail = self.op.definition(None, **self.op.arguments(parameters[2]))
    if fail is not None:
        return Record(case, failure=Failure(*fail))
    values = tuple(1e-3 + 1e-6 * i for i in range(samples or 20))
    read = {c: Process(parameters[0], c, values, values, (1.0,) * len(values), 7) for c in clocks}
    return Record(case, clocks=read)


OpBenchmark.run = answer
"""


@dataclass
class Suite:
    """A folder with `asv.conf.json` and benchmarks, and asv to run them."""

    path: Path
    environment: dict[str, str]

    def asv(
        self, *arguments: str, profile: str = "quick", devices: str = "cpu", patience_seconds: float = 240
    ) -> "Done":
        return ended(self.start(*arguments, profile=profile, devices=devices), patience_seconds)

    def start(self, *arguments: str, profile: str = "quick", devices: str = "cpu") -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "asv", *arguments],
            cwd=self.path,
            env={**self.environment, "ACCEL_MICRO_PROFILE": profile, "ACCEL_MICRO_DEVICES": devices},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def add(self, name: str, source: str, fake: bool = True) -> None:
        """Write benchmarks/<name>.py; `fake` ops are answered by hand."""
        start = FAKE if fake else "import torch\n\nfrom accel_micro.suite import op\n"
        (self.path / "benchmarks" / f"{name}.py").write_text(start + "\n\n" + textwrap.dedent(source))

    @property
    def results(self) -> Path:
        return self.path / "results"

    def machine_file(self, pattern: str) -> Path:
        """The only file of that pattern among the machine's results."""
        (found,) = self.results.glob(f"*/{pattern}")
        return found


@dataclass
class Done:
    code: int
    output: str

    def lines(self) -> list[Any]:
        """The values of an output that is JSON line by line; anything that asv prints would fail here."""
        try:
            return [json.loads(line) for line in self.output.splitlines()]
        except ValueError:
            pytest.fail(f"not all of it is JSON:\n{self.output}")


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    folder = tmp_path / "suite"
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "asv.conf.json").write_text((CHECKOUT / "asv.conf.json").read_text())
    (folder / "benchmarks" / "__init__.py").write_text(INIT)
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "XDG_RUNTIME_DIR": str(runtime),
        "PYTHONPATH": str(CHECKOUT),
        "COLUMNS": "120",
        # No test asks an index that it has not made.
        "ACCEL_MICRO_INDEXES": str(tmp_path / "index"),
        "ACCEL_MICRO_VARIANT": "cpu",
    }
    return Suite(folder, environment)


@pytest.fixture(scope="session")
def uv_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """uv's cache, of a session's own."""
    return tmp_path_factory.mktemp("uv-cache")


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    """Return when the condition holds; fail when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def ended(process: "subprocess.Popen[str]", patience_seconds: float) -> Done:
    """How a process group ended by itself; one that does not is killed, and the test fails with what it had said."""
    try:
        output = process.communicate(timeout=patience_seconds)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output = process.communicate()[0]
        pytest.fail(f"{process.args} did not end in {patience_seconds:.0f} s; it had said:\n{output}")
    return Done(process.returncode, output)


def press_ctrl_c(process: "subprocess.Popen[str]") -> None:
    """What a terminal does: SIGINT to asv's whole process group."""
    os.killpg(process.pid, signal.SIGINT)
