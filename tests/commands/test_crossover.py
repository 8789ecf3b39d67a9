"""`accel-micro crossover` without asv: which sides, ops and sizes, how it ends; and once for real on the CPU."""

import contextlib
import itertools
import json
import math
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from accel_micro.asv_plugin.interleaving import SessionError
from accel_micro.asv_plugin.opening import Where
from accel_micro.cli import app
from accel_micro.commands.crossover import Request, crossover, next_command
from accel_micro.comparison.sides import Side
from accel_micro.measure.process import Process
from accel_micro.measure.records import Case, Failure, Record, Work, read_all

CHECKOUT = Path(__file__).parents[2]
FLOATS = ["float32", "bfloat16"]


def facts(op: str, sweep: str | None, stated: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "op": op,
        "direction": "forward",
        "sweep": sweep,
        "sweep_stated": stated,
        "dtypes": FLOATS,
        **more,
    }


SUITE = [
    facts("pointwise.relu", "n=1024..65536", stated=False),
    facts("matmul.mm", "m=16..4096 n=16..4096"),
    facts("matmul.mm", "m=16..4096 n=16..4096", direction="backward"),
    facts("linalg.solve", "n=16..1024", dtypes=["float32"]),
    facts("loss.ctc", None),
]


def seconds(case: Case) -> float:
    """In float32 the CPU takes as long as there are elements, in bfloat16 half and a start; other devices 10 µs."""
    size = int(case.shape.split("=")[-1])
    if case.device != "cpu":
        return 1e-5
    return 1e-7 * size if case.dtype == "float32" else 1e-5 + 5e-8 * size


@dataclass
class FakeAsv:
    """Stands in for `interleaved`: a process takes a second of its own clock."""

    devices_here: tuple[str, ...] = ("cpu",)
    takes: Callable[[Case], float] = seconds
    interrupts_at: int | None = None
    failure: Failure | None = None
    options: dict[str, Any] = field(default_factory=dict)
    cases: list[Case] = field(default_factory=list)
    renewed: int = 0
    results: Path = Path("nowhere")
    session: str = "fresh"
    facts: list[dict[str, Any]] = field(default_factory=lambda: SUITE)

    @contextlib.contextmanager
    def interleaved(self, config: Path | None, **options: Any) -> Iterator["FakeAsv"]:
        self.options = options
        yield self

    def devices(self, place: Where) -> tuple[str, ...]:
        asked = [name.partition(":")[0] for name in self.options["devices"]]
        found = tuple(name for name in self.devices_here if not asked or name in asked)
        if not found:
            raise SessionError("mps needs macOS", 3)
        return found

    def machine(self, place: Where) -> str:
        return "workshop"

    def version(self, place: Where) -> str:
        return "2.13.0"

    def why_not(self, place: Where, case: Case) -> str | None:
        return None

    def renew(self, places: Sequence[Where]) -> None:
        self.renewed += 1

    def __call__(self, place: Where, case: Case) -> Record:
        if len(self.cases) == self.interrupts_at:
            raise KeyboardInterrupt
        self.cases.append(case)
        if self.failure is not None:
            return Record(case, failure=self.failure)
        near = math.exp(0.004 * math.sin(len(self.cases)))
        values = (near * self.takes(case),) * 20
        clocks = {"throughput": Process(case.device, "throughput", values, values, (1.0,) * 20, 7)}
        return Record(case, clocks=clocks, work=Work(1.0, 1.0), started="2026-11-28T08:00:00+00:00")


Invoke = Callable[..., tuple[Any, dict[str, Any]]]


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Invoke:
    def run(asv: FakeAsv, *arguments: str) -> tuple[Any, dict[str, Any]]:
        monkeypatch.setattr("accel_micro.asv_plugin.interleaving.interleaved", asv.interleaved)
        asv.results = tmp_path / "results"
        done = CliRunner().invoke(app, ["crossover", *arguments, "--format", "json", "--out", str(tmp_path)])
        return done, json.loads(done.stdout) if done.stdout else {}

    return run


