"""Section 2 of `selfcheck`, from which section 3 takes its data: planted work, read by each method its own way."""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import IO, Any, Final, cast

from accel_micro.device_names import kind_of
from accel_micro.selfcheck.findings import Row, Value
from accel_micro.selfcheck.peers import rules, worker
from accel_micro.selfcheck.rates import BASELINE, LEVELS, Judged, Method, Process, Rounds

ASV_ROUNDS: Final = 2
"""Processes of a side that `asv run` takes by itself."""

POOLED_PROCESSES: Final = 4
_STARTED_TOGETHER: Final = 2

Told = Callable[[str], None]


class Worker:
    """A fresh interpreter that answers requests, see `peers.worker`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", worker.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # one core, as the probe of the speed gate sees
        )
        self._ready = False

    def ask(self, **request: Any) -> dict[str, Any]:
        """One process; what it left.

        Raises:
            RuntimeError: the interpreter is gone.
        """
        answers = cast("IO[str]", self._process.stdout)
        if not self._ready:
            self._line(answers)
            self._ready = True
        questions = cast("IO[str]", self._process.stdin)
        questions.write(json.dumps(request) + "\n")
        questions.flush()
        return self._line(answers)

    def _line(self, answers: "IO[str]") -> dict[str, Any]:
        line = answers.readline()
        if not line:
            raise RuntimeError("an interpreter that measures ended by itself")
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        """Close it and wait."""
        cast("IO[str]", self._process.stdin).close()
        cast("IO[str]", self._process.stdout).close()
        self._process.wait()


@contextmanager
def _workers(levels: Sequence[str]) -> Iterator[dict[str, Worker]]:
    """An interpreter for each level, none of which has measured before."""
    with ExitStack() as stack:
        started: dict[str, Worker] = {}
        for level in levels:
            started[level] = Worker()
            stack.callback(started[level].end)
        yield started


def methods_of(kind: str) -> list[str]:
    """Whose processes are read on a kind of device."""
    return [worker.OURS, worker.ASV, worker.TIMER, *([worker.DO_BENCH] if kind == "cuda" else ())]


def gather(
    device: str,
    budget_seconds: float,
    tell: Told,
    *,
    most_rounds: int | None = None,
    ops: Sequence[str] = worker.OPS,
    now: Callable[[], float] = perf_counter,
    workers: Callable[[Sequence[str]], Any] = _workers,
) -> Rounds:
    """Rounds until the budget ends: in each all levels, in an order by chance, each in an interpreter of its own."""
    rounds, chance, begin = Rounds(), random.Random(1), now()
    number, longest = 0, 0.0
    while now() - begin + longest < budget_seconds or number == 0:
        if most_rounds is not None and number >= most_rounds:
            break
        start = now()
        levels = list(LEVELS)
        chance.shuffle(levels)
        with workers(levels) as started:
            for op in ops:
                for method in methods_of(kind_of(device)):
                    for level in levels:
                        found = started[level].ask(
                            op=op, repeats=worker.BASE + LEVELS[level], method=method, device=device
                        )
                        process = None
                        if "samples" in found:
                            process = Process(tuple(found["samples"]), found["seconds"])
                        else:
                            rounds.failures[method] = found["failure"]
                        rounds.add(op, method, level, process)
        number += 1
        longest = max(longest, now() - start)
        tell(f"false alarms and power: round {number}, {now() - begin:.0f} of {budget_seconds:.0f} s")
    return rounds


# Rules


def by_ours(
    pairs: Sequence[tuple[Process, Process]], *, tolerance: float = 0.02, alpha: float = 0.01
) -> Judged:
    """`accel-micro compare --measure`: its looks, its turns, its verdict; the processes are those of the rounds."""
    from accel_micro.comparison.deciding import Pair, decide
    from accel_micro.measure.process import Process as Measured
    from accel_micro.measure.records import Case, Record

    sides = {name: iter(side) for name, side in zip(("A", "B"), zip(*pairs, strict=True), strict=True)}
    case = Case("selfcheck.op", "forward", "cpu", "float32", "")

    def measure(side: str) -> Record:
        process = next(sides[side], None)
        if process is None:
            raise KeyboardInterrupt  # no more data: judge what there is
        samples, count = process.samples, len(process.samples)
        return Record(
            case,
            clocks={"throughput": Measured("cpu", "throughput", samples, samples, (1.0,) * count, 1)},
        )

    pair = Pair("A", "B", ("throughput",), tolerance)
    (decision,) = decide([pair], measure, budget_seconds=1e9, alpha=alpha, now=lambda: 0.0)
    kind = decision.verdict.kind
    called = {"regression": "slower", "improvement": "faster"}.get(kind, "same")
    return Judged(called, len(decision.contender), kind == "inconclusive")


def _pooled_samples(pairs: Sequence[tuple[Process, Process]], side: int) -> list[float]:
    return [sample for pair in pairs for sample in pair[side].samples]


def by_asv(pairs: Sequence[tuple[Process, Process]]) -> Judged:
    """`asv continuous`: two processes a side, pooled."""
    used = pairs[:ASV_ROUNDS]
    return Judged(rules.asv_compare(_pooled_samples(used, 0), _pooled_samples(used, 1)), len(used))


def by_pooled(pairs: Sequence[tuple[Process, Process]]) -> Judged:
    """Mann–Whitney on our own samples, pooled over as many processes as ours looks at first."""
    used = pairs[:POOLED_PROCESSES]
    return Judged(rules.pooled(_pooled_samples(used, 0), _pooled_samples(used, 1)), len(used))


def by_medians(pairs: Sequence[tuple[Process, Process]]) -> Judged:
    """One process a side, its median read off."""
    first, second = pairs[0]
    return Judged(rules.medians(median(first.samples), median(second.samples)), 1)


def methods(kind: str = "cpu") -> list[Method]:
    """The rules, ours first."""
    found = [
        Method("ours", worker.OURS, 4, by_ours, 2),
        Method("ours, tolerance 1 %", worker.OURS, 4, lambda pairs: by_ours(pairs, tolerance=0.01), 2),
        Method("asv compare", worker.ASV, ASV_ROUNDS, by_asv, ASV_ROUNDS),
        Method("Mann–Whitney, pooled samples", worker.OURS, POOLED_PROCESSES, by_pooled, 2),
        Method("torch.utils.benchmark, medians", worker.TIMER, 1, by_medians),
    ]
    if kind == "cuda":
        found.append(Method("triton do_bench, means", worker.DO_BENCH, 1, by_medians))
    return found


# pyperf, which starts all of its processes itself

_PYPERF_SCRIPT = """
import sys
import pyperf

