"""`accel-micro bisect` on builds that answer at once, through the real asv, real environments and real processes."""

import json
import os
import re
import signal
from pathlib import Path

import psutil
import pytest

from tests.asv_plugin.builds import INIT, OPS, Builds
from tests.asv_plugin.conftest import Suite, press_ctrl_c, wait_for
from tests.end_to_end.bisecting import Bisecting

pytestmark = pytest.mark.slow

CULPRIT, BROKEN = 6, 5
FAST, SLOW = 1e-3, 1.3e-3
RANGE = ("--good", "20261101", "--bad", "20261109")
CASE = "ops.plain.time_forward('cpu', 'float32', 'n=1')"


@pytest.fixture
def bisecting(suite: Suite, uv_cache: Path) -> Bisecting:
    suite.environment["UV_CACHE_DIR"] = str(uv_cache)
    builds = Builds(suite, Path(suite.environment["ACCEL_MICRO_INDEXES"]))
    (suite.path / "benchmarks" / "ops.py").write_text(OPS)
    for day in range(1, 10):
        init = INIT.format(seconds=FAST if day < CULPRIT else SLOW)
        builds.nightly(day, git=f"{day:040x}", init="raise ImportError('broken')" if day == BROKEN else init)
    return Bisecting(builds)


def journal(bisecting: Bisecting) -> Path:
    (found,) = (bisecting.builds.suite.results / "bisections").glob("*.jsonl")
    return found


def values(bisecting: Bisecting) -> list[dict[str, object]]:
    lines = journal(bisecting).read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == "values"]


