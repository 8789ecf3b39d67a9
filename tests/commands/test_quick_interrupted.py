"""`accel-micro quick` where somebody presses Ctrl-C before a process is done."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from accel_micro.asv_plugin import session
from accel_micro.commands.quick import INTERRUPTED, Request, quick


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
