"""`accel-micro quick` where somebody presses Ctrl-C before a process is done, or reads no further."""

import io
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from accel_micro.asv_plugin import session
from accel_micro.commands.quick import INTERRUPTED, Request, quick

READ_NO_FURTHER = """
import sys
from pathlib import Path

from rich.console import Console

from accel_micro.asv_plugin import session
from accel_micro.commands.quick import Request, quick
from accel_micro.measure import Process
from accel_micro.measure.records import Case, Record

samples = (1e-5,) * 20
process = Process("cpu", "throughput", samples, samples, (1.0,) * 20, 100)
record = Record(Case("f.op", "forward", "cpu", "float32", "n=1"), {"throughput": process})
folder = Path(sys.argv[1])
session.run = lambda *_, **__: session.Outcome((record,), "s", False, folder / "results", {}, folder / "log")
session.publish = lambda *_, **__: folder
sys.stdin.readline()  # until nobody reads
raise SystemExit(quick(Request(), Console(stderr=True)))
"""


def test_a_run_that_measured_nothing_leaves_the_last_report_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = session.Outcome((), "session", True, tmp_path / "results", {}, tmp_path / "asv.log")
    monkeypatch.setattr(session, "run", lambda *_, **__: outcome)
    monkeypatch.setattr(session, "publish", lambda *_, **__: pytest.fail("there is nothing to publish"))
    said = io.StringIO()
    assert quick(Request(out=tmp_path), Console(file=said)) == INTERRUPTED
    assert said.getvalue() == "Interrupted before anything was measured.\n"
    assert capsys.readouterr().out == ""


def test_pages_are_written_though_nobody_reads_the_table(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", READ_NO_FURTHER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout and process.stdin and process.stderr
    process.stdout.close()
    process.stdin.write("\n")
    process.stdin.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0, said
    assert (tmp_path / "report.html").is_file()
    assert "report.html" in said and "ipe" not in said
