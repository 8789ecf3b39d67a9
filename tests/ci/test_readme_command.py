"""The README's commands are what CI runs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "readme_command.py"

README = """# A project

<!-- quick-command -->
```sh
one && two
```

Some words.

<!-- test-command -->

```
three \\
  --four
```
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], cwd=folder, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("name", "expected"), [("quick-command", "one && two"), ("test-command", "three \\\n  --four")]
)
def test_a_command_is_printed_as_it_stands(tmp_path: Path, name: str, expected: str) -> None:
    (tmp_path / "README.md").write_text(README)
    done = run(tmp_path, name)
    assert (done.returncode, done.stdout) == (0, expected + "\n")


@pytest.mark.parametrize(
    ("readme", "name", "complaint"),
    [
        (README, "build-command", "0 blocks behind 0 markers"),
        (README + README, "test-command", "2 blocks behind 2 markers"),
        (README.replace("```sh\n", ""), "quick-command", "0 blocks behind 1 markers"),
        ("<!-- test-command -->\nSome words.\n```\nrm\n```\n", "test-command", "0 blocks behind 1 markers"),
    ],
)
def test_a_readme_without_just_one_command_fails(
    tmp_path: Path, readme: str, name: str, complaint: str
) -> None:
    (tmp_path / "README.md").write_text(readme)
    done = run(tmp_path, name)
    assert done.returncode == 1
    assert complaint in done.stderr


def test_without_a_readme_or_a_name_it_fails(tmp_path: Path) -> None:
    assert run(tmp_path, "test-command").returncode == 1
    (tmp_path / "README.md").write_text(README)
    assert run(tmp_path).returncode == 1


@pytest.mark.parametrize("name", ["quick-command", "test-command"])
def test_the_readme_has_the_commands_that_ci_runs(name: str) -> None:
    done = run(ROOT, name)
    assert done.returncode == 0, done.stderr
    assert f"readme_command.py {name}" in (ROOT / ".ci" / "run").read_text()
