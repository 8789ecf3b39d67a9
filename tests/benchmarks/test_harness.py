"""Benchmarks of accel_micro itself: what goes wrong in one case must not end the rest, and nothing is lost."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from accel_micro.explain.file import write
from benchmarks.harness import check as checking
from benchmarks.harness.__main__ import main
from benchmarks.harness.check import Checking, Outcome
from benchmarks.harness.clocks import Row, print_summary
from tests.explain.test_clocks import on_gpu
from tests.explain.worlds import capture

_PLANTED = """
import os, time
import torch
from accel_micro.suite import op


@op(quick=["n=8", "n=9"])
def right(t, n):
    x = t(n)
    return lambda: x * 2


@op(quick=["n=8"], backward=False)
def wrong(t, n):
    x = t(n)
    return lambda: x * (2 if t.reference else 3)


@op(quick=["n=8"], backward=False)
def raising(t, n):
    raise ValueError("no such kernel")


@op(quick=["n=8"], backward=False)
def large(t, n):
    raise MemoryError("a petabyte")


@op(quick=["n=8"], backward=False)
def dying(t, n):
    os._exit(11)


@op(quick=["n=8"], backward=False)
def hanging(t, n):
    time.sleep(600)


@op(quick=["n=8"], backward=False, unsupported=lambda n: "too odd")
def missing(t, n):
    return lambda: None
"""


def outcomes_of(folder: Path, names: list[str], seconds: float) -> dict[tuple[str, str, str, str], Outcome]:
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "family.py").write_text(_PLANTED, encoding="utf-8")
    todo = [(f"family.{name}", "forward", "float32", "n=8") for name in names]
    return Checking("cpu", 1, seconds, folder).all_of([*todo, ("family.right", "backward", "float32", "n=9")])


@pytest.mark.slow
def test_a_case_that_dies_or_hangs_costs_itself_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["right", "wrong", "raising", "large", "dying", "missing", "hanging"]
    outcomes = outcomes_of(tmp_path / "planted", names, seconds=5.0)
    kinds = {case[0].partition(".")[2]: outcome.kind for case, outcome in list(outcomes.items())[:-1]}
    assert kinds == {
        "right": "right",
        "wrong": "wrong result",
        "raising": "failed",
        "large": "out of memory",
        "dying": "crashed",
        "missing": "skipped",
        "hanging": "timed out",
    }
    *_, last = outcomes.values()
    assert last.kind == "right"
    details = {case[0].partition(".")[2]: outcome.detail for case, outcome in outcomes.items()}
    assert "no such kernel" in details["raising"]
    assert "11" in details["dying"]
    assert details["missing"] == "too odd"
    assert checking.print_summary(outcomes) == 5
    line = capsys.readouterr().out.splitlines()[0]
    assert line.split()[:7] == ["family", "2", "right,", "1", "skipped,", "5", "not"]


def test_failures_that_neighbours_may_have_caused_are_tried_again_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[int, list[str]]] = []

    class Crowded(Checking):
        def all_of(self, todo):  # type: ignore[no-untyped-def]
            asked.append((self.jobs, [case[2] for case in todo]))
            crowded = self.jobs > 1
            return {
                case: Outcome("out of memory", "full")
                if crowded and case[2] == "bfloat16"
                else Outcome("right")
                for case in todo
            }

    monkeypatch.setattr(checking, "Checking", Crowded)
    options = argparse.Namespace(
        device="cuda", profile="quick", bench="^pooling.max_pool forward", jobs=2, seconds=1.0
    )
    checking.check(options)
    assert asked[0][0] == 2
    assert set(asked[0][1]) == {"float32", "bfloat16"}
    assert asked[1] == (1, ["bfloat16"] * asked[0][1].count("bfloat16"))
    assert "out of memory" not in capsys.readouterr().out


def test_a_case_that_is_not_right_is_named_and_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        Checking, "all_of", lambda self, todo: {case: Outcome("wrong result", "off by 3") for case in todo}
    )
    options = argparse.Namespace(
        device="cpu", profile="quick", bench="^pooling.max_pool forward", jobs=1, seconds=1.0
    )
    with pytest.raises(SystemExit) as exit_:
        checking.check(options)
    assert exit_.value.code == 1
    assert "pooling.max_pool forward float32" in capsys.readouterr().out


def row(name: str, device: float, cupti: float, kernels: float = 1.0, **facts: float) -> Row:
    return Row(name, device=device, device_beside=device, cupti=cupti, kernels=kernels, **facts)  # type: ignore[arg-type]


def test_the_summary_counts_by_length_of_kernels_and_names_every_exception(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [
        row("a.large", 20e-6, 20.1e-6, together=1.0, throughput=20e-6, unsynchronised=1e-6),
        row(
            "a.off", 20e-6, 22e-6, together=0.7, throughput=20e-6, unsynchronised=20e-6, back_to_back=20.2e-6
        ),
        row("a.many", 40e-6, 41.8e-6, kernels=10.0, together=1.1, throughput=40e-6, unsynchronised=40e-6),
        row("b.small", 4.3e-6, 4e-6, together=1.0, throughput=9e-6, unsynchronised=9e-6),
        row("b.nothing", 0.0, 0.0, kernels=0.0),
    ]
    rows[0].unsynchronised_rejected = "20 times what the device can do"
    print_summary(rows, device_only=False)
    out = capsys.readouterr().out
    assert "kernels of 10 µs or more: within 3 % 1 of 2" in out
    assert "   0.909   0.990 back to back  a.off" in out
    assert "kernels of 3 to 10 µs: within 5 % 1, within 10 % 2 of 2" in out
    assert "kernels of less" in out
    assert "no device clock: 1\n  b.nothing" in out
    assert "a: throughput within 15 % of the larger of dispatch and device: 2 of 3; median ratio 1.000" in out
    assert "   0.700  a.off" in out
    assert "b: throughput within 15 % of the larger of dispatch and device: 1 of 1" in out
    assert "below the truth: 1; physically impossible and rejected: 1" in out
    print_summary(rows, device_only=True)
    assert "throughput" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("device", "code", "said"), [("hpu", 2, "device 'hpu' is not timed"), ("cuda:9", 3, "cuda:9: ")]
)
def test_a_device_that_is_not_here_gets_a_sentence(
    device: str, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["harness", "check", "--device", device])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code
    assert said in capsys.readouterr().err


def test_pairs_of_captures_are_predicted_from_their_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu, cuda = capture(unexplained=1.8e-3), on_gpu(0.1e-3, 0.02e-3)  # parts of the CPU's step: nine tenths
    for name, one in {"cpu": cpu, "cuda": cuda, "more": replace(cuda, batch=64)}.items():
        write(one, tmp_path / f"{name}.json")
    monkeypatch.setattr(sys, "argv", ["harness", "explain", "pairs", "--folder", str(tmp_path)])
    main()
    first, second, *summary = capsys.readouterr().out.splitlines()
    assert first.startswith(
        "paper 4: step 1.2 ms, enqueued 1.2, device 0.12 (1.000 of the profiler's), busy for 10 %;"
    )
    assert "predicted ÷ measured 0.905, 5 and 5 processes; launch-bound" in first
    assert second == "paper 4 against 64: predicted ÷ measured 1.000"
    assert summary == [
        "accelerator against CPU: 1, 9.5 % off at the median, 9 % at worst",
        "batches on the accelerator: 1, 0.0 % off at the median, 0 % at worst",
    ]
