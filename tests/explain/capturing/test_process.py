"""A process, in this one: what it leaves of models that are plain, fickle, or none."""

import sys
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader, Subset

from accel_micro.devices.base import Counted, Device
from accel_micro.explain.attribution import explain
from accel_micro.explain.capturing import process, taking, turns, watching
from accel_micro.explain.capturing.counting import Counts, fallen
from accel_micro.explain.capturing.feeding import taken_apart
from accel_micro.explain.capturing.taking import CannotCapture, Request, take
from accel_micro.explain.capturing.target import WrongModel
from accel_micro.explain.setting import Setting
from tests.explain import planted

pytestmark = pytest.mark.usefixtures("known_machine")


def job(model: str, setting: str = "cpu batch=4 threads=1", **changes: Any) -> dict[str, Any]:
    return {
        "model": f"tests.explain.planted:{model}" if model.isalpha() else model,
        "setting": setting,
        "training": True,
        "budget_seconds": 0.1,
        "replay_seconds": 20.0,
        "ops": True,
        **changes,
    }


def test_a_process_times_steps_and_ops_and_replays_them() -> None:
    found = process.run(job("plain", detail=True))
    reading, rows = found["reading"], found["rows"]
    assert len(reading["steps"]) >= 5 and all(step > 0 for step in reading["steps"])
    assert (
        len(rows) == len(reading["ops"]) == len(reading["gaps"]) and max(found["sequence"]) == len(rows) - 1
    )
    assert sum(reading["ops"]) > 0
    product = next(row for row in rows if row["op"] == "aten.addmm.default")
    assert product["hot_seconds"] > 0 and product["cold_seconds"] > 0 and product["check"] == ""
    assert product["error"] <= product["tolerance"]
    assert found["problems"] == [] and found["facts"]["parameters"] == 3 * (192 * 192 + 192)
    assert found["peaks"]["flops_per_second"] > 0


