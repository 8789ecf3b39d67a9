"""The real asv over builds whose wheels hold next to nothing."""

import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from accel_micro.builds import Ledger, identify
from accel_micro.builds.interpreters import find_interpreter
from tests.asv_plugin.builds import DAY, INIT, OPS, Builds, samples
from tests.asv_plugin.conftest import Suite, press_ctrl_c, wait_for
from tests.builds.fake_torch import HERE

pytestmark = pytest.mark.slow

FAST, SLOW = 1e-3, 2e-3


@pytest.fixture
def builds(suite: Suite, uv_cache: Path) -> Builds:
    suite.environment["UV_CACHE_DIR"] = str(uv_cache)
    made = Builds(suite, Path(suite.environment["ACCEL_MICRO_INDEXES"]))
    (suite.path / "benchmarks" / "ops.py").write_text(OPS)
    return made


def test_a_range_is_measured_compared_and_published(builds: Builds) -> None:
    for day in (1, 2, 3, 4, 6, 7, 8):
        builds.nightly(day, FAST if day < 6 else SLOW, git=f"{day:040x}")
    done = builds.asv("run", "20261101..20261107", "--interleave-rounds", "-a", "rounds=2")
    assert done.code == 0, done.output
    assert "5 of 5 builds of torch can be run here: 2.15.0.dev20261102 to 2.15.0.dev20261107" in done.output
    assert "No nightly is known of 2026-11-05" in done.output
    assert done.output.count("Installed torch") == 5, "rounds take turns, and no build is installed twice"
    found = builds.results()
    assert sorted(found) == ["20261102", "20261103", "20261104", "20261106", "20261107"]
    for start, result in found.items():
        values = samples(result)
        assert len(values) == 40, "twenty of each process"
        assert values[0] == pytest.approx(FAST if start < "20261106" else SLOW)
        assert result["env_name"] == f"torch-py{result['python']}"
        assert result["commit_hash"] == identify(f"2.15.0.dev{start}").id
    ledger = Ledger.beside(builds.suite.results)
    assert ledger.resolve("20261106").git_version == f"{6:040x}", "installing told it"
    headers = [
        json.loads(line) for line in builds.suite.machine_file("sessions.jsonl").read_text().splitlines()
    ]
    assert {header["torch"]["build"]["version"] for header in headers} == {
        DAY.format(day) for day in (2, 3, 4, 6, 7)
    }
    lines = [
        json.loads(line) for line in builds.suite.machine_file("installs.jsonl").read_text().splitlines()
    ]
    assert len(lines) == 5
    assert all(line["uv_seconds"] > 0 and line["own_bytes"] > 0 and line["failure"] is None for line in lines)

    compared = builds.asv("compare", "20261104", "20261106")
    assert "2.00" in compared.output, compared.output
    again = builds.asv("run", "20261106^!")
    assert again.code == 0
    assert "Installing" not in again.output

    published = builds.asv("publish")
    assert published.code == 0, published.output
    html = builds.suite.path / "html"
    regressions = json.loads((html / "regressions.json").read_text())["regressions"]
    index = json.loads((html / "index.json").read_text())
    hashes = {int(revision): build for revision, build in index["revision_to_hash"].items()}
    jumps = [(hashes[at][:8], before, after) for entry in regressions for _, at, before, after in entry[6]]
    assert [(start, round(after / before, 1)) for start, before, after in jumps] == [("20261106", 2.0)]
    page = (html / "builds.html").read_text()
    assert f'compare/{4:040x}...{6:040x}">since 2.15.0.dev20261104</a>' in page


def test_torch_is_imported_once_for_a_build_that_is_there(builds: Builds) -> None:
    """By the server of its processes, which says too what there is; unless they are to be spawned, or it cannot say."""
    log = builds.suite.path / "imports"
    note = f"import sys\nopen({str(log)!r}, 'a').write(__version__[-8:] + repr(sys.argv[:2]) + '\\n')\n"
    init = INIT.format(seconds=FAST)
    for day in (1, 2, 3):
        own = "if 'run_server' in sys.argv: del backends\n" if day == 1 else ""  # it cannot look for devices
        builds.nightly(day, init=init + note + own)

    def imports(day: int) -> dict[str, int]:
        lines = [line for line in log.read_text().splitlines() if f"{day:02}+cpu" in line]
        kinds = ("run_server", "prepare", "discover", "['-c'", "'run'")  # of what a process was told to do
        return {kind: found for kind in kinds if (found := sum(kind in line for line in lines))}

    assert builds.asv("run", "20261031..20261103", "-a", "rounds=1").code == 0
    log.unlink()
    done = builds.asv("run", "20261031..20261103", "-a", "rounds=2", "--interleave-rounds")
    assert done.code == 0, done.output
    assert all(len(samples(result)) == 40 for result in builds.results().values())
    assert imports(3) == {"discover": 1, "prepare": 1, "run_server": 2}
    assert imports(2) == {"run_server": 2}, "one for each round"
    assert imports(1) == {"run_server": 3, "prepare": 1}
    log.unlink()
    assert builds.asv("run", "20261031..20261103", "-a", "rounds=1", "--launch-method", "spawn").code == 0
    assert imports(2) == {"prepare": 1, "'run'": 1}


