"""A week of nightlies from an index on loopback to the regressions page: nothing in it is a stand-in but the dates.

The wheels are the installed torch under other versions. One day has no nightly, one has half a wheel, and from one day
on a function of `torch.nn.functional` does its work several times.
"""

import json
import re
from functools import partial

import pytest

from accel_micro.builds import Ledger, identify
from tests.asv_plugin.builds import samples
from tests.asv_plugin.conftest import Suite
from tests.end_to_end.conftest import Nightlies
from tests.end_to_end.planted import SOFTMAX, slower

pytestmark = pytest.mark.slow

DAYS = (1, 2, 3, 5, 6, 7)
HALF, MISSING, SLOWER = 3, 4, 6


def nightly(day: int) -> str:
    return f"2.15.0.dev202611{day:02}"


def commit(day: int) -> str:
    return f"{day:040x}"


def test_a_slowdown_shows_at_its_nightly(
    suite: Suite, nightlies: Nightlies, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in DAYS:
        nightlies.add(
            nightly(day), commit(day), partial(slower, more=3) if day >= SLOWER else str, half=day == HALF
        )
    suite.add("ops", SOFTMAX, fake=False)
    done = suite.asv(
        "run", "20261031..20261107", "--interleave-rounds", "-a", "rounds=2", patience_seconds=1800
    )
    assert done.code == 2, done.output
    assert "Traceback" not in done.output
    assert f"No nightly is known of 2026-11-{MISSING:02}" in done.output
    assert re.search(rf"Not measured: torch {re.escape(nightly(HALF))} could not be installed: ", done.output)

    measured = [day for day in DAYS if day != HALF]
    found = {path.name[:8]: json.loads(path.read_text()) for path in suite.results.glob("*/*-torch-py*.json")}
    assert sorted(found) == [f"202611{day:02}" for day in measured]
    for result in found.values():
        assert len(samples(result, "ops.softmax.time_forward")) == 40, "twenty of each process"
    installs = [json.loads(line) for line in suite.machine_file("installs.jsonl").read_text().splitlines()]
    made = [line for line in installs if line["failure"] is None]
    assert len(made) == len(measured), "rounds take turns, and no build is installed twice"
    assert all(line["own_bytes"] < line["shared_bytes"] for line in made)
    ledger = Ledger.beside(suite.results)
    assert ledger.resolve(nightly(SLOWER)).git_version == commit(SLOWER)

    published = suite.asv("publish")
    assert published.code == 0, published.output
    html = suite.path / "html"
    hashes = {
        int(revision): build
        for revision, build in json.loads((html / "index.json").read_text())["revision_to_hash"].items()
    }
    ((name, _, _, _, _, _, jumps),) = json.loads((html / "regressions.json").read_text())["regressions"]
    assert name == "ops.softmax.time_forward('cpu', 'float32', 'rows=256 width=1024')"
    *noise, (_, at, before, after) = sorted(jumps, key=lambda jump: jump[3] / jump[2])
    assert hashes[at] == identify(nightly(SLOWER)).id
    assert 2 < after / before < 8, "the work of four calls instead of one"
    assert all(jump[3] / jump[2] < 1.5 for jump in noise), (
        "a busy machine has steps of its own, and smaller ones"
    )
    page = (html / "builds.html").read_text()
    assert f'<tr id="{identify(nightly(SLOWER)).id}">' in page
    assert f"compare/{commit(5)}...{commit(6)}" in page
    assert "installation on" in page
    with capsys.disabled():
        for line in made:
            print(
                f"\n{line['version']}: uv {line['uv_seconds']:.1f} s, first import {line['check_seconds']:.1f} s, "
                f"own {line['own_bytes'] / 1e6:.0f} MB, linked {line['shared_bytes'] / 1e6:.0f} MB",
                end="",
            )
        print(f"\nstep at {hashes[at][:8]}: {before * 1e6:.1f} µs to {after * 1e6:.1f} µs")