def test_a_long_step_is_warmed_by_one_and_repeated_little(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []
    once = process._Process._timed

    def timed(self: Any, steps: int) -> float:
        counted.append(steps)
        return once(self, steps)

    monkeypatch.setattr(process._Process, "_timed", timed)
    short = process.run(job("plain", budget_seconds=0.0))
    assert len(short["reading"]["block_speeds"]) == 5 and counted[:6] == [1] * 6 and counted[6] > 1
    counted.clear()
    monkeypatch.setattr(process, "_LONG_STEP_SECONDS", 0.0)
    long = process.run(job("plain", budget_seconds=0.0))
    assert len(long["reading"]["block_speeds"]) == 3 and counted[:2] == [1, 1] and counted[2] > 1
    assert sum(long["reading"]["ops"]) > 0 and long["problems"] == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_a_process_that_is_killed_says_what_killed_it(tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text(
        "import os\ndef net(device): os.kill(os.getpid(), int(os.environ['DEADLY']))\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        for number, why in (("9", "most likely the system for lack of memory"), ("11", "died: SIGSEGV")):
            patch.setenv("DEADLY", number)
            with pytest.raises(CannotCapture, match=why):
                taking.run_process(Request("deadly:net", folder=tmp_path), Setting.parse("cpu batch=4"))


def test_a_process_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(taking, "TIMEOUT_SECONDS", 0.01)
    with pytest.raises(CannotCapture, match="the process that measures mnist did not end within 0 s"):
        taking.run_process(Request("mnist", folder=tmp_path), Setting.parse("cpu batch=4"))


def test_inference_has_no_backward() -> None:
    found = process.run(job("plain", training=False))
    assert {row["phase"] for row in found["rows"]} == {"forward"}


def test_ops_that_change_from_step_to_step_leave_the_whole_step() -> None:
    found = process.run(job("fickle", detail=True))
    assert "ops" not in found["reading"] and len(found["reading"]["steps"]) >= 5
    assert any("change from step to step" in problem for problem in found["problems"])


def test_a_step_that_cannot_be_recorded_is_still_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    from accel_micro.explain.capturing import recording

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("no such luck\nand more")

    monkeypatch.setattr(recording, "record", refuse)
    found = process.run(job("plain"))
    assert found["rows"] is None and found["reading"]["steps"]
    assert found["problems"] == ["its ops cannot be recorded (no such luck), so only whole steps were timed"]


def test_a_loader_is_timed_by_itself_and_with_the_step() -> None:
    fed = process.run(job("plain", loader="tests.explain.planted:loader"))["reading"]["fed"]
    assert fed["loader_seconds"] >= 0.03 and fed["step_seconds"] >= 0.03 and not fed["prefetches"]


def test_a_loader_whose_batches_are_of_another_size_is_refused() -> None:
    """Seconds of its batches would be taken for those of the step's, four times as fast an example."""
    with pytest.raises(WrongModel, match=r"loader gives batches of 4, and the step has one of 16"):
        process.run(job("plain", "cpu batch=16 threads=1", loader="tests.explain.planted:loader", ops=False))


def test_a_loader_of_torch_is_taken_apart() -> None:
    slow, reading = taken_apart(planted.slow_transform()), taken_apart(planted.slow_reading())
    assert slow is not None and reading is not None
    assert slow["transform"] == "changed" and slow["transform_seconds"] >= 16e-3 > slow["fetch_seconds"]
    assert reading["fetch_seconds"] >= 16e-3 > reading["transform_seconds"]
    half = DataLoader(Subset(planted.Digits(transforming=1e-3), range(20)), batch_size=4)
    found = taken_apart(half)
    assert found is not None and found["transform_seconds"] >= 4e-3
    assert half.dataset.dataset.transform.__name__ == "changed"  # type: ignore[attr-defined]
    assert taken_apart(planted.loader()) is None
    assert taken_apart(DataLoader(planted.Digits(), batch_size=40)) is None  # one batch


def test_what_a_steady_step_should_not_do_is_counted() -> None:
    class Counting(Device):
        compiled = 0

        def block(self) -> Any:
            return nullcontext(
                Counted(compilations=self.compiled, compile_seconds=0.5, on_host=("aten::nonzero",))
            )

    device, counts = Counting("cpu"), Counts()
    with counts.block(device, 10):
        pass
    assert counts.facts() == {"compilations": 0.0, "compile_seconds": 0.05, "on_host": ["aten::nonzero"]}
    device.compiled = 10
    with counts.block(device, 10):
        pass
    assert counts.facts()["compilations"] == 0.5
    with counts.warnings():
        warnings.warn(
            "The operator 'aten::_fft_r2c' is not currently supported on the MPS backend and will fall back to run on "
            "the CPU. This may have performance implications.", stacklevel=1,
        )  # fmt: skip
    assert counts.facts()["on_host"] == ["aten::nonzero", "aten::_fft_r2c"]
    assert fallen("The operator is fast") == []


def test_steps_leave_their_speeds_in_order_and_say_whether_they_are_finite() -> None:
    reading = process.run(job("plain"))["reading"]
    assert len(reading["block_speeds"]) >= len(reading["steps"]) and reading["finite"] and not reading["held"]
    assert reading["compilations"] == 0 and reading["on_host"] == []
    assert not process.run(job("broken"))["reading"]["finite"]


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("resnet19", "unknown model 'resnet19'; known: vgg16"),
        ("tests.explain.planted:nobody", "cannot be imported"),
        ("no.such.module:thing", "cannot be imported"),
        ("tests.explain.planted:no_model", "returned a str"),
    ],
)
def test_what_is_no_model(model: str, sentence: str) -> None:
    with pytest.raises(WrongModel, match=sentence):
        process.run(job(model))


def test_switches_reach_torch_and_the_optimizer() -> None:
    import torch

    before = torch.backends.mkldnn.enabled, torch.get_num_threads()
    try:
        found = process.run(job("plain", "cpu batch=4 threads=1 onednn=off foreach=on", budget_seconds=0.01))
        assert found["facts"]["modes"]["mkldnn"] is False and found["facts"]["modes"]["threads"] == 1
    finally:
        torch.backends.mkldnn.enabled = before[0]
        torch.set_num_threads(before[1])
    assert any("_foreach_" in row["op"] for row in found["rows"])
    with pytest.raises(WrongModel, match="has no switch fused"):
        process.run(job("tests.explain.planted:without_fused", "cpu batch=1 threads=1 fused=on"))


class Watched:
    """Steps of one row that were watched."""

    changed = False

    def __init__(
        self,
        ops: list[list[float]],
        gaps: list[list[float]],
        events: tuple[list[float], list[float]] | None = None,
    ) -> None:
        self.ops, self.gaps, self.events = ops, gaps, events


def turn(plain: turns.Block, watched: Watched, block: turns.Block) -> Any:
    stand_in: Any = watched
    return turns.Turn(plain, stand_in, block)


def test_ops_and_gaps_lose_what_the_profiler_adds_at_that_speed() -> None:
    # Two events lie in the row's calls and three before them or behind: half of a second each, at half of the speed.
    watched = Watched([[8.0]] * 5, [[6.0, 1.0]] * 5, ([2.0], [2.0, 1.0]))
    plain, block = turns.Block(10.0, 0.5, 0.5, 0.0), turns.Block(15.0, 0.5, 0.5, 0.0)
    found = turns.in_place([turn(plain, watched, block)], 10.0, event_seconds=0.25)
    assert found["ops"] == pytest.approx([7.0]) and found["gaps"] == pytest.approx([5.0])
    assert found["tail_seconds"] == pytest.approx(0.5)


def test_no_op_takes_less_than_nothing() -> None:
    watched = Watched([[8.0, 0.1]] * 5, [[1.0, 1.0, 0.0]] * 5, ([0.0, 2.0], [1.0, 1.0, 0.0]))
    block = turns.Block(10.1, 1.0, 1.0, 0.0)
    found = turns.in_place([turn(turns.Block(9.5, 1.0, 1.0, 0.0), watched, block)], 9.5, event_seconds=0.1)
    assert found["ops"][1] == 0.0 and found["ops"][0] > 7.0


def test_the_profiler_adds_no_more_than_it_makes_a_step_longer() -> None:
    watched = Watched([[8.0]] * 5, [[2.0, 1.0]] * 5, ([2.0], [2.0, 1.0]))
    block = turns.Block(11.0, 1.0, 1.0, 0.0)
    for plain, left in ((10.0, 10.0), (12.0, 11.0)):  # the second was slower for another reason
        found = turns.in_place(
            [turn(turns.Block(plain, 1.0, 1.0, 0.0), watched, block)], plain, event_seconds=9.0
        )
        assert sum(found["ops"]) + sum(found["gaps"]) + found["tail_seconds"] == pytest.approx(left)


def test_beside_a_device_ops_and_gaps_are_what_enqueueing_takes() -> None:
    watched = Watched([[6.0]] * 5, [[5.0, 1.0]] * 5)
    plain = turns.Block(20.0, 1.0, 1.0, 0.0)  # the device works twice as long as the host
    for host in (8.0, 11.0):
        one = turn(plain, watched, turns.Block(6.0, 1.0, 1.0, 0.0))
        found = turns.in_place([one], 20.0, host, calls=[2.0])
        assert found["ops"] == [6.0] and found["tail_seconds"] == 1.0
        assert found["gaps"] == pytest.approx([host - 6.0 - 1.0])  # what a mode adds lies before the calls


def test_a_short_step_that_seldom_waits_for_a_core_is_not_taken_for_shorter() -> None:
    # A step of 10, and one of ten waits for 100 more: half of the block is waiting, and the median step has none of it.
    watched = Watched([[8.0]] * 9 + [[88.0]], [[2.0, 0.0]] * 9 + [[22.0, 0.0]])
    plain, block = (turns.Block(20.0, 1.0, 1.0, 0.5, alone=True) for _ in range(2))
    found = turns.in_place([turn(plain, watched, block)], 10.0)
    assert found["ops"] == pytest.approx([8.0]) and found["gaps"] == pytest.approx([2.0])


def test_a_single_thread_that_waits_for_a_core_is_not_slow() -> None:
    def read(alone: bool) -> tuple[float, dict[str, Any]]:
        watched = Watched([[8.0]], [[2.0, 0.0]])
        plain = turns.Block(20.0, 1.0, 1.0, 0.5, alone)  # half of it without a core
        _, samples = turns.chosen([plain])
        one = turn(plain, watched, turns.Block(8.0, 1.0, 1.0, 0.0, alone))
        return samples[0], turns.in_place([one], samples[0])

    step, found = read(alone=True)
    assert step == pytest.approx(10.0) and found["ops"] == [8.0] and found["gaps"] == [2.0]
    step, found = read(alone=False)
    assert step == pytest.approx(20.0)


def test_where_the_profiler_cannot_be_used_whole_steps_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("another session is open")

    monkeypatch.setattr(watching, "profiled", fail)
    found = process.run(job("plain"))
    assert found["problems"] == [
        "the profiler cannot be used (another session is open), so only whole steps were timed"
    ]
    assert len(found["reading"]["steps"]) >= 5 and "ops" not in found["reading"]


# Whole interpreters


def result(seconds: float = 1e-3) -> dict[str, Any]:
    reading = {"steps": [seconds] * 5, "raw_steps": [seconds] * 5, "speeds": [1.0] * 5, "first_step_seconds": 1.0,
               "ops": [seconds / 2], "ops_errors": [0.0], "gaps": [seconds / 2]}  # fmt: skip
    row = {"op": "aten.mm.default", "phase": "forward", "module": "", "inputs": [], "count": 1}
    facts = {"torch": "2.13.0", "parameters": 1, "tensors": 1, "modes": {}, "device": {}}
    return {"reading": reading, "rows": [row], "sequence": [0], "problems": [], "facts": facts}


def test_sides_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[tuple[str, bool]] = []

    def fake(request: Request, setting: Setting, *, detail: bool = False) -> dict[str, Any]:
        order.append((setting.switches.get("threads", ""), detail))
        return result()

    monkeypatch.setattr(taking, "run_process", fake)
    one, other = Setting("cpu", 4, {"threads": "1"}), Setting("cpu", 4, {"threads": "2"})
    captures = take(Request("plain", processes=3), [one, other])
    assert [who for who, _ in order] == ["1", "2", "2", "1", "1", "2"]
    assert [detail for _, detail in order] == [True, True, False, False, False, False]
    assert [len(capture.readings) for capture in captures] == [3, 3] and captures[0].has_ops
    assert explain(*captures, interleaved=True).difference == 0


def test_ctrl_c_keeps_whole_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def fake(*_: Any, **__: Any) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return result()

    monkeypatch.setattr(taking, "run_process", fake)
    captures = take(Request("plain", processes=3), [Setting("cpu", 4), Setting("cpu", 8)])
    assert [len(capture.readings) for capture in captures] == [1, 1]


def test_rows_that_differ_from_process_to_process_are_not_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [result(), result()]
    results[1]["rows"][0]["inputs"] = ["float32[3]"]
    monkeypatch.setattr(taking, "run_process", lambda *_, **__: results.pop(0))
    (capture,) = take(Request("plain", processes=2), [Setting("cpu", 4)])
    assert not capture.has_ops and any("from process to process" in p for p in capture.problems)


def test_a_process_that_dies_says_so(tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text("import os\n\ndef model(device):\n    os._exit(3)\n")
    with pytest.raises(CannotCapture, match="died"):
        take(Request("deadly:model", processes=1, folder=tmp_path), [Setting("cpu", 1)])


def test_an_interpreter_that_is_none() -> None:
    with pytest.raises(CannotCapture, match="cannot be run") as caught:
        take(Request("mnist", processes=1), [Setting("cpu", 1, {"python": "/no/such/python"})])
    assert caught.value.wrong_use