def test_the_next_builds_are_made_beside_and_never_while_something_is_timed(builds: Builds) -> None:
    log = builds.suite.path / "order"
    note = f"""
import sys, time
def note(what):
    with open({str(log)!r}, "a") as file:
        file.write(what + "\\n")
if sys.argv[:1] == ["-c"] and sys.flags.isolated:  # imported for the first time, by whoever installs it
    for _ in range(20):
        note("import " + __version__[13:21])
        time.sleep(0.02)
"""
    for day in (1, 2, 3, 4):
        builds.nightly(day, init=INIT.format(seconds=FAST) + note)
    timed = """    torch.note("begin")
    for _ in range(20):
        torch.time.sleep(0.02)
    torch.note("end")
    values"""
    ops = builds.suite.path / "benchmarks" / "ops.py"
    ops.write_text(ops.read_text().replace("    values", timed, 1))
    done = builds.asv("run", "20261031..20261104", "-a", "rounds=1")
    assert done.code == 0, done.output
    assert sorted(builds.results()) == [f"202611{day:02}" for day in (1, 2, 3, 4)]
    assert done.output.count("Installed torch") == 4
    assert "ready ahead; it pauses while something is measured" in done.output
    lines = log.read_text().split("\n")
    imports = [line for line in lines if line.startswith("import")]
    assert len(imports) == 4 * 20
    assert [line for line, _ in groupby(imports)] != sorted(set(imports)), "two at once"
    timing = "".join("b" if line == "begin" else "e" if line == "end" else "i" for line in lines if line)
    assert timing.count("be") == 4, f"something was imported while something was timed: {timing}"


def test_what_was_measured_and_removed_is_not_made_again(builds: Builds) -> None:
    for day in (1, 2, 3, 4, 5):
        builds.nightly(day)
    builds.suite.environment["ACCEL_MICRO_ENVIRONMENTS_GB"] = "0"
    done = builds.asv("run", "20261031..20261105", "-a", "rounds=1")
    assert done.code == 0, done.output
    assert sorted(builds.results()) == [f"202611{day:02}" for day in (1, 2, 3, 4, 5)]
    assert "Removed environments not used for longest" in done.output
    ahead = [match.start() for match in re.finditer("ready ahead", done.output)]
    begun = [re.findall(r"dev(\d{8})", done.output[:place])[-1] for place in ahead]
    assert begun and "20261105" not in begun
    for start, place in zip(begun, ahead, strict=True):
        assert place < done.output.index(f"For torch commit {start}")


def test_what_is_broken_or_missing_costs_itself(builds: Builds) -> None:
    for day in (1, 2, 3, 4, 6, 7, 8):
        builds.nightly(day)
    builds.nightly(5, tag="cp39-cp39-linux_x86_64")
    first = builds.asv("run", "20261103^!")
    assert first.code == 0, first.output
    (before,) = builds.suite.results.glob("*/20261103-torch*.json")
    content = before.read_text()
    for environment in builds.environments().values():
        shutil.rmtree(environment)
    truncated = builds.nightly(3)
    truncated.write_bytes(truncated.read_bytes()[:900])
    builds.nightly(4, says="2.14.0")
    builds.nightly(8).unlink()
    builds.nightly(6, init="from torch.version import __version__, git_version\nseconds = 1\n")  # no devices
    done = builds.asv("run", "20261101..20261108", "--interleave-rounds", "-a", "rounds=2")
    assert done.code == 2, done.output
    assert "Traceback" not in done.output
    assert sorted(builds.results()) == ["20261102", "20261103", "20261107"]
    for start in ("20261102", "20261107"):
        assert len(samples(builds.results()[start])) == 40
    assert before.read_text() == content, "what was measured before stays"
    assert "Left out: no wheel of torch 2.15.0.dev20261105 is known for Python" in done.output
    assert re.search(r"Left out: .*20261108.*is no longer at file:", done.output), done.output
    tried = done.output.count("Installing") + done.output.count("ready ahead")
    assert tried == 5, "what failed is not tried again in the next round"
    for day, why in (
        (3, "zip|archive|directory record"),
        (4, r"torch\.__version__ says 2\.14\.0"),
        (6, "devices"),
    ):
        assert re.search(rf"Not measured: .*202611{day:02}.*({why})", done.output), done.output
    again = builds.asv("run", "20261101..20261107", "-a", "rounds=1")
    assert "Installing" not in again.output, "what is broken is remembered"
    assert re.search(
        r"Left out: .*20261103.*could not be installed|Left out: .*20261103.* is broken", again.output
    )
    builds.nightly(3)
    builds.suite.environment["ACCEL_MICRO_RETRY"] = "1"
    retried = builds.asv("run", "20261103^!")
    assert retried.code == 0, retried.output
    assert builds.asv("publish").code == 0
    page = (builds.suite.path / "html" / "builds.html").read_text()
    assert "torch.__version__ says 2.14.0" in page


