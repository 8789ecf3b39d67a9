"""Guards for what asv_runner may change under us, in a process that has asv_runner and nothing of asv."""

import json
import re
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
import pytest

from accel_micro.asv_plugin.timing import MeasurementFailed, OpTimeBenchmark, install
from accel_micro.builds.installing import BESIDE
from accel_micro.catalogue.toml import read as read_toml
from accel_micro.measure import Process
from accel_micro.measure.records import Failure, Record
from accel_micro.suite import op
from tests.asv_plugin.conftest import CHECKOUT, FAKE, INIT


@op(
    quick=["n=1"],
    backward=False,
    unsupported=lambda device, **_: "needs another moon" if device == "xla" else None,
)
def fake(t: Any, n: int) -> Any:
    """Not called: `run` is replaced."""
    return lambda: None


class Plain:
    """An ordinary asv benchmark."""

    def setup(self) -> None:
        self.ready = True

    def time_nothing(self) -> None:
        assert self.ready


class Answering(fake):  # type: ignore[misc, valid-type]
    """An op whose process answers what it is told to."""

    answer: Any = None
    asked: dict[str, Any]

    def setup(self, device: str, dtype: str, shape: str) -> None:
        """As the suite's, without asking the machine for its devices."""
        reason = self.op.why_unsupported(device, dtype, shape)
        if reason:
            raise NotImplementedError(reason)

    def run(self, direction: str, *parameters: str, **asked: Any) -> Record:
        """Give the answer, or raise it."""
        type(self).asked = asked
        if isinstance(self.answer, BaseException):
            raise self.answer
        record = self.answer(self.case(direction, *parameters), asked)
        assert isinstance(record, Record)
        return record


def read_all_clocks(case: Any, asked: dict[str, Any]) -> Record:
    values = tuple(1e-3 + 1e-6 * i for i in range(asked["samples"] or 20))
    return Record(
        case, {c: Process("cpu", c, values, values, (1.0,) * len(values), 7) for c in asked["clocks"]}
    )


def benchmark(answer: Any, device: str = "cpu", method: str = "time_forward", **extra: Any) -> Any:
    instance = Answering()
    Answering.answer = staticmethod(answer) if callable(answer) else answer

    class Extra:
        pass

    for key, value in extra.items():
        setattr(Extra, key, value)
    made = OpTimeBenchmark(f"f.fake.{method}", getattr(instance, method), [Extra, instance])
    made._current_params = (device, "float32", "n=1")
    return made


@pytest.fixture(autouse=True)
def _no_oom_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel_micro.asv_plugin.timing._be_killed_first", lambda: None)


def test_the_type_is_the_first_that_asv_runner_asks() -> None:
    from asv_runner.benchmarks import benchmark_types

    install()
    install()
    assert benchmark_types[0] is OpTimeBenchmark
    assert benchmark_types.count(OpTimeBenchmark) == 1


def test_samples_of_its_own_clock() -> None:
    made = benchmark(read_all_clocks, method="time_forward_device")
    assert made.do_setup() is False
    result = made.do_run()
    assert Answering.asked["clocks"] == ["device"]
    assert len(result["samples"]) == 20
    assert result["number"] == 7, "asv_runner's own loop would have set it to 1: there is a setup"


def test_quick_takes_one_sample() -> None:
    made = benchmark(read_all_clocks, number=1, repeat=1, warmup_time=0)
    made.do_setup()
    assert len(made.do_run()["samples"]) == 1


def test_several_clocks_in_one_record(tmp_path: Path) -> None:
    spool = tmp_path / "record.json"
    process = {"clocks": ["throughput", "device"], "spool": str(spool)}
    result = benchmark(read_all_clocks, accel_micro_process=process).do_run()
    record = Record.from_json(json.loads(spool.read_text()))
    assert list(record.clocks) == ["throughput", "device"]
    assert list(record.clocks["throughput"].samples) == result["samples"]
    assert list(tmp_path.iterdir()) == [spool]