def test_without_names_the_cpu_is_compared_with_the_accelerator(invoke: Invoke, tmp_path: Path) -> None:
    asv = FakeAsv(("cpu", "cuda"))
    done, data = invoke(asv)
    assert done.exit_code == 0, done.stderr
    assert (data["kind"], data["baseline"], data["contender"], data["held"]) == (
        "device", "cpu", "cuda", "float32",
    )  # fmt: skip
    row = data["rows"][1]
    assert (row["op"], row["direction"], row["answer"], row["size"]) == (
        "matmul.mm", "forward", "crosses", "m=n",
    )  # fmt: skip
    (one,) = row["crossings"]
    assert one["low"] <= 100 <= one["high"] <= 1.2 * one["low"]
    assert one["faster"] == "cuda"
    assert asv.options["clocks"] == ("throughput", "dispatch", "device")
    assert asv.options["results"] == tmp_path / "results"
    assert {case.shape for case in asv.cases} >= {"m=16 n=16", "m=4096 n=4096"}
    assert asv.renewed > 0
    page = tmp_path / "html" / "crossover.html"
    assert "matmul.mm" in page.read_text()
    assert page.as_uri() in done.stderr


def test_two_dtypes_are_compared_on_a_device(invoke: Invoke) -> None:
    asv = FakeAsv()
    done, data = invoke(asv, "fp32", "bf16", "--device", "cpu")
    assert done.exit_code == 0, done.stderr
    assert (data["kind"], data["baseline"], data["contender"], data["held"]) == (
        "dtype", "float32", "bfloat16", "cpu",
    )  # fmt: skip
    (row,) = data["rows"]
    assert row["crossings"][0]["low"] <= 200 <= row["crossings"][0]["high"]
    assert data["absent"] == [
        {"op": "linalg.solve", "direction": "forward", "reason": "it does not exist in bfloat16"}
    ]
    assert asv.options["devices"] == ("cpu",)


def test_a_certain_card_of_several_is_swept(invoke: Invoke) -> None:
    asv = FakeAsv(("cpu", "cuda"))
    done, data = invoke(asv, "cpu", "cuda:1", "--budget", "0.01")
    assert (data["baseline"], data["contender"]) == ("cpu", "cuda")
    assert asv.options["devices"] == ("cpu", "cuda:1")
    done, _ = invoke(asv, "float32", "bfloat16", "--device", "cuda:1")
    assert asv.options["devices"] == ("cuda:1",)
    done, _ = invoke(asv, "cuda:0", "cuda:1")
    assert done.exit_code == 2
    assert "a run takes one cuda device, not cuda:0 and cuda:1" in done.stderr


def test_without_a_device_dtypes_are_compared_on_the_accelerator(invoke: Invoke) -> None:
    asv = FakeAsv(("cpu", "cuda"))
    _, data = invoke(asv, "float32", "bfloat16")
    assert data["held"] == "cuda"
    assert {case.device for case in asv.cases} == {"cuda"}


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        ((), ["linalg.solve forward", "matmul.mm forward"]),
        (("--direction", "both"), ["linalg.solve forward", "matmul.mm forward", "matmul.mm backward"]),
        (("--direction", "backward"), ["matmul.mm backward"]),
        (("--bench", "relu"), ["pointwise.relu forward"]),
        (("--bench", "relu", "--bench", "^matmul"), ["matmul.mm forward", "pointwise.relu forward"]),
        (("--bench", r"time_forward\('cuda'", "--bench", "nothing"),
         ["linalg.solve forward", "matmul.mm forward", "pointwise.relu forward"]),
    ],
)  # fmt: skip
def test_ops_are_those_that_state_a_sweep_or_match(
    invoke: Invoke, arguments: tuple[str, ...], rows: list[str]
) -> None:
    _, data = invoke(FakeAsv(("cpu", "cuda")), "cpu", "cuda", *arguments)
    assert [f"{row['op']} {row['direction']}" for row in data["rows"]] == rows