def test_find_steps_over_what_cannot_be_had(builds: Builds) -> None:
    for day in range(1, 10):
        builds.nightly(day, FAST if day < 7 else SLOW)
    middle = builds.nightly(5)
    middle.write_bytes(middle.read_bytes()[:500])
    done = builds.asv("find", "20261101..20261109", "ops.plain.time_forward")
    assert done.code == 0, done.output
    assert "Greatest regression found: 20261107 <2.15.0.dev20261107>" in done.output
    assert re.search(r"Not measured: .*20261105", done.output), done.output


def test_two_builds_are_compared_at_once(builds: Builds) -> None:
    builds.nightly(1, FAST)
    builds.wheel("2.14.1+cpu", SLOW)
    refused = builds.asv("continuous", "2.14.1", "2.99.0", "-b", "plain")
    assert refused.code != 0
    assert "2.99.0" in refused.output
    done = builds.asv("continuous", "20261101", "2.14.1", "-b", "plain")
    assert "2.00" in done.output, done.output
    assert "PERFORMANCE DECREASED" in done.output
    assert {len(samples(result)) for result in builds.results().values()} == {20}
    builds.wheel("2.14.2+cpu", tag="cp39-cp39-linux_x86_64")
    lacking = builds.asv("continuous", "20261101", "2.14.2")
    assert lacking.code != 0
    assert "PERFORMANCE" not in lacking.output
    assert "2.14.2" in lacking.output


def test_new_builds_steps_and_periods(builds: Builds) -> None:
    for day in range(1, 9):
        builds.nightly(day)
    assert builds.asv("run", "nightly", "--date-period", "3d").code == 0
    assert sorted(builds.results()) == ["20261101", "20261104", "20261107"]
    builds.nightly(10)
    assert builds.asv("run", "NEW").code == 0
    assert sorted(builds.results())[-2:] == ["20261108", "20261110"]
    assert builds.asv("run", "20261101..20261107", "--steps", "2").code == 0
    builds.wheel("2.14.0+cpu")
    builds.wheel("2.14.1+cpu")
    tags = builds.asv("run", "TAGS", "--no-pull")
    assert "no build is in TAGS" in tags.output, "unknown without asking the index"
    assert builds.asv("run", "TAGS").code == 0
    found = [start for start in builds.results() if start.startswith("2a14")]
    assert len(found) == 2, "named by their ids, which publishing understands"


def test_an_index_that_is_down_costs_nothing_known(builds: Builds) -> None:
    builds.nightly(1)
    assert builds.asv("run", "nightly", "-a", "rounds=1").code == 0
    wheel = next(builds.index.iterdir())
    elsewhere = builds.index.with_name("moved")
    builds.index.rename(elsewhere)
    done = builds.asv("run", "20261101^!")
    assert done.code == 0, done.output
    assert "Going on with what the ledger knows" in done.output
    shutil.rmtree(builds.environments()["20261101"])
    gone = builds.asv("run", "20261101^!")
    assert gone.code == 3, gone.output
    assert "Traceback" not in gone.output
    assert wheel.name in gone.output or "20261101" in gone.output
    unknown = builds.asv("run", "20261201..2.99.0")
    assert unknown.code != 0
    assert "no build is called '2.99.0'" in unknown.output