def failing(case: Any, _: Any) -> Record:
    return Record(case, failure=Failure("wrong result", "relative error 1"))


@pytest.mark.parametrize(
    ("answer", "kind", "detail"),
    [
        (failing, "wrong result", "relative error 1"),
        (MemoryError("none left"), "out of memory", "none left"),
        (ZeroDivisionError("by 0"), "failed", "ZeroDivisionError: by 0"),
    ],
)
def test_failures_are_recorded_and_raised(tmp_path: Path, answer: Any, kind: str, detail: str) -> None:
    spool = tmp_path / "record.json"
    made = benchmark(answer, accel_micro_process={"spool": str(spool)})
    with pytest.raises(MeasurementFailed, match=f"^{kind}: {detail}$"):
        made.do_run()
    assert Record.from_json(json.loads(spool.read_text())).failure == Failure(kind, detail)


def test_what_does_not_exist_here_is_skipped_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from asv_runner.benchmarks.mark import SkipNotImplemented

    spool = tmp_path / "record.json"
    process = {"spool": str(spool)}
    assert benchmark(read_all_clocks, device="xla", accel_micro_process=process).do_setup() is True
    assert Record.from_json(json.loads(spool.read_text())).skipped == "needs another moon"
    assert "needs another moon" in capsys.readouterr().out
    with pytest.raises(SkipNotImplemented, match="no kernel"):
        benchmark(lambda case, _: Record(case, skipped="no kernel")).do_run()
    with pytest.raises(SkipNotImplemented, match="cpu has no device clock"):
        benchmark(lambda case, _: Record(case), method="time_forward_device").do_run()


def test_other_benchmarks_are_timed_as_ever() -> None:
    plain = Plain()
    made = OpTimeBenchmark("f.Plain.time_nothing", plain.time_nothing, [plain])
    assert made.do_setup() is False
    assert made.do_run()["samples"]