op, repeats, device = sys.argv[1], int(sys.argv[2]), sys.argv[3]
del sys.argv[1:4]

runner = pyperf.Runner(program_args=(__file__, op, str(repeats), device))
import torch
torch.set_num_threads(1)
from accel_micro.selfcheck.peers.worker import build, repeated
runner.bench_func("op", repeated(build(op, device), repeats))
"""


def pyperf_absent(budget_seconds: float) -> str:
    """Why pyperf is not run, a sentence; empty where it is."""
    from importlib.util import find_spec

    if find_spec("pyperf") is None:
        return "pyperf is not installed: pip install 'accel-micro[peers]'"
    if not budget_seconds:
        return "its twenty processes a side take longer than this budget: give --budget 2400 or more"
    return ""


def pyperf_row(device: str, budget_seconds: float, tell: Told) -> Row:
    """`pyperf compare_to` on the first op, side after side as pyperf measures, as often as the budget allows."""
    name = "pyperf compare_to"
    if absent := pyperf_absent(budget_seconds):
        return Row(name, absent=absent)
    called: dict[str, list[str]] = {level: [] for level in LEVELS if level != BASELINE}
    seconds: list[float] = []
    begin = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "op.py"
        script.write_text(_PYPERF_SCRIPT, encoding="utf-8")
        while not seconds or perf_counter() - begin + seconds[-1] < budget_seconds:
            start = perf_counter()
            turn = len(seconds)
            files = {level: Path(folder) / f"{number}-{turn}.json" for number, level in enumerate(LEVELS)}
            for level, more in LEVELS.items():
                command = [str(script), worker.OPS[0], str(worker.BASE + more), device]
                path = os.pathsep.join(
                    [str(Path(worker.__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
                )
                subprocess.run(
                    [
                        sys.executable,
                        *command,
                        "-o",
                        str(files[level]),
                        "--quiet",
                        "--inherit-environ",
                        "PYTHONPATH",
                    ],
                    check=True,
                    capture_output=True,
                    env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
                )
            for level, found in called.items():
                found.append(rules.pyperf_compare(files[BASELINE], files[level]))
            seconds.append(perf_counter() - start)
            tell(f"false alarms and power: pyperf, {perf_counter() - begin:.0f} of {budget_seconds:.0f} s")
    count = len(seconds)
    alarms = sum(one != "same" for one in called["A again"]) / count
    planted = [level for level, more in LEVELS.items() if more]
    values: dict[str, Value] = {
        "alarms": alarms,
        **{level: called[level].count("slower") / count for level in planted},
        "open": 0.0,
        "comparisons": count,
        "seconds": 2 * sum(seconds) / count / len(LEVELS),
    }
    return Row(name, values, void=frozenset(planted) if alarms > 0.05 else frozenset())
