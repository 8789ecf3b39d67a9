"""The small replacements: failures, files, locks, tables, the machine file."""

import json
import math
import multiprocessing
import os
from pathlib import Path
from typing import Any

import asv.results
import asv.util
import pytest
from asv.machine import Machine, MachineCollection
from asv.results import Results
from asv.runner import BenchmarkResult

from accel_micro.asv_plugin import failures, locking, saving, setup
from accel_micro.asv_plugin.errors import DeviceBusy
from accel_micro.measure.records import Failure
from tests.asv_plugin.test_selection import benchmark


@pytest.fixture(autouse=True)
def _plugin() -> None:
    setup()


@pytest.mark.parametrize(
    ("code", "output", "kills", "failure"),
    [
        (-256, "", 0, Failure("timed out", "ended after 300 s")),
        (-9, "", 0, Failure("crashed", "ended by SIGKILL")),
        (-9, "", 1, Failure("out of memory", "the kernel ended the process: the machine's memory is used up")),
        (-11, "a\n\nb\nc\nd\n", 0, Failure("crashed", "ended by SIGSEGV; last output: b | c | d")),
        (-200, "", 0, Failure("crashed", "ended by signal 200")),
        (1, "Traceback\n  File\nValueError: no", 0, Failure("failed", "ValueError: no")),
        (1, "torch.OutOfMemoryError: CUDA out of memory", 0,
         Failure("out of memory", "torch.OutOfMemoryError: CUDA out of memory")),
        (3, "", 0, Failure("failed", "exit code 3")),
        (0, "bye", 0, Failure("failed", "the process ended without a record: bye")),
    ],
)  # fmt: skip
def test_deaths_in_words(code: int, output: str, kills: int, failure: Failure) -> None:
    assert failures.of_exit(code, output, 300.0, kills) == failure


def test_kernel_kills_are_counted() -> None:
    assert failures.kernel_kills() >= 0


def test_files_appear_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "results.json"
    asv.util.write_json(str(path), {"a": 1}, api_version=2)
    assert json.loads(path.read_text()) == {"a": 1, "version": 2}

    def torn(data: Any, file: Any, **_: Any) -> None:
        file.write('{"a"')
        raise KeyboardInterrupt

    monkeypatch.setattr("asv.util.json.dump", torn)
    with pytest.raises(KeyboardInterrupt):
        asv.util.write_json(str(path), {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1, "version": 2}
    assert [p.name for p in path.parent.iterdir()] == ["results.json"]


def result_of(entry: dict[str, Any], *values: float | None) -> BenchmarkResult:
    nothing = [None] * len(values)
    return BenchmarkResult(list(values), nothing, nothing, 0, "", None)


def test_results_are_saved_after_each_benchmark(tmp_path: Path) -> None:
    results = Results({"machine": "m"}, {}, "2a13" + "0" * 36, 5, "3.11", "env", {})
    entry = {**benchmark("throughput"), "version": "1"}
    results.add_result(entry, result_of(entry, *range(8)))
    assert saving.path_of(results) is None
    assert list(tmp_path.iterdir()) == [], "a dry run never loads, and is not saved"
    results.load_data(str(tmp_path))
    results.add_result(entry, result_of(entry, *range(8)))
    path = tmp_path / "m" / "2a130000-env.json"
    assert saving.path_of(results) == path
    assert entry["name"] in json.loads(path.read_text())["results"]


def _hold(directory: Path, ready: Any, done: Any) -> None:
    locks = locking.DeviceLocks(directory)
    locks.acquire(["cpu", "cuda"])
    ready.set()
    done.wait(30)


def test_a_device_is_held_by_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(tmp_path, ready, done))
    other.start()
    assert ready.wait(30)
    mine = locking.DeviceLocks(tmp_path)
    with pytest.raises(DeviceBusy, match=rf"^cpu is being measured by process {other.pid} \("):
        mine.acquire(["cpu"])
    with pytest.raises(DeviceBusy, match=r", and a run on mps needs the host too"):
        mine.acquire(["mps"])
    assert other.pid is not None
    os.kill(other.pid, 9)  # however it ends, its devices are free
    other.join()
    mine.acquire(["cpu", "cpu"])
    mine.release()


def test_a_lost_holder_file_is_no_problem(tmp_path: Path) -> None:
    one, other = locking.DeviceLocks(tmp_path), locking.DeviceLocks(tmp_path)
    one.acquire(["cpu"])
    (tmp_path / "cpu.json").write_text("{torn")
    with pytest.raises(DeviceBusy, match="measured by another process"):
        other.acquire(["cpu"])
    one.release()
    other.acquire(["cpu"])
    other.release()


@pytest.mark.parametrize(
    ("visible", "name"), [("", "cuda-0"), ("2", "cuda-2"), ("GPU-1/a, 3", "cuda-bf1d9877"), ("1,0", "cuda-1")]
)
def test_what_is_locked_is_the_first_visible_gpu(
    monkeypatch: pytest.MonkeyPatch, visible: str, name: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)
    assert locking.lock_name("cuda") == name
    assert locking.lock_name("cpu") == "cpu"


def test_tables_hide_what_was_not_run(snapshot: Any) -> None:
    nan = math.nan
    values = [(1.5e-6, 1e-7), (nan, None), (None, None), *[(nan, None)] * 5]
    entry = {**benchmark("throughput"), "param_names": ["device", "dtype", "shape"], "unit": "seconds"}
    assert "\n".join(asv.results._format_benchmark_result(values, entry)) == snapshot
    assert asv.results._format_benchmark_result([(nan, None)] * 8, entry) == ["(+8 not run here)"]
    del entry["accel_micro"]
    assert "n/a" in "\n".join(asv.results._format_benchmark_result(values, entry)), "others are asv's"


def test_comparisons_list_what_was_run() -> None:
    from asv.commands import compare

    rows = compare.unroll_result("f.op", [["'cpu'", "'cuda'"]], [1.0, math.nan], [None, None])
    assert [row[0] for row in rows] == ["f.op('cpu')"]


@pytest.fixture
def machine_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(
        "accel_micro.host.machine_facts", lambda: {"gpu": "H100", "gpu_driver": "580"}, raising=False
    )
    return str(tmp_path / "machine.json")


def test_a_machine_is_described_without_questions(machine_file: str) -> None:
    machine = Machine.load(interactive=True, _path=machine_file)
    assert machine.machine == Machine.get_unique_machine_name()
    assert (machine.gpu, machine.gpu_driver) == ("H100", "580")
    assert machine.num_cpu
    named = Machine.load(interactive=True, _path=machine_file, machine_name="lab-3")
    assert named.machine == "lab-3"


def test_answers_stay_and_facts_are_read_anew(machine_file: str) -> None:
    MachineCollection.save(
        "lab-3", {"machine": "lab-3", "ram": "a lot", "gpu_driver": "570"}, _path=machine_file
    )
    machine = Machine.load(interactive=True, _path=machine_file, machine_name="lab-3")
    assert (machine.ram, machine.gpu_driver) == ("a lot", "580")