def servers(bisecting: Bisecting) -> list[psutil.Process]:
    """The fork servers of a suite that live."""
    folder = str(bisecting.builds.suite.path)
    lines = ((process, process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
    return [
        process for process, line in lines if "run_server" in line and any(folder in part for part in line)
    ]


def has_values(bisecting: Bisecting, count: int) -> bool:
    found = list((bisecting.builds.suite.results / "bisections").glob("*.jsonl"))
    return bool(found) and found[0].read_text().count('"event":"values"') >= count


def test_a_culprit_is_named_with_the_broken_build_beside_it_and_its_points_are_published(
    bisecting: Bisecting,
) -> None:
    done = bisecting.run(CASE, *RANGE)
    assert done.code == 0, done.output
    assert re.search(r"Time per call: (29\.\d|30\.\d) % slower", done.output)
    assert re.search(r"last good +2\.15\.0\.dev20261104\n", done.output)
    assert re.search(r"first bad +2\.15\.0\.dev20261106\n", done.output)
    assert "suspects too 2.15.0.dev20261105" in done.output
    assert f"compare/{4:040x}...{6:040x}" in done.output
    found = bisecting.builds.results()
    assert {"20261101", "20261104", "20261106", "20261109"} <= set(found), "asv's results have the builds"
    published = bisecting.builds.asv("publish")
    assert published.code == 0, published.output

    replayed = bisecting.run("replay", "--format", "json")
    assert replayed.code == 0, replayed.output
    answer = json.loads(replayed.output)
    (step,) = answer["steps"]
    assert step["good"]["git_version"] == f"{4:040x}"
    suspects = [one["version"].partition("+")[0] for one in step["suspects"]]
    assert suspects == ["2.15.0.dev20261105", "2.15.0.dev20261106"]
    issue = bisecting.run("replay", "--format", "markdown")
    assert "Commits between them" in issue.output
    assert "### Reproducer" in issue.output
    log = bisecting.run("log")
    assert "confirmed: torch 2.15.0.dev20261104 and torch 2.15.0.dev20261106" in log.output


@pytest.mark.parametrize("how", ["killed", "interrupted"])
def test_what_was_measured_survives_and_resume_goes_on(bisecting: Bisecting, how: str) -> None:
    process = bisecting.start(CASE, *RANGE)
    wait_for(lambda: has_values(bisecting, 3), 200)
    assert servers(bisecting)
    if how == "killed":
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        wait_for(lambda: not servers(bisecting), 60)
    else:
        press_ctrl_c(process)
        output = process.communicate(timeout=60)[0]
        assert process.returncode == 130, output
        assert "--resume goes on" in output
        assert "Traceback" not in output
    before = values(bisecting)
    done = bisecting.run("--resume")
    assert done.code == 0, done.output
    assert re.search(r"first bad +2\.15\.0\.dev20261106\n", done.output)
    after = values(bisecting)
    assert after[: len(before)] == before, "nothing is measured again"
    given_up = journal(bisecting).read_text().count('"event":"withdrawn"')
    assert given_up <= 1, "at most the block in flight is lost"


def test_two_workers_share_a_bisection(bisecting: Bisecting, tmp_path: Path) -> None:
    first = bisecting.start(CASE, *RANGE)
    wait_for(lambda: has_values(bisecting, 1), 200)
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    second = bisecting.start("--resume", XDG_RUNTIME_DIR=str(other))  # it holds the CPU of another machine
    outputs = [process.communicate(timeout=280)[0] for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], "\n".join(outputs)
    answers = [re.findall(r"(?:last good|first bad) .*", output) for output in outputs]
    assert answers[0] == answers[1]
    workers = {event["worker"] for event in values(bisecting)}
    assert len(workers) == 2, "both have measured"


def test_a_script_decides_by_its_exit_code_or_its_last_line(bisecting: Bisecting, tmp_path: Path) -> None:
    script = tmp_path / "check.py"
    script.write_text(
        "import sys, torch\n"
        "if '06' in torch.__version__[-8:]: sys.exit(125)\n"
        "print('some words')\nprint(torch.seconds)\n"
        "sys.exit(torch.seconds > 1.1e-3 and len(sys.argv) > 1)\n"
    )
    done = bisecting.run("--script", str(script), "--argument", "judge", *RANGE)
    assert done.code == 0, done.output
    assert "It stopped working with torch 2.15.0.dev20261107" in done.output
    assert "suspects too 2.15.0.dev20261105, 2.15.0.dev20261106" in done.output
    done = bisecting.run("--script", str(script), "--regress", "slower", *RANGE)
    assert done.code == 0, done.output
    assert "% slower with torch 2.15.0.dev20261107" in done.output


def test_an_operator_of_an_explanation_is_searched_between_its_builds(
    bisecting: Bisecting, tmp_path: Path
) -> None:
    side = {"model": "resnet18", "setting": "cpu batch=4", "training": True}
    op = {"kind": "op", "phase": "forward", "label": "convolution", "ops": ["aten.convolution.default"],
          "seconds": -1e-3, "significant": True}  # fmt: skip
    torches = {"baseline": "2.15.0.dev20261102+cpu", "contender": "2.15.0.dev20261108+cpu"}
    data = {name: {**side, "torch": torch} for name, torch in torches.items()} | {"contributions": [op]}
    (tmp_path / "e.json").write_text(json.dumps(data))
    done = bisecting.run("--from-explain", str(tmp_path / "e.json"), "--dry-run")
    assert done.code == 0, done.output
    assert "forward convolution in resnet18 (cpu batch=4)" in done.output
    assert "20261102" in done.output and "20261108" in done.output and "20261109" not in done.output


def test_ends_that_do_not_differ_are_not_reproduced(bisecting: Bisecting) -> None:
    done = bisecting.run(CASE, "--good", "20261101", "--bad", "20261104")
    assert done.code == 4, done.output
    assert done.output.splitlines()[-4].startswith("Not reproduced: torch 2.15.0.dev20261101")
    assert "Traceback" not in done.output


def test_a_good_build_is_looked_for_further_and_further_back(bisecting: Bisecting) -> None:
    done = bisecting.run(CASE)
    assert done.code == 0, done.output
    assert "no change since torch 2.15.0.dev20261107; looking further back" in done.output
    assert re.search(r"first bad +2\.15\.0\.dev20261106\n", done.output)


def test_a_good_end_that_is_slower_than_the_bad_one_is_not_reproduced(bisecting: Bisecting) -> None:
    for day in (10, 11):
        bisecting.builds.nightly(day, git=f"{day:040x}", init=INIT.format(seconds=FAST if day > 10 else SLOW))
    done = bisecting.run(CASE, "--good", "20261110", "--bad", "20261111")
    assert done.code == 4, done.output
    assert "Not reproduced: torch 2.15.0.dev20261110" in done.output
    assert "They differ the other way: --regress faster finds the build that brought it." in done.output
    assert "Traceback" not in done.output


def test_where_no_build_works_there_is_nothing_to_search(bisecting: Bisecting) -> None:
    for day in range(10, 14):
        bisecting.builds.nightly(day, git=f"{day:040x}", init="raise ImportError('broken')")
    done = bisecting.run(CASE, "--good", "20261110", "--bad", "20261113")
    assert done.code == 3, done.output
    assert re.search(r"torch 2\.15\.0\.dev202611\d\d could not be installed: .*broken", done.output)
    assert "--resume" not in done.output, "nothing was measured that could be gone on with"
    assert "Traceback" not in done.output


def test_builds_of_other_variants_and_several_cases_get_a_sentence(bisecting: Bisecting) -> None:
    (bisecting.builds.suite.path / "benchmarks" / "more.py").write_text(
        "import torch\n\nfrom accel_micro.suite import op\n\n\n"
        '@op(quick=["n=1", "n=2"], backward=False)\ndef plainer(t, n):\n    pass\n'
    )
    bisecting.builds.wheel("2.15.0.dev20261110+cu126", git=f"{10:040x}")
    for arguments, said in (
        ((CASE, "--good", "20261101", "--bad", "20261110"), "variant"),
        (("plain", *RANGE), "more.plainer.time_forward('cpu', 'float64', 'n=2')"),
        (("plian", *RANGE), "the nearest names are ops.plain"),
        ((CASE, "--good", "20261101", "--bad", "2.9.9"), "2.9.9"),
    ):
        done = bisecting.run(*arguments)
        assert done.code == 2, done.output
        assert said in done.output
        assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Usage"),
        (("--good", "20261101"), "what is to be bisected?"),
        (("nothing", *RANGE), "no case on cpu matches 'nothing'"),
        ((CASE, "--good", "20261109", "--bad", "20261101"), "is newer than the bad one"),
        ((CASE, "--good", "20261105", "--bad", "20261105"), "both ends are torch 2.15.0.dev20261105"),
        ((CASE, "--good", "20271105"), "no nightly is known of 20271105; the nearest are"),
        ((CASE, *RANGE, "--error-rate", "0.7"), "--error-rate must be"),
        (("--script", "absent.py", *RANGE), "there is no script absent.py"),
        (("--resume", "2031"), "there are no bisections yet"),
        (("log",), "there are no bisections yet"),
        ((CASE, "--from-report"), "holds no results"),
        (("--from-explain", "absent.json"), "absent.json cannot be read"),
        ((CASE, "--from-explain", "absent.json"), "what is to be bisected?"),
        (("--from-explain", "absent.json", "--metric", "memory"), "--metric is for a BENCHMARK"),
        (("--from-explain", "absent.json", "--regress", "error"), "--from-explain times an operator"),
    ],
)
def test_wrong_use_gets_a_sentence(bisecting: Bisecting, arguments: tuple[str, ...], said: str) -> None:
    done = bisecting.run(*arguments)
    assert done.code == 2, done.output
    assert said in done.output
    assert "Traceback" not in done.output
