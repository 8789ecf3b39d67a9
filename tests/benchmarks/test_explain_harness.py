"""`python -m benchmarks.harness explain`: a model that cannot be captured costs itself alone."""

import argparse
from typing import Any

import pytest

from accel_micro.commands import explain as command
from accel_micro.explain.capturing.taking import CannotCapture
from benchmarks.harness import explain as harness
from tests.explain.worlds import capture


@pytest.mark.parametrize(
    ("what", "ends"),
    [
        ("closure", "off the step: median"),
        ("same", "nothing significant: 1 of 1"),
        ("onednn", "small 4: measured"),
    ],
)
def test_what_does_not_fit_is_named_and_the_rest_goes_on(
    what: str, ends: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def take(request: Any, settings: Any, say: Any) -> Any:
        if request.model == "huge":
            raise CannotCapture("the process that ran huge died")
        return [capture(model=request.model) for _ in settings]

    monkeypatch.setattr(command, "capture", take)
    parser = argparse.ArgumentParser()
    harness.add_options(parser)
    given = [what, "--models", "huge,small", "--batches", "4", "--repeats", "2", "--switches", "threads=1"]
    harness.explain(parser.parse_args(given))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "huge 4: the process that ran huge died"
    assert lines[-1].startswith(ends)