def test_killed_while_installing(builds: Builds) -> None:
    slow = builds.suite.path / "slow"
    slow.touch()
    wait = f"import os, time\nwhile os.path.exists({str(slow)!r}): time.sleep(0.01)\n"
    builds.nightly(1, init=wait + INIT.format(seconds=FAST))
    process = builds.suite.start("run", "nightly")
    folder = builds.suite.path / "env" / "builds"
    wait_for(lambda: bool(list(folder.glob(".partial-*/lib/*/site-packages/torch"))))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    slow.unlink()
    done = builds.asv("run", "nightly")
    assert done.code == 0, done.output
    assert sorted(builds.results()) == ["20261101"]
    assert not list(folder.glob(".partial-*"))


def test_ctrl_c_while_installing(builds: Builds) -> None:
    slow = builds.suite.path / "slow"
    slow.touch()
    wait = f"import os, time\nwhile os.path.exists({str(slow)!r}): time.sleep(0.01)\n"
    builds.nightly(1, init=wait + INIT.format(seconds=FAST))
    process = builds.suite.start("run", "nightly")
    folder = builds.suite.path / "env" / "builds"
    wait_for(lambda: bool(list(folder.glob(".partial-*/lib/*/site-packages/torch"))))
    press_ctrl_c(process)
    output = process.communicate(timeout=30)[0]
    assert process.returncode not in (0, None)
    assert "Traceback" not in output
    assert "interrupted" in output.lower()
    assert not list(folder.glob(".partial-*"))


def test_two_runs_at_once_share_environments(builds: Builds) -> None:
    builds.nightly(1)
    builds.nightly(2)
    first = builds.suite.start("run", "20261101^!", "-n")
    second = builds.suite.start("run", "20261101^!", "-n")
    outputs = [process.communicate(timeout=240)[0] for process in (first, second)]
    assert sum("Installed torch" in output for output in outputs) == 1
    codes = sorted(process.returncode for process in (first, second))
    assert codes in ([0, 0], [0, 3]), "the second waits for the installation, and may find the device in use"


def test_machines_with_other_indexes_publish_as_one_history(builds: Builds, tmp_path: Path) -> None:
    for day in (1, 2, 3):
        builds.nightly(day, FAST)
    assert builds.asv("run", "nightly", "--machine", "alpha").code == 0
    shutil.rmtree(builds.index)
    (builds.suite.results / "builds.jsonl").rename(tmp_path / "alpha.jsonl")
    for day in (3, 4):
        builds.nightly(day, SLOW, tag=None)
    builds.wheel("2.14.1+cpu", FAST)
    assert builds.asv("run", "ALL", "--machine", "beta").code == 0
    ledger = builds.suite.results / "builds.jsonl"
    ledger.write_text((tmp_path / "alpha.jsonl").read_text() + ledger.read_text())
    published = builds.asv("publish")
    assert published.code == 0, published.output
    assert "Couldn't find" not in published.output
    html = builds.suite.path / "html"
    index = json.loads((html / "index.json").read_text())
    order = [index["revision_to_hash"][key][:8] for key in sorted(index["revision_to_hash"], key=int)]
    assert [start for start in order if start[0:4] == "2026"] == [f"2026110{day}" for day in (1, 2, 3, 4)]
    assert len(order) == 5
    assert index["params"]["machine"] == ["alpha", "beta"]
    page = (html / "builds.html").read_text()
    row = page.partition(f'<tr id="{identify("2.15.0.dev20261103").id}">')[2].partition("<tr")[0]
    assert "alpha: 1 case<br>beta: 1 case<br>" in row


def test_another_python(builds: Builds) -> None:
    other = next((path for path in _pythons() if path != Path(sys.executable)), None)
    if other is None:
        pytest.skip("there is no other Python here")
    interpreter = find_interpreter(str(other))
    plain = interpreter.tag.removesuffix("t")
    builds.nightly(1, tag=f"{plain}-{interpreter.tag}-linux_x86_64")
    here = builds.asv("run", "nightly")
    assert here.code == 3
    assert f"no wheel of torch 2.15.0.dev20261101 is known for Python {HERE.python} here" in here.output
    done = builds.asv("run", "nightly", "-E", f"torch:{other}")
    assert done.code == 0, done.output
    assert builds.results()["20261101"]["python"] == interpreter.python


def _pythons() -> Iterator[Path]:
    """Other versions of Python on this machine, as far as they are where they usually are."""
    for minor in (10, 12, 13, 14):
        for folder in ("/usr/bin", "/usr/local/bin"):
            path = Path(folder) / f"python3.{minor}"
            if path.exists():
                yield path
        yield from sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3.{minor}"))
