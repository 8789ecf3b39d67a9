"""A crossover of a CPU and a GPU that do not exist: every kind of row, swept by the real loop, without noise."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from accel_micro.comparison.compared import Tolerance
from accel_micro.comparison.crossed import Crossed, Subject, case_of
from accel_micro.comparison.sides import Side
from accel_micro.comparison.sweeping import FACTOR, Line, Which, sweep
from accel_micro.measure.process import Process
from accel_micro.measure.records import Failure, Record, Work
from accel_micro.stats.crossover import ALPHA
from accel_micro.sweep import Sweep

SIDES = (Side("device", "cpu", "cpu"), Side("device", "cuda", "cuda"))
LAUNCH = 8e-6


@dataclass(frozen=True)
class Op:
    """What it takes on both sides, seconds over size; `jitter` is how processes differ."""

    sweep: str
    cpu: Callable[[float], float]
    gpu: Callable[[float], float]
    jitter: float = 0.004
    direction: str = "forward"
    failure: tuple[int, Failure] | None = None


OPS = {
    "matmul.mm": Op(
        "m=16..4096 k=16..4096 n=16..4096", lambda n: 1e-6 + 2e-11 * n**3, lambda n: 1e-13 * n**3
    ),
    "attention.sdpa": Op(
        "gpt2: b=1 h=12 q=16..4096 kv=16..4096 d=64 causal=True",
        lambda n: 2e-5 + 2e-9 * n**2,
        lambda n: 1e-11 * n**2,
        failure=(
            4096,
            Failure("out of memory", "CUDA out of memory. Tried to allocate 3.00 GiB\nsecond line"),
        ),
    ),
    "layout.wave": Op(
        "n=16..4096",
        lambda n: 1e-4,
        lambda n: 1e-4 * math.exp(0.3 * math.cos(3 * math.pi * math.log(n / 16) / math.log(256))),
    ),
    "pointwise.add": Op("n=1024..16777216", lambda n: 2e-6 + 1e-10 * n, lambda n: 2e-6 + 1e-10 * n),
    "reduction.softmax": Op("rows=1..16384 width=1024", lambda n: 3e-4 + 1e-7 * n, lambda n: 2e-9 * n),
    "optimizer.adamw": Op(
        "tensors=16 elements=64..1048576 impl=foreach", lambda n: 1e-4, lambda n: 9.8e-5, 0.2
    ),
    "conv2d.conv3x3": Op(
        "mnist.conv2: n=1..512 c=32 hw=26 out=64 pad=0",
        lambda n: 1e-4 * n,
        lambda n: 1e-6 * n,
        direction="backward",
        failure=(1, Failure("wrong result", "relative error 0.3")),
    ),
}


def crossed(
    *names: str, budget_seconds: float = 4000.0, interrupts_at: int | None = None, kind: str = "device"
) -> Crossed:
    """These ops, or all of them."""
    clock, chance = [0.0], random.Random(3)
    sides = (
        SIDES
        if kind == "device"
        else (Side("dtype", "float32", "float32"), Side("dtype", "bfloat16", "bfloat16"))
    )
    held = "float32" if kind == "device" else "cpu"
    lines = [
        Line(Subject(name, OPS[name].direction), Sweep.parse(OPS[name].sweep))
        for name in (names or tuple(OPS))
    ]
    sweeps = {line.subject: line.sweep for line in lines}

    def measure(subject: Subject, which: Which, size: int) -> Record:
        clock[0] += 1
        if clock[0] == interrupts_at:
            raise KeyboardInterrupt
        op, number = OPS[subject.op], int(clock[0])
        case = case_of(sides, held, subject, which, sweeps[subject].shape(size))
        if op.failure and which == "contender" and size >= op.failure[0]:
            return Record(case, failure=op.failure[1])
        near = math.exp(chance.gauss(0, op.jitter))
        read = {"throughput": op.cpu(size) if which == "baseline" else max(op.gpu(size), LAUNCH)}
        if case.device == "cuda":
            read |= {"dispatch": LAUNCH, "device": op.gpu(size)}
        clocks = {}
        for name, seconds in read.items():
            values = tuple(seconds * near * (1 + 0.001 * (i % 4)) for i in range(20))
            clocks[name] = Process(case.device, name, values, values, (1.0,) * 20, 7)
        started = f"2026-11-28T08:{number // 60 % 60:02}:{number % 60:02}+00:00"
        return Record(
            case, clocks=clocks, work=Work(float(size), float(size)), machine="workshop", started=started
        )

    rows = sweep(lines, measure, budget_seconds=budget_seconds, now=lambda: clock[0])
    return Crossed(
        sides=sides,
        held=held,
        machine="workshop",
        torch_version="2.13.0",
        session="0f" * 16,
        rows=tuple(rows),
        absent=((Subject("linalg.solve", "forward"), "it does not exist in bfloat16"),),
        tolerance=Tolerance(0.02, "cuda", "", "workshop"),
        alpha=ALPHA,
        factor=FACTOR,
        budget_seconds=budget_seconds,
    )
