"""`accel-micro coverage` on the suite of this project."""

import re
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from accel_micro.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"


@pytest.mark.slow
def test_the_page_is_what_the_command_makes(tmp_path: Path) -> None:
    made = tmp_path / "coverage.md"
    done = CliRunner().invoke(app, ["coverage", str(made)])
    assert done.exit_code == 0, done.output
    print(done.stderr)  # what is missing, for whoever reads the failure
    assert "no longer so: " not in done.stderr
    if version(PAGE) != torch.__version__.partition("+")[0]:
        pytest.skip(f"the page is of torch {version(PAGE)}: another torch may run other operators")
    assert made.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8"), (
        "docs/coverage.md is not what `accel-micro coverage docs/coverage.md` makes"
    )


def version(page: Path) -> str:
    found = re.search(r"with\s+torch\s+([\d.]+\d)", page.read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def test_a_suite_without_lists_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    config = tmp_path / "asv.conf.json"
    text = (PAGE.parents[1] / "asv.conf.json").read_text(encoding="utf-8")
    config.write_text(re.sub(r'"benchmark_dir": *"[^"]*"', '"benchmark_dir": "suite"', text))
    assert '"benchmark_dir": "suite"' in config.read_text()
    done = CliRunner().invoke(app, ["coverage", "--config", str(config)])
    assert done.exit_code == 3
    assert "reasons.toml" in done.stderr and done.stdout == ""
