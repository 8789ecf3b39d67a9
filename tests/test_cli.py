"""The command line: what commands print, and with which exit code they end."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from accel_micro import doctor
from accel_micro.cli import app
from tests.doctor.machines import CLEAN, TORCH, changed

run = CliRunner().invoke


def test_help_loads_neither_torch_nor_scipy() -> None:
    code = (
        "import sys, accel_micro.cli\n"
        "try: accel_micro.cli.app(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'scipy', 'numpy', 'psutil'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "doctor" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("change", "code"), [({}, 0), ({"cpu.governor": "powersave"}, 0), ({"load.steal": 0.5}, 3)]
)
def test_doctor_exits_with_3_when_timings_mean_nothing(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, object], code: int
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda interval: (changed(CLEAN, change), TORCH))
    done = run(app, ["doctor"])
    assert done.exit_code == code
    assert "NVIDIA H100" in done.output


def test_doctor_for_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "examine", lambda interval: (changed(CLEAN, {"load.steal": 0.5}), TORCH))
    done = run(app, ["doctor", "--format", "json"])
    assert done.exit_code == 3
    assert [finding["name"] for finding in json.loads(done.output)["findings"]] == ["stolen CPU time"]


def test_a_fault_of_ours_is_no_regression_and_no_wrong_use() -> None:
    """Python's own exit code for it is that of `compare --fail-on regression`."""
    code = (
        "import sys, accel_micro.doctor, accel_micro.cli\n"
        "accel_micro.doctor.examine = lambda interval: 1 / 0\n"
        "sys.argv = ['accel-micro', 'doctor']\n"
        "accel_micro.cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 70 and done.stdout == ""
    assert "ZeroDivisionError" in done.stderr
    assert done.stderr.endswith(
        "a fault of accel-micro itself; the text above belongs in the report of it.\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["doctor", "--format", "xml"],
        ["doctor", "--interval", "-1"],
        ["heal"],
        ["preview", "--port", "65536"],
    ],
)
def test_wrong_use_exits_with_2(arguments: list[str]) -> None:
    assert run(app, arguments).exit_code == 2


@pytest.mark.parametrize("command", ["quick", "compare", "report", "builds"])
def test_a_folder_that_cannot_be_made_is_named_in_a_sentence(command: str, tmp_path: Path) -> None:
    """A file lies where the folder should be: that stops root too."""
    (tmp_path / "file").write_text("")
    words = {"quick": ["quick"], "compare": ["compare", "a", "b"], "report": ["report"]}
    words["builds"] = ["builds", "sync", "--index", str(tmp_path)]
    done = run(app, [*words[command], "--out", str(tmp_path / "file" / "out")])
    assert done.exit_code in (2, 3), done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert done.stderr.startswith("accel-micro: ") and "Errno" not in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["compare", "--history"], 3, "holds no results yet; run `accel-micro quick` or `asv run`"),
        (["bisect", "log"], 2, "there are no bisections yet; `accel-micro bisect BENCHMARK` begins one"),
        (["builds", "show", "nightly"], 2, "no nightly build is known yet; `accel-micro builds sync`"),
        (["report"], 3, "holds no results yet"),
        (["preview"], 3, "holds no pages yet; run `accel-micro quick` or `asv publish`"),
    ],
)
def test_where_nothing_is_yet_the_next_step_is_told(
    words: list[str], code: int, said: str, tmp_path: Path
) -> None:
    done = run(app, [*words, "--out", str(tmp_path)])
    assert done.exit_code == code, done.output
    assert said in done.stderr


@pytest.mark.parametrize(
    ("device", "code", "said"), [("gpu", 2, "unknown device 'gpu'"), ("mps", 3, "mps needs macOS")]
)
def test_a_side_that_is_not_here_is_told_before_the_other_is_measured(
    device: str, code: int, said: str
) -> None:
    if device == "mps" and sys.platform == "darwin":
        pytest.skip("it may be here")
    done = run(app, ["explain", "--model", "mnist", "--contender", device])
    assert done.exit_code == code, done.output
    assert said in done.stderr and "process 1" not in done.stderr


@pytest.mark.parametrize("words", [["capture", "mnist", "--out"], ["coverage"]])
def test_a_file_that_cannot_be_written_is_told_before_minutes_are_spent(
    words: list[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    done = run(app, [*words, str(tmp_path / "file" / "page")])
    assert done.exit_code == 3, done.output
    assert done.stderr == f"accel-micro: {tmp_path / 'file'}: File exists\n"


@pytest.mark.parametrize(
    "words", [["ops"], ["coverage"], ["reproduce", "mm"], ["selfcheck"], ["capture", "mnist", "-o", "x.json"]]
)
def test_without_torch_the_remedy_is_told(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    done = run(app, words)
    assert done.exit_code == 3, done.output
    assert (
        done.stderr
        == f"accel-micro: {sys.executable} has no torch; install it: {sys.executable} -m pip install torch\n"
    )
