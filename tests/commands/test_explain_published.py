"""`explain --published`: the shipped reports, a file of one's own, and what is refused."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from accel_micro.cli import app
from accel_micro.explain.published.data import SHIPPED, read
from tests.test_readme import accel_micro_options


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["explain", "--published", *map(str, arguments)], catch_exceptions=False)


def test_the_shipped_reports() -> None:
    done = run()
    assert done.exit_code == 0 and "impossible" in done.output and "MKL on a Ryzen" in done.output
    assert len(json.loads(run("--json").output)["reports"]) == 6


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(SHIPPED.read_text(encoding="utf-8").replace("five networks", "mine"), encoding="utf-8")
    done = run(path)
    assert done.exit_code == 0 and "mine, batch 4 and 64" in done.output


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["torn.toml"], 2, "is no TOML, or torn"),
        (["none.toml"], 3, "none.toml"),
        (["torn.toml", "torn.toml"], 2, "takes one file"),
        (["--model", "mnist"], 2, "measures nothing"),
        (["--contender", "cuda"], 2, "measures nothing"),
        (["--batches", "1,2,3,4"], 2, "measures nothing"),
        (["--page", "page.html"], 2, "measures nothing"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("torn.toml").write_text(SHIPPED.read_text(encoding="utf-8")[:1500], encoding="utf-8")
    done = run(*arguments)
    assert done.exit_code == code and sentence in done.output and "Traceback" not in done.output
    assert len(done.output.splitlines()) == 1


@pytest.mark.parametrize("command", [check for report in read().reports for check in report.checks])
def test_what_would_tell_can_be_run(command: str) -> None:
    name, *words = shlex.split(command)
    assert name == "accel-micro"
    assert {word for word in words if word.startswith("-")} <= accel_micro_options(words)
