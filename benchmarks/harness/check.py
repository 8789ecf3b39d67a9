"""Is every case right? A whole profile against float64, several processes side by side, nothing timed."""

import argparse
import contextlib
import multiprocessing
import os
import queue
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any

from accel_micro import profiles
from benchmarks.harness.cases import BENCHMARKS, cases, op_benchmarks

_CORES_A_JOB = 4
_AGAIN = frozenset({"out of memory", "crashed", "timed out"})
"""Failures that the processes beside may have caused; such cases are tried again alone."""

_Parameters = tuple[str, str, str, str]


@dataclass(frozen=True)
class Outcome:
    """What a case came to.

    Attributes:
        kind: `right`, `skipped`, or a kind of failure of a record. detail: why.
        share: error ÷ the largest that is allowed.
        broken: the process can use its device no more.
    """

    kind: str
    detail: str = ""
    share: float = 0.0
    seconds: float = 0.0
    broken: bool = False


def check(options: argparse.Namespace) -> None:
    """Compare all cases with float64; a line for each that is not right, a summary by family, exit code 1 if any.

    An error, a crash, a hang and memory that runs out each cost their own case only.
    """
    todo = [
        (cls.op.name, direction, dtype, shape)
        for cls, direction, dtype, shape in cases(
            options.device, profiles.get(options.profile), options.bench
        )
    ]
    jobs = min(options.jobs or max(1, (os.cpu_count() or 1) // _CORES_A_JOB), max(1, len(todo)))
    start = perf_counter()
    outcomes = Checking(options.device, jobs, options.seconds).all_of(todo)
    again = [case for case, outcome in outcomes.items() if outcome.kind in _AGAIN]
    if again and jobs > 1:
        outcomes |= Checking(options.device, 1, options.seconds).all_of(again)
    for case, outcome in outcomes.items():
        if outcome.kind not in {"right", "skipped"}:
            print(f"{' '.join(case)}: {outcome.kind}: {outcome.detail}")
    wrong = print_summary(outcomes)
    print(f"{len(outcomes)} cases in {perf_counter() - start:.0f} s, {jobs} processes side by side")
    if wrong:
        sys.exit(1)


@dataclass
class Checking:
    """Hands cases to processes, and starts a new one where one died, hung or lost its device."""

    device: str
    jobs: int
    seconds: float
    folder: Path = BENCHMARKS
    _todo: "queue.SimpleQueue[_Parameters]" = field(default_factory=queue.SimpleQueue)
    _outcomes: dict[_Parameters, Outcome] = field(default_factory=dict)

    def all_of(self, todo: Sequence[_Parameters]) -> dict[_Parameters, Outcome]:
        """Outcomes in the order of the cases."""
        for case in todo:
            self._todo.put(case)
        lanes = [threading.Thread(target=self._lane) for _ in range(self.jobs)]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        return {case: self._outcomes[case] for case in todo}

    def _lane(self) -> None:
        worker: _Worker | None = None
        while True:
            try:
                case = self._todo.get_nowait()
            except queue.Empty:
                break
            worker = worker or _Worker(self.device, self.jobs, self.folder)
            outcome = worker.outcome_of(case, self.seconds)
            self._outcomes[case] = outcome
            if len(self._outcomes) % 50 == 0:
                print(f"{len(self._outcomes)} done", file=sys.stderr, flush=True)
            if outcome.broken:
                worker.end()
                worker = None
        if worker is not None:
            worker.end()


class _Worker:
    """A process that checks one case after another."""

    def __init__(self, device: str, jobs: int, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, device, jobs, folder), daemon=True)
        self._process.start()
        other.close()
        self._started = False

    def outcome_of(self, case: _Parameters, seconds: float) -> Outcome:
        start = perf_counter()
        try:
            if not self._started:  # importing torch is not the case's time
                self._pipe.recv()
                self._started = True
            start = perf_counter()
            self._pipe.send(case)
            if not self._pipe.poll(seconds):
                return Outcome("timed out", f"took more than {seconds:.0f} s", 0.0, seconds, broken=True)
            outcome: Outcome = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(10)
            return Outcome(
                "crashed",
                f"the process ended with {self._process.exitcode}",
                0.0,
                perf_counter() - start,
                broken=True,
            )
        return outcome

    def end(self) -> None:
        self._pipe.close()
        self._process.join(1)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _serve(pipe: Connection, device: str, jobs: int, folder: Path) -> None:
    """Runs in the process: receives cases and sends outcomes, until the pipe is closed."""
    import torch

    torch.set_num_threads(max(1, (os.cpu_count() or 1) // jobs))
    by_name = {cls.op.name: cls for cls in op_benchmarks(folder)}
    pipe.send("ready")
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            name, direction, dtype, shape = pipe.recv()
            pipe.send(_outcome(by_name[name](), direction, device, dtype, shape))


def _outcome(benchmark: Any, direction: str, device: str, dtype: str, shape: str) -> Outcome:
    start = perf_counter()
    try:
        benchmark.setup(device, dtype, shape)
    except NotImplementedError as reason:
        return Outcome("skipped", str(reason))
    record = benchmark.check(direction, device, dtype, shape)
    seconds = perf_counter() - start
    if record.skipped is not None:
        return Outcome("skipped", record.skipped, 0.0, seconds)
    if record.failure is not None:
        broken = not _recovered(device)
        return Outcome(record.failure.kind, record.failure.detail, 0.0, seconds, broken)
    check = record.check
    return Outcome("right", "", check.error / check.tolerance, seconds)


def _recovered(device: str) -> bool:
    """Give back the memory of a failed case; False when the device refuses this process from now on."""
    from benchmarks.harness.clocks import usable

    return usable(device)


def print_summary(outcomes: dict[_Parameters, Outcome]) -> int:
    """A line for each family; returns how many cases are not right."""
    families: dict[str, list[tuple[_Parameters, Outcome]]] = {}
    for case, outcome in outcomes.items():
        families.setdefault(case[0].partition(".")[0], []).append((case, outcome))
    wrong = 0
    for family, among in families.items():
        right = [(outcome.share, case) for case, outcome in among if outcome.kind == "right"]
        skipped = sum(outcome.kind == "skipped" for _, outcome in among)
        failed = len(among) - len(right) - skipped
        wrong += failed
        share, worst = max(right, default=(0.0, ("", "", "", "")))
        print(
            f"{family:14s} {len(right):5d} right, {skipped:4d} skipped, {failed:4d} not right; "
            f"{sum(outcome.seconds for _, outcome in among):7.1f} s; "
            f"largest error {100 * share:.0f} % of what is allowed: {' '.join(worst)}"
        )
    slowest = sorted(outcomes.items(), key=lambda item: -item[1].seconds)[:5]
    print("slowest:", "; ".join(f"{outcome.seconds:.1f} s {' '.join(case)}" for case, outcome in slowest))
    return wrong
