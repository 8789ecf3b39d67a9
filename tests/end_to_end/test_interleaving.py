"""Two nightlies measured by turns until it is decided which op got slower: nothing in it is a stand-in but the dates.

The wheels are the installed torch under other versions; in the later one a function of `torch.nn.functional` does
its work twice.
"""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from accel_micro.builds import Ledger, identify
from accel_micro.measure.records import SUFFIX, Record, append, read_all
from tests.asv_plugin.conftest import Suite
from tests.end_to_end.conftest import Nightlies
from tests.end_to_end.planted import SOFTMAX, slower

pytestmark = pytest.mark.slow

BEFORE, AFTER = "2.15.0.dev20261101", "2.15.0.dev20261102"

MM = """

@op(quick=["n=64"], backward=False)
def mm(t, n):
    a, b = t(n, n), t(n, n)
    return lambda: torch.mm(a, b)
"""


def invent_history(suite: Suite, records: list[Record]) -> None:
    """Records of nightlies that were never made: earlier ones read as the first build did, later ones as the second."""
    of = {}
    for build in map(identify, (BEFORE, AFTER)):
        own = [record for record in records if record.build == build.id and record.case.op == "ops.softmax"]
        of[build.id] = sorted(own, key=lambda r: r.clocks["throughput"].median_seconds)[len(own) // 2]
    ledger = Ledger.beside(suite.results)
    for number, like in enumerate([identify(BEFORE).id] * 10 + [identify(AFTER).id] * 5):
        version = f"2.15.0.dev202610{10 + number}" if number < 10 else f"2.15.0.dev202611{10 + number}"
        build = ledger.remember(identify(version), 1_790_000_000_000)
        record = replace(of[like], build=build.id, session=version)
        append(suite.results / record.machine / f"{build.id[:8]}-{record.environment}{SUFFIX}", record)


def test_what_one_process_leaves_open_is_measured_until_it_is_decided(
    suite: Suite, nightlies: Nightlies, capsys: pytest.CaptureFixture[str]
) -> None:
    nightlies.add(BEFORE, f"{1:040x}")
    nightlies.add(AFTER, f"{2:040x}", slower)
    suite.add("ops", SOFTMAX + MM, fake=False)
    run = suite.asv("run", "20261031..20261102", "-a", "rounds=1", patience_seconds=1200)
    assert run.code == 0, run.output
    stored = len(list(read_all(suite.results)))
    assert stored == 4

    command = [sys.executable, "-m", "accel_micro", "compare", BEFORE, AFTER, "--measure", "--budget", "2"]
    done = subprocess.run(
        [*command, "--format", "json", "--fail-on", "regression"],
        cwd=suite.path,
        env=suite.environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    rows = {row["op"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows["ops.softmax"]["kind"] == "regression"
    assert rows["ops.softmax"]["ratio"] > 1.4
    assert rows["ops.mm"]["kind"] in ("invariant", "inconclusive")
    assert {row["conditions"] for row in rows.values()} == {"interleaved"}

    fresh = list(read_all(suite.results))
    session = max(fresh, key=lambda record: record.started).session
    measured = [record for record in fresh if record.session == session]
    assert len(measured) == len(fresh) - stored
    assert {record.build for record in measured} == {identify(BEFORE).id, identify(AFTER).id}
    slow = sorted((r for r in measured if r.case.op == "ops.softmax"), key=lambda r: (r.started, r.round))
    assert len(slow) % 2 == 0
    assert [r.round for r in slow] == [i // 2 + 1 for i in range(len(slow))], "both sides by turns"
    again = subprocess.run(
        [*command[:6], "--format", "json"],
        cwd=suite.path,
        env=suite.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    told = {row["op"]: row["kind"] for row in json.loads(again.stdout)["rows"]}
    assert told["ops.softmax"] == "regression", "what was measured is stored"
    invent_history(suite, fresh)
    confirmed = subprocess.run(
        [*command[:4], "--confirm", "--budget", "2", "--format", "json", "--fail-on", "regression"],
        cwd=suite.path,
        env=suite.environment,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert confirmed.returncode == 1, confirmed.stdout + confirmed.stderr
    (proposal,) = json.loads(confirmed.stdout)["proposals"]
    assert (proposal["op"], proposal["outcome"]) == ("ops.softmax", "confirmed")
    assert proposal["settlement"]["ratio"] > 1.4
    assert [proposal["settlement"][side]["version"] for side in ("baseline", "contender")] == [BEFORE, AFTER]
    with capsys.disabled():
        for name, row in rows.items():
            print(f"\n{name}: {row['kind']}, ratio {row['ratio']:.3f}, q {row['q_value']:.1e}", end="")
        print(f"; {len(measured)} processes")
