"""A slowdown planted in one of many real wheels, found by `accel-micro bisect` the way that users go."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.asv_plugin.builds import Builds
from tests.asv_plugin.conftest import Suite, ended
from tests.end_to_end.bisecting import Bisecting
from tests.end_to_end.conftest import Nightlies
from tests.end_to_end.planted import SOFTMAX, slower

pytestmark = pytest.mark.slow

DAYS = tuple(day for day in range(1, 12) if day != 9)
HALF, SAME, SLOWER = 10, 5, 7


def nightly(day: int) -> str:
    return f"2.15.0.dev202611{day:02}"


def test_the_nightly_that_made_an_op_slower_is_named(
    suite: Suite, nightlies: Nightlies, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in DAYS:
        commit = f"{day - 1 if day == SAME else day:040x}"
        nightlies.add(nightly(day), commit, slower if day >= SLOWER else str, half=day == HALF)
    suite.add("ops", SOFTMAX, fake=False)
    bisecting = Bisecting(Builds(suite, tmp_path))
    done = ended(bisecting.start("softmax", "--good", "20261101", "--bad", "20261111"), 1500)
    output = done.output
    assert done.code == 0, output
    assert "Traceback" not in output
    assert re.search(rf"last good +{re.escape(nightly(SLOWER - 1))}\n", output), output
    assert re.search(rf"first bad +{re.escape(nightly(SLOWER))}\n", output), output
    assert f"compare/{SLOWER - 1:040x}...{SLOWER:040x}" in output
    assert f"torch {nightly(SAME)}: made from the same commit as torch {nightly(SAME - 1)}" in output

    answer = json.loads(bisecting.run("replay", "--format", "json").output)
    (step,) = answer["steps"]
    # Within a tenth of 2, since one in twenty intervals may miss the truth: how many do is asked of simulated searches.
    ratio = step["ratio"]
    assert 1.3 < ratio["low"] < 2.2 and 1.8 < ratio["high"] < 3, (
        f"the work of two calls instead of one: {ratio}"
    )
    assert len(step["suspects"]) == 1
    script = tmp_path / "reproducer.py"
    script.write_text(answer["reproducer"])
    ran = subprocess.run(
        [sys.executable, "-I", script], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout.splitlines()[-1]) > 0
    published = suite.asv("publish")
    assert published.code == 0, published.output
    with capsys.disabled():
        print(f"\n{answer['runs']} processes; {answer['headline']} {step['ratio']}")
