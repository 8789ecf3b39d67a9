"""Processes to captures: one setting, or several whose processes take turns."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from accel_micro.explain.capture import Capture, Reading, Row
from accel_micro.explain.setting import Setting
from accel_micro.shell import signal_name

TIMEOUT_SECONDS: Final = 3600.0
_FACTS: Final = (
    "cpu",
    "cpu_cores_allowed",
    "ram",
    "arch",
    "os",
    "virtual_machine",
    "container",
    "gpu",
    "gpu_driver",
)
_MOST_PROBLEMS: Final = 20


class CannotCapture(RuntimeError):
    """Not even whole steps could be timed; the message says why. `wrong_use`: the request was at fault."""

    def __init__(self, message: str, wrong_use: bool = False) -> None:
        super().__init__(message)
        self.wrong_use = wrong_use


@dataclass(frozen=True)
class Request:
    """What is captured, and how long that may take.

    Attributes:
        model: name, or `package.module:function`.
        budget_seconds: of a process, for its blocks.
        replay_seconds: of the first one, for replays and checks; None: as `process.REPLAY_SECONDS` has them.
        loader: `package.module:function` that returns batches.
        ops: time ops too, not only whole steps.
    """

    model: str
    training: bool = True
    processes: int = 5
    budget_seconds: float = 6.0
    replay_seconds: float | None = None
    loader: str = ""
    ops: bool = True
    folder: Path = field(default_factory=Path.cwd)


Told = Callable[[Setting, int, int], None]
"""Told before each process: whose, its number from 1, and how many there are."""


def take(request: Request, settings: Sequence[Setting], told: Told | None = None) -> list[Capture]:
    """A capture of each setting, measured by turns: A B, B A, A B …, so that none has the better minutes.

    The first process of each setting makes the replays and checks.

    Raises:
        CannotCapture: a process failed.
        KeyboardInterrupt: before each setting had a process; what was measured until then is lost.
    """
    found: list[list[dict[str, Any]]] = [[] for _ in settings]
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    total, number = request.processes * len(settings), 0
    for turn in range(request.processes):
        order = list(range(len(settings)))
        for index in order if turn % 2 == 0 else reversed(order):
            number += 1
            if told is not None:
                told(settings[index], number, total)
            try:
                found[index].append(run_process(request, settings[index], detail=turn == 0))
            except KeyboardInterrupt:
                if not all(found):
                    raise
                least = min(map(len, found))
                return [
                    _capture(request, setting, results[:least], started)
                    for setting, results in zip(settings, found, strict=True)
                ]
    return [
        _capture(request, setting, results, started) for setting, results in zip(settings, found, strict=True)
    ]


def rows_of(request: Request, setting: Setting) -> tuple[Row, ...]:
    """The rows of a step alone, without times. Raises CannotCapture."""
    found = run_process(request, setting, only_rows=True)
    return tuple(msgspec.convert(row, Row) for row in found["rows"])


def run_process(
    request: Request, setting: Setting, *, detail: bool = False, only_rows: bool = False
) -> dict[str, Any]:
    """What a fresh interpreter measures.

    Raises:
        CannotCapture: it failed, or crashed, or hung.
    """
    with tempfile.TemporaryDirectory(prefix="accel_micro_capture_") as folder:
        out = Path(folder) / "result.json"
        job = {
            "model": request.model,
            "setting": str(setting),
            "training": request.training,
            "budget_seconds": request.budget_seconds,
            "replay_seconds": request.replay_seconds,
            "loader": request.loader,
            "ops": request.ops,
            "detail": detail and request.ops,
            "only_rows": only_rows,
            "out": str(out),
        }
        code, errors = _run(job, setting, request.folder)
        if not out.exists():
            raise CannotCapture(f"the process that ran {request.model} died: {_why(code, errors)}")
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    if "error" in found:
        wrong = found.get("kind") in ("WrongModel", "UnknownDevice", "WrongSetting")
        raise CannotCapture(found["error"], wrong_use=wrong)
    return found


def _why(code: int, errors: str) -> str:
    """Why a process died: its signal, else the last it wrote."""
    if -code == signal.SIGKILL:
        return "something killed it, most likely the system for lack of memory; a smaller --batch takes less"
    if code < 0:
        return signal_name(code)
    return (errors.strip().splitlines()[-1:] or ["no message"])[0][:200]


def _run(job: dict[str, Any], setting: Setting, folder: Path) -> tuple[int, str]:
    """Run the process; its exit code, and what it wrote to standard error."""
    interpreter = setting.switches.get("python", sys.executable)
    environment = dict(os.environ)
    # The model may lie in the user's folder; this package must be the same in every interpreter.
    package = Path(__file__).parents[3]
    paths = [str(package), str(folder), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    if "threads" in setting.switches:
        environment["OMP_NUM_THREADS"] = setting.switches["threads"]
    command = [interpreter, "-W", "ignore", "-m", "accel_micro.explain.capturing.process"]
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder
        )
    except OSError as error:
        raise CannotCapture(f"{interpreter} cannot be run: {error}", wrong_use=True) from None
    with _ended(process):
        try:
            _, errors = process.communicate(json.dumps(job), timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise CannotCapture(
                f"the process that measures {job['model']} did not end within {TIMEOUT_SECONDS:.0f} s"
            ) from None
        return process.returncode, errors


@contextlib.contextmanager
def _ended(process: "subprocess.Popen[str]") -> Iterator[None]:
    try:
        yield
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()  # closes its pipes too


def _capture(request: Request, setting: Setting, results: Sequence[dict[str, Any]], started: str) -> Capture:
    """What processes of one setting left, as one capture. Rows are those of the first."""
    first = results[0]
    rows = tuple(msgspec.convert(row, Row) for row in first["rows"] or ())
    names = [_name(row) for row in first["rows"] or ()]
    problems = list(dict.fromkeys(problem for result in results for problem in result["problems"]))
    readings = []
    for result in results:
        reading = msgspec.convert(result["reading"], Reading)
        if reading.ops and [_name(row) for row in result["rows"] or ()] != names:
            problems.append("its ops differ from process to process, so those of some were not counted")
            reading = replace(reading, ops=(), ops_errors=(), gaps=(), tail_seconds=0.0)
        readings.append(reading)
    peaks, facts = first.get("peaks", {}), first["facts"]
    return Capture(
        model=request.model,
        setting=str(setting),
        device=setting.device,
        batch=setting.batch or 1,
        training=request.training,
        torch=facts["torch"],
        started=started,
        parameters=facts["parameters"],
        tensors=facts["tensors"],
        rows=rows,
        sequence=tuple(first["sequence"]),
        readings=tuple(readings),
        machine=machine() | facts["device"],
        modes=facts["modes"],
        flops_per_second=peaks.get("flops_per_second"),
        bytes_per_second=peaks.get("bytes_per_second", {}),
        problems=tuple(dict.fromkeys(problems))[:_MOST_PROBLEMS],
    )


def _name(row: dict[str, Any]) -> tuple[Any, ...]:
    """What must be the same in every process. Scalars need not: an optimizer's change from step to step."""
    return (row["op"], row["phase"], row["module"], tuple(row["inputs"]), row["count"])


def machine() -> dict[str, str]:
    """The few facts about this machine that a reader of a capture needs."""
    from accel_micro import host

    return {name: value for name, value in host.machine_facts().items() if name in _FACTS}
