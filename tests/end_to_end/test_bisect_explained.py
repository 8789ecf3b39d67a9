"""From two builds to the op that differs, and from that op to the nightly, by the commands that a user types."""

import functools
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.asv_plugin.builds import Builds
from tests.asv_plugin.conftest import Suite, ended
from tests.end_to_end.bisecting import Bisecting
from tests.end_to_end.conftest import Nightlies
from tests.end_to_end.planted import slower

pytestmark = pytest.mark.slow

DAYS = (1, 2, 3, 4)
SLOWER, TIMES = 3, 5

MODEL = """
import torch
from torch.nn import functional

from accel_micro.models.model import Batch, Model


class Attending(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(256))

    def forward(self, x):
        x = x * self.scale
        for _ in range(6):
            x = functional.softmax(x, dim=2)
        return x


def batch(n, dtype, generator):
    x = torch.randn(n, 16, 256, generator=generator).to(dtype)
    return Batch(x, x)


def net(device):
    module = Attending().to(device)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    return Model("mine", module, batch, functional.mse_loss, optimizer, 1)
"""


def nightly(day: int) -> str:
    return f"2.15.0.dev202611{day:02}"


@pytest.fixture
def bisecting(suite: Suite, nightlies: Nightlies, tmp_path: Path) -> Bisecting:
    """Nightlies, from one of them on `functional.softmax` does its work five times, and a model that calls it."""
    for day in DAYS:
        change = functools.partial(slower, more=TIMES - 1) if day >= SLOWER else str
        nightlies.add(nightly(day), f"{day:040x}", change)
    (suite.path / "mine.py").write_text(MODEL)
    return Bisecting(Builds(suite, tmp_path))


def explain(suite: Suite, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "accel_micro", "explain", *arguments],
        cwd=suite.path, env=suite.environment, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip


def test_the_op_that_two_builds_differ_by_leads_to_the_nightly_that_brought_it(
    suite: Suite, bisecting: Bisecting, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [f"build={nightly(day).rpartition('dev')[2]} threads=1" for day in (DAYS[0], DAYS[-1])]
    # Inference, since watched steps that keep what backward needs had 200 page faults each here, and those outweigh ops
    # of microseconds.
    cheap = ["--processes", "4", "--budget", "0.5", "--replay", "0.1", "--no-confirm", "--inference"]
    explained = explain(
        suite, "--model", "mine:net", "--baseline", sides[0], "--contender", sides[1], *cheap, "--json"
    )
    assert explained.returncode == 0, explained.stderr
    (suite.path / "mine.json").write_text(explained.stdout)
    ops = [each for each in json.loads(explained.stdout)["contributions"] if each["significant"]]
    assert (ops[0]["phase"], ops[0]["ops"]) == ("forward", ["aten.softmax.int"]), explained.stderr

    named = re.search(r"`accel-micro bisect ([^`]*)`", explained.stderr)
    assert named is not None, explained.stderr
    # A generous error rate takes fewer blocks, and an op of five times the work leaves no doubt.
    done = ended(
        bisecting.start(*shlex.split(named[1].replace("FILE", "mine.json")), "--error-rate", "0.5"), 900
    )
    output = done.output
    assert done.code == 0, output
    assert "Traceback" not in explained.stderr + output
    asked = "forward softmax in mine:net (cpu batch=4 threads=1): time in a step, 4 builds"
    assert asked in output
    assert re.search(rf"last good +{re.escape(nightly(SLOWER - 1))}\n", output), output
    assert re.search(rf"first bad +{re.escape(nightly(SLOWER))}\n", output), output

    answer = json.loads(bisecting.run("replay", "--format", "json").output)
    (step,) = answer["steps"]
    assert 2 < step["ratio"]["value"] < 10, f"the work of five calls instead of one: {step['ratio']}"
    log = bisecting.run("log").output
    assert f"confirmed: torch {nightly(SLOWER - 1)} and torch {nightly(SLOWER)}" in log
    assert re.search(r"\(certificate\): 2026110\d \S+ [mµ]s,", log), log
    issue = bisecting.run("replay", "--format", "markdown").output
    assert "one_op.py mine:net 'cpu batch=4 threads=1' forward aten.softmax.int --inference" in issue
    with capsys.disabled():
        print(f"\n{answer['runs']} processes; {answer['headline']} {step['ratio']}")