def run_child(folder: Path, code: str) -> str:
    benchmarks = folder / "benchmarks"
    benchmarks.mkdir()
    (benchmarks / "__init__.py").write_text(INIT)
    (benchmarks / "ops.py").write_text(FAKE + "\n\n@op(quick=['n=1'])\ndef good(t, n):\n    pass\n")
    # numpy's OpenBLAS starts its threads when imported, and starts them anew after a fork: not our matter.
    environment = {"PYTHONPATH": str(CHECKOUT), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


def test_importing_a_suite_starts_no_thread_that_a_fork_would_lose(tmp_path: Path) -> None:
    code = """
import os, sys
sys.argv[1:] = ["run_server"]  # as asv starts its fork server
from asv_runner.discovery import disc_benchmarks
from asv_runner._aux import update_sys_path
update_sys_path("benchmarks")
names = [b.name for b in disc_benchmarks("benchmarks")]
import sys, torch
assert "asv" not in sys.modules, "asv is not installed in benchmark environments"
assert not torch.cuda.is_initialized()
assert {"torch._dynamo", "accel_micro.measure.case"} <= set(sys.modules), "every case would import them anew"
threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
print(len(names), threads)
"""
    assert run_child(tmp_path, code) == "8 1"


def test_asv_runner_runs_an_op_through_us(tmp_path: Path) -> None:
    code = """
import json
from asv_runner.run import _run
_run(("benchmarks", "ops.good.time_forward-0", "{}", "None", "result.json"))
print(json.load(open("result.json"))["number"])
"""
    assert run_child(tmp_path, code) == "7"


def test_discovery_carries_the_facts_that_the_selection_needs(tmp_path: Path) -> None:
    code = """
from asv_runner.discovery import _discover
_discover(("benchmarks", "found.json"))
print(open("found.json").read())
"""
    found = {entry["name"]: entry for entry in json.loads(run_child(tmp_path, code))}
    facts = found["ops.good.time_backward_latency"]["accel_micro"]
    assert (facts["op"], facts["direction"], facts["clock"]) == ("ops.good", "backward", "latency")
    assert facts["shapes"]["quick"] == ["n=1"]
    assert len({entry["version"] for entry in found.values()}) == 1


SERVER = """
import os, subprocess, sys, time
from accel_micro.asv_plugin import timing
timing.SECONDS_BETWEEN_LOOKS = 0.05
os.setpgid(0, 0)  # as asv starts it
timing.leave_with(os.getppid())
case = os.fork()
if case == 0:
    time.sleep(60)
    os._exit(0)
print(os.getpid(), case, flush=True)
while True:
    os.waitpid(case, 0)
"""

RUN = """
import subprocess, sys, time
server = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
print(server.stdout.readline(), end="", flush=True)
time.sleep(60)
"""


def test_a_server_and_its_case_end_with_the_run_that_was_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", RUN, SERVER], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        processes = [psutil.Process(int(number)) for number in run.stdout.readline().split()]
        time.sleep(0.3)
        assert [process.is_running() for process in processes] == [True, True], "a run that lives keeps them"
        run.kill()
    gone, alive = psutil.wait_procs(processes, timeout=20)
    assert len(gone) == 2 and not alive


def test_packages_that_hold_no_benchmarks_are_not_searched(tmp_path: Path) -> None:
    """Nor imported: they may need what the environments of builds do not have."""
    code = """
from asv_runner.discovery import disc_benchmarks
for package in ("more", "harness"):
    path = Path("benchmarks", package)
    path.mkdir()
    (path / "__init__.py").write_text("DISCOVERED = False" if package == "harness" else "")
    (path / "some.py").write_text("class Some:\\n    def time_it(self):\\n        pass\\n")
for _ in range(2):
    names = {b.name for b in disc_benchmarks("benchmarks")}
    assert "more.some.Some.time_it" in names
    assert not any("harness" in name for name in names), names
    assert "benchmarks.harness.some" not in sys.modules
print("searched")
"""
    assert run_child(tmp_path, "import sys\nfrom pathlib import Path\n" + code) == "searched"


def test_the_suite_needs_nothing_that_environments_of_builds_lack(tmp_path: Path) -> None:
    """They have torch and `BESIDE`. The other things that accel_micro depends on are on this machine, and refused."""
    code = """
import json, sys
refused = set(json.loads(sys.argv.pop()))

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name in refused:
            raise ModuleNotFoundError(f"No module named {name!r}, as in the environment of a build")

sys.meta_path.insert(0, Refusing())
from asv_runner._aux import update_sys_path
from asv_runner.discovery import disc_benchmarks
update_sys_path(sys.argv.pop())
names = {b.name for b in disc_benchmarks("benchmarks")}
assert {"matmul.mm.time_forward", "models.training_step.time_forward"} <= names, names
print("found")
"""
    beside = {re.split(r"[<>=]", requirement)[0].lower().replace("-", "_") for requirement in BESIDE}
    modules = {
        file.parts[0].removesuffix(".py")
        for distribution in metadata.distributions()
        if distribution.metadata["Name"].lower().replace("-", "_") in _dependencies() - beside
        for file in distribution.files or ()
        if file.suffix == ".py" and file.parts[0] != ".."
    }
    assert {"asv", "rich", "scipy", "typer"} <= modules and not modules & {"torch", "numpy", "asv_runner"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(CHECKOUT / "benchmarks"), json.dumps(sorted(modules))],
        cwd=tmp_path,
        env={"PYTHONPATH": str(CHECKOUT), "OPENBLAS_NUM_THREADS": "1", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["found"]


def _dependencies() -> set[str]:
    """Distributions that accel_micro needs, without torch."""
    named = read_toml(CHECKOUT / "pyproject.toml")["project"]["dependencies"]
    names = {re.split(r"[^A-Za-z0-9._-]", requirement)[0] for requirement in named}
    return {name.lower().replace("-", "_") for name in names} - {"torch"}
