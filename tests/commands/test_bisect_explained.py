"""An operator that an explanation names becomes the question of a bisection, and its script prints a number."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accel_micro.commands.bisect import NoQuestion, Request
from accel_micro.commands.bisect_explained import build_of, command, with_explained
from accel_micro.explain.capturing import one_op

SCRIPT = one_op.__file__


def contribution(label: str, seconds: float, significant: bool = True, **changed: Any) -> dict[str, Any]:
    ops = [f"aten.{label}.default"]
    return {"kind": "op", "phase": "backward", "label": label, "ops": ops, "seconds": seconds,
            "baseline_seconds": 9e-3 + seconds, "contender_seconds": 9e-3,
            "significant": significant, **changed}  # fmt: skip


def explained(path: Path, *contributions: dict[str, Any], **contender: Any) -> Path:
    side = {
        "model": "resnet18",
        "setting": "cpu batch=4 threads=1",
        "training": True,
        "torch": "2.14.0.dev20261101+cpu",
    }
    data = {
        "baseline": side,
        "contender": {**side, "torch": "2.14.0.dev20261109+cpu", **contender},
        "contributions": list(contributions),
    }
    path.write_text(json.dumps(data))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two operators got slower, one faster; what lies between ops is none."""
    return explained(
        tmp_path / "e.json",
        contribution("mm", -1e-3),
        contribution("convolution_backward", -5e-3),
        contribution("relu", +2e-3),
        contribution("loud", -8.5e-3, significant=False),
        contribution("Python", -8e-3, kind="framework", ops=[]),
        contribution("new", -9e-3, baseline_seconds=0.0),  # a build that never calls it has no time of it
        setting="cpu batch=4 threads=1 python=/somewhere/bin/python",
    )


def test_the_costliest_operator_of_the_contender_is_asked_about(file: Path) -> None:
    found = with_explained(Request(), file, 1, 60.0)
    assert found.script is not None
    assert found.script.arguments == (
        "resnet18", "cpu batch=4 threads=1", "backward", "aten.convolution_backward.default"
    )  # fmt: skip
    assert found.script.numbers and found.script.what.startswith("backward convolution_backward in resnet18")
    assert (found.good, found.bad, found.device) == ("20261101", "20261109", "cpu")
    assert command(found.script).startswith(f"python {SCRIPT} resnet18 'cpu batch=4 threads=1' backward")


@pytest.mark.parametrize(
    ("number", "regress", "label"),
    [(2, "slower", "mm"), (3, "slower", "loud"), (1, "faster", "relu"), (2, "either", "relu")],
)
def test_others_are_asked_for_by_number(file: Path, number: int, regress: Any, label: str) -> None:
    found = with_explained(Request(regress=regress), file, number, 60.0)
    assert found.script is not None and found.script.arguments[3] == f"aten.{label}.default"


@pytest.mark.parametrize(("number", "doubts"), [(1, []), (3, ["backward loud"])])
def test_an_operator_that_was_not_shown_to_differ_is_told(file: Path, number: int, doubts: list[str]) -> None:
    said: list[str] = []
    with_explained(Request(), file, number, 60.0, said.append)
    assert len(said) == len(doubts)
    assert all(
        f"does not show that {doubt} differs" in text for doubt, text in zip(doubts, said, strict=True)
    )


def test_builds_that_were_named_stay_and_inference_is_said(tmp_path: Path) -> None:
    file = explained(tmp_path / "e.json", contribution("mm", -1.0), training=False)
    found = with_explained(Request(good="20261103"), file, 1, 60.0)
    assert (found.good, found.bad) == ("20261103", None)
    assert found.script is not None and found.script.arguments[-1] == "--inference"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"number": 4}, "has no operator 4; there are 3: 1: backward convolution_backward, 2: backward mm"),
        ({"text": "{"}, "is not what `accel-micro explain --json` writes"),
        (
            {"only": {"kind": "op", "ops": ["aten.mm.default"]}},
            "is not what `accel-micro explain --json` writes",
        ),
        ({"text": "[1]"}, "is not what `accel-micro explain --json` writes"),
        ({"text": None}, "cannot be read: No such file"),
        ({"contender": {"torch": "2.14.0.dev20261101+cpu"}}, "both sides of .* ran torch 20261101"),
        ({"contender": {"setting": "cpu batch=none"}}, "has a setting that is none"),
        ({"only": contribution("relu", 1.0)}, "names no operator that takes more time in the contender$"),
        (
            {"only": contribution("new", -1.0, baseline_seconds=0.0)},
            "names no operator that takes more time in the contender and that both builds call$",
        ),
    ],
)
def test_what_cannot_be_asked_gets_a_sentence(file: Path, change: dict[str, Any], said: str) -> None:
    if "text" in change:
        file.unlink() if change["text"] is None else file.write_text(change["text"])
    if "contender" in change or "only" in change:
        explained(file, change.get("only", contribution("mm", -1.0)), **change.get("contender", {}))
    with pytest.raises(NoQuestion, match=said):
        with_explained(Request(), file, change.get("number", 1), 60.0)


def test_builds_are_named_as_their_channels_name_them() -> None:
    assert [build_of(each) for each in ("2.14.0.dev20261105+cpu", "2.13.0", "2.13.0a0+gitabc")] == [
        "20261105", "2.13.0", "2.13.0a0",
    ]  # fmt: skip


def test_the_seconds_of_a_phase_are_those_of_its_own_calls() -> None:
    rows = [
        {"op": "aten.mm.default", "phase": "forward"},
        {"op": "aten.mm.default", "phase": "backward"},
        {"op": "aten.addmm.default", "phase": "backward"},
        {"op": "aten.mm.default", "phase": "backward"},
    ]
    found = {"rows": rows, "reading": {"ops": [1.0, 2.0, 4.0, 8.0]}, "problems": []}
    assert one_op.seconds_of(found, "backward", ["aten.mm.default"]) == 10.0
    assert one_op.seconds_of(found, "backward", ["aten.mm.default", "aten.addmm.default"]) == 14.0
    assert one_op.seconds_of(found, "optimizer", ["aten.mm.default"]) is None
    assert one_op.seconds_of({**found, "reading": {}}, "backward", ["aten.mm.default"]) is None


@pytest.mark.parametrize(
    ("operator", "code"), [("aten.mm.default", 0), ("aten.nothing.default", one_op.SKIP)]
)
def test_the_script_runs_where_this_package_is_not_installed(
    tmp_path: Path, operator: str, code: int
) -> None:
    """From another folder and without its path; a model of one's own lies in that folder."""
    (tmp_path / "mine.py").write_text(
        "from accel_micro.models.registry import build\ndef net(device):\n    return build('mnist', device)\n"
    )
    arguments = ["mine:net", "cpu batch=2 threads=1", "backward", operator, "--budget", "0.1"]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", SCRIPT, *arguments],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    if code:
        assert "the step calls none of aten.nothing.default in backward" in done.stderr
    else:
        assert 0 < float(done.stdout.splitlines()[-1]) < 10.0