def test_the_dtype_of_two_devices_is_chosen(invoke: Invoke) -> None:
    asv = FakeAsv(("cpu", "cuda"))
    invoke(asv, "cpu", "cuda", "--dtype", "bf16", "--bench", "mm")
    assert {case.dtype for case in asv.cases} == {"bfloat16"}


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 3, "there is no accelerator here to compare the CPU with; two dtypes can be swept too"),
        (("cpu",), 2, "two sides are compared"),
        (("cpu", "float32"), 2, "two of a kind can be compared"),
        (("cpu", "cpu"), 2, "are both cpu"),
        (("HEAD", "release"), 2, "builds are compared by `accel-micro compare`"),
        (("gpu", "cpu"), 2, "nothing is called 'gpu'; devices: cpu, cuda"),
        (("cpu", "cuda"), 3, "cuda is not to be had here; there is cpu"),
        (("cpu", "cuda", "--device", "cpu"), 2, "--device has no meaning"),
        (("float32", "bfloat16", "--device", "mps"), 3, "mps needs macOS"),
        (("float32", "bfloat16", "--bench", "("), 2, "is no regular expression"),
        (("float32", "bfloat16", "--bench", "ctc"), 2, "no op with a sweep matches ctc"),
        (("float32", "bfloat16", "--bench", "solve"), 3, "linalg.solve: it does not exist in bfloat16"),
        (("float32", "bfloat16", "--alpha", "0"), 2, "--alpha must be larger than 0"),
        (("float32", "bfloat16", "--factor", "1"), 2, "--factor must be larger than 1"),
        (("float32", "bfloat16", "--tolerance", "0"), 2, "--tolerance must be larger than 0"),
        (("cpu", "cuda", "--dtype", "int3"), 2, "unknown dtype 'int3'; known: float32"),
    ],
)
def test_bad_input_gets_a_sentence(
    invoke: Invoke, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    asv = FakeAsv()
    done, _ = invoke(asv, *arguments)
    assert done.exit_code == code, done.output
    assert sentence in done.stderr
    assert asv.cases == []


def test_ctrl_c_shows_what_there_is(invoke: Invoke, tmp_path: Path) -> None:
    done, data = invoke(FakeAsv(interrupts_at=17), "float32", "bfloat16")
    assert done.exit_code == 130
    assert data["rows"][0]["stopped"] == "interrupted"
    assert len(data["rows"][0]["sizes"]) > 2
    assert (tmp_path / "html" / "crossover.html").exists()


def test_nothing_timed_and_nothing_decided_have_codes_of_their_own(invoke: Invoke) -> None:
    done, data = invoke(FakeAsv(failure=Failure("crashed", "signal 11")), "float32", "bfloat16")
    assert done.exit_code == 3
    assert data["rows"][0]["answer"] == "no time"

    chance = random.Random(1)
    wild = FakeAsv(takes=lambda case: 1e-4 * chance.uniform(1, 2))
    done, data = invoke(wild, "float32", "bfloat16")
    assert data["rows"][0]["answer"] == "open"
    assert done.exit_code == 4


def test_when_the_time_is_up_the_command_for_more_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    asv = FakeAsv(("cpu", "cuda"))
    monkeypatch.setattr("accel_micro.asv_plugin.interleaving.interleaved", asv.interleaved)
    request = Request(
        "cpu", "cuda", dtype="bfloat16", bench=(re.compile("mm forward"),), budget_seconds=30, tolerance=0.03
    )
    sides = Side("device", "cpu", "cpu"), Side("device", "cuda", "cuda")
    told: list[tuple[int, int]] = []
    found = crossover(
        request,
        sides,
        started=lambda case, number, total: told.append((number, total)),
        ended=lambda record: None,
        now=lambda: float(len(asv.cases)),
    )
    assert found.rows[0].stopped == "budget"
    assert len(asv.cases) == 30
    assert told[0] == (1, 1) and told[-1] == (30, 30), "a bar that ends with the time"
    assert next_command(request, found) == (
        "accel-micro crossover cpu cuda --dtype bfloat16 --bench 'mm forward' --tolerance 0.03 --budget 1"
    )
    assert next_command(replace(request, cards=("cuda:1",)), found).startswith(
        "accel-micro crossover cpu cuda:1 "
    )
    assert next_command(request, replace(found, rows=())) == ""


# For real


@pytest.mark.slow
def test_a_small_sweep_on_this_cpu(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "accel_micro", "crossover", "float32", "bfloat16", "--device", "cpu", "--bench",
         "matmul.mm forward", "--budget", "1", "--out", "out", "--format", "json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode in (0, 4), done.stderr
    data = json.loads(done.stdout)
    (row,) = data["rows"]
    assert (row["op"], row["swept"]) == ("matmul.mm", "m=16..4096 k=16..4096 n=16..4096")
    timed = [size for size in row["sizes"] if not size["failure"]]
    assert len(timed) >= 2
    for before, after in itertools.pairwise(timed):
        for side in ("baseline", "contender"):
            grown = (after["size"] / before["size"]) ** 3
            assert after[side]["throughput_seconds"] < 1000 * grown * before[side]["throughput_seconds"]
    records = list(read_all(tmp_path / "out" / "results"))
    assert {record.case.dtype for record in records} == {"float32", "bfloat16"}
    assert len({record.session for record in records}) == 1
    measured = sum(len(size[side]["process_seconds"]) for size in timed for side in ("baseline", "contender"))
    assert measured <= len(records) <= measured + 1, "every process is kept"
    assert all(record.check is not None for record in records if record.clocks)
    assert "matmul.mm" in (tmp_path / "out" / "html" / "crossover.html").read_text()
