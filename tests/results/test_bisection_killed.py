"""A bisection that is killed again and again: the journal on a real disk, real processes, and a real SIGKILL."""

import json
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from accel_micro.bisect import search
from accel_micro.results.bisections import Bisection

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow

KILLS = 20
BUILDS = [f"b{number:03}" for number in range(60)]

# A worker whose measure answers at once, and always the same for a block: by its number, which follows from its order.
WORKER = """
import hashlib, sys
from pathlib import Path
from accel_micro.bisect import Search, Worker
from accel_micro.results.bisections import Bisection

def measure(builds):
    with open(sys.argv[2], "a") as file:
        file.write(" ".join(builds) + "\\n")
    digest = hashlib.sha256(" ".join(builds).encode()).digest()
    noise = [(byte - 127.5) / 74 for byte in digest[: len(builds)]]  # of a standard deviation of about 1
    return [(1.04 if int(b[1:]) >= 37 else 1.0) * (1 + 0.02 * e) for b, e in zip(builds, noise)]

if __name__ == "__main__":
    bisection = Bisection(Path(sys.argv[1]))
    print("ready", flush=True)
    with bisection.at_work():
        builds = [f"b{number:03}" for number in range(60)]
        result = Worker(bisection, Search(builds, seed=3)).run(measure)
    print(result.kind, *result.culprit, result.runs, flush=True)
"""


def start(script: Path, journal: Path, ran: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, script, journal, ran], cwd=ROOT, stdout=subprocess.PIPE, text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )  # fmt: skip


def test_killed_at_random_points_twenty_times_it_gives_the_same_answer_and_measures_nothing_twice(
    tmp_path: Path,
) -> None:
    script, ran = tmp_path / "worker.py", tmp_path / "ran"
    script.write_text(WORKER)
    names: dict[str, object] = {"__name__": "worker"}
    exec(WORKER, names)
    whole = search(BUILDS, lambda builds: _measured(names, builds, tmp_path), seed=3)
    assert whole.kind == "culprit" and whole.culprit == ("b036", "b037")

    chance = random.Random(7)
    killed = between = 0
    while killed < KILLS:  # A search that ends before the last kill is followed by another.
        ran.unlink(missing_ok=True)
        journal = Bisection.begin(tmp_path, f"killed-{killed}", {"builds": BUILDS}).path
        kills = 0
        while killed + kills < KILLS:
            with start(script, journal, ran) as process:
                assert process.stdout is not None and process.stdout.readline() == "ready\n"
                # Not by the clock alone: after so many lines more, so that most kills fall into the search.
                lines = len(journal.read_text().splitlines()) + chance.randint(1, 4)
                while len(journal.read_text().splitlines()) < lines and process.poll() is None:
                    time.sleep(0.0005)
                time.sleep(chance.uniform(0, 0.002))
                process.kill()
                if process.wait() == 0:
                    break
            kills += 1
        assert kills, "it was at work"
        between += journal.read_text().count('"event":"values"')
        _ends_as_if_never_killed(script, journal, ran, kills)
        killed += kills
    assert between >= 5, "and came on between"


def _ends_as_if_never_killed(script: Path, journal: Path, ran: Path, kills: int) -> None:
    with start(script, journal, ran) as process:
        output = process.communicate(timeout=60)[0].splitlines()[-1]
    assert process.returncode == 0
    events = [json.loads(line) for line in journal.read_text().splitlines() if _is_whole(line)]
    kinds = Counter(event["event"] for event in events)
    assert output == f"culprit b036 b037 {4 * kinds['values']}"
    assert kinds["search"] == 1, "it was begun once"
    numbers = [event["number"] for event in events if event["event"] == "values"]
    assert len(numbers) == len(set(numbers)), "no block counts twice"
    assert kinds["block"] == kinds["values"] + kinds["withdrawn"]
    assert kinds["withdrawn"] <= kills, "a kill loses the block in flight, and no more"
    assert len(ran.read_text().splitlines()) <= kinds["values"] + kinds["withdrawn"]


def _measured(names: dict[str, object], builds: object, folder: Path) -> list[float]:
    before, sys.argv = sys.argv, ["", "", str(folder / "whole")]
    try:
        return names["measure"](builds)  # type: ignore[operator,no-any-return]
    finally:
        sys.argv = before


def _is_whole(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
