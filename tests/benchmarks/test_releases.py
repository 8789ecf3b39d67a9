"""What the harness tells of bisections between real releases, on answers that were made by hand."""

import argparse
import json
import subprocess
from typing import Any

import pytest

from benchmarks.harness import releases

RATIO = {"value": 0.616, "low": 0.543, "high": 0.697}
CULPRIT = {
    "kind": "culprit",
    "runs": 40,
    "ends": RATIO,
    "steps": [{"good": {"version": "2.9.1"}, "bad": {"version": "2.10.0"}, "ratio": RATIO}],
}
NOTHING = {
    "kind": "not_reproduced",
    "runs": 48,
    "ends": {"value": 1.001, "low": None, "high": 1.02},
    "steps": [],
}


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    releases.add_options(parser)
    return parser.parse_args(arguments)


def test_the_pair_or_the_ends_with_what_they_took() -> None:
    assert releases.line("a case", CULPRIT, 90.0) == (
        "a case\n  2.9.1 → 2.10.0: 0.616 (0.543 to 0.697); 40 processes, 1.5 min"
    )
    assert releases.line("other", NOTHING, 60.0) == (
        "other\n  not_reproduced, the ends: 1.001 (– to 1.020); 48 processes, 1.0 min"
    )
    assert "no ratio" in releases.line("none", {**NOTHING, "ends": None}, 60.0)


def test_both_cases_are_asked_in_either_direction(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command[3:])
        return subprocess.CompletedProcess(command, 4, json.dumps(NOTHING))

    monkeypatch.setattr(subprocess, "run", run)
    releases.releases(options("--good", "2.10.0", "--variant", "default"))
    assert [command[1] for command in asked] == [releases.CHANGED, releases.UNCHANGED]
    assert "bisect --regress either --format json --good 2.10.0 --bad 2.15.0" in " ".join(
        [asked[0][0], *asked[0][2:]]
    )
    assert asked[0][-2:] == ["--variant", "default"]
    assert capsys.readouterr().out.count("48 processes") == 2


def test_a_bisection_without_an_answer_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 2, ""))
    with pytest.raises(SystemExit, match="accel-micro bisect ended with 2"):
        releases.releases(options("--case", "nothing"))
