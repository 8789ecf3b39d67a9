"""A folder of results as two weeks of nightlies leave it, with a regression planted in one case of the newest build."""

import json
import math
from pathlib import Path
from statistics import NormalDist

from accel_micro.builds import Build, Ledger, identify
from accel_micro.measure import Process
from accel_micro.measure.flags import Flag
from accel_micro.measure.records import SUFFIX, Case, Failure, Record, append
from accel_micro.results import sessions

DAYS = tuple(f"2.15.0.dev202611{day:02}" for day in range(1, 15) if day != 6)
NEWEST, BEFORE = DAYS[-1], DAYS[-2]
ENVIRONMENT = "torch-py3.11"
PROCESSES = 5

MM = Case("matmul.mm", "forward", "cpu", "float32", "m=1024 k=1024 n=1024")
BMM = Case("matmul.bmm", "forward", "cpu", "float32", "b=8 m=32 k=32 n=32")
CONV = Case("conv2d.conv3x3", "backward", "cpu", "bfloat16", "n=4 c=64 hw=28 out=64")
ADAM = Case("optimizer.adam", "forward", "cpu", "float32", "n=1000000")
WRONG = Case("attention.sdpa", "forward", "cpu", "bfloat16", "b=1 h=8 s=128 d=64")

SLOWER = 1.2
"""What MM takes on the newest build ÷ before. CONV got faster by 1.1, eight builds before; BMM is too noisy to tell."""


def wobble(number: int, spread: float) -> float:
    """A factor near one; the same numbers on every machine, and normal over many of them."""
    share = ((number * 0.618033988749895) % 1) * 0.998 + 0.001
    return math.exp(spread * NormalDist().inv_cdf(share))


def seconds(case: Case, day: int) -> float:
    """What a call of a case takes on a build."""
    typical = {MM: 12e-3, BMM: 41e-6, CONV: 2.3e-3, ADAM: 0.8e-3, WRONG: 60e-6}[case]
    if case is MM and day == len(DAYS) - 1:
        return typical * SLOWER
    return typical / 1.1 if case is CONV and day >= len(DAYS) - 8 else typical


def record(case: Case, build: Build, day: int, number: int, machine: str = "workshop") -> Record:
    """One process; both builds of the end are measured in one session, interleaved."""
    spread = 0.06 if case is BMM else 0.002
    middle = seconds(case, day) * wobble(1 + 31 * day + 7 * number + len(case.shape), spread)
    values = tuple(middle * wobble(number + 3 * sample, 0.01) for sample in range(20))
    flags = (Flag("noisy", "samples scatter"),) if case is BMM else ()
    process = Process("cpu", "throughput", values, values, (1.0,) * 20, 100, flags=flags)
    last = day >= len(DAYS) - 2
    session = "end" if last else f"day {day}"
    started = f"2026-11-{14 if last else day + 1:02}T1{number}:{day:02}:00+00:00"
    whose = {"machine": machine, "build": build.id, "environment": ENVIRONMENT, "session": session}
    if case is WRONG and last:
        failure = Failure("wrong result", "relative error 0.3 <script>document.title='owned'</script>")
        return Record(case, failure=failure, started=started, **whose)
    return Record(case, {"throughput": process}, started=started, precision={"threads": 2}, **whose)


def write_results(results: Path, machine: str = "workshop") -> Path:
    """Write it; one build lacks one case, one day has no nightly. Returns the folder."""
    ledger = Ledger.beside(results)
    for day, version in enumerate(DAYS):
        build = ledger.remember(identify(version, f"{day:040x}"))
        path = results / machine / f"{build.id[:8]}-{ENVIRONMENT}{SUFFIX}"
        for number in range(PROCESSES):
            for case in (MM, BMM, CONV, ADAM, WRONG):
                if case is not ADAM or day != 4:
                    append(path, record(case, build, day, number, machine))
        line = {
            "schema": 1,
            "session": "end" if day >= len(DAYS) - 2 else f"day {day}",
            "started": f"2026-11-{day + 1:02}T10:00:00+00:00",
            "command": ["accel-micro", "quick"],
            "profile": "standard",
            "build": build.id,
            "environment": ENVIRONMENT,
            "host": {
                "cpu": {
                    "model": "AMD EPYC 9R14",
                    "cores": 2,
                    "governor": "performance" if day < 12 else "powersave",
                },
                "system": {"os": "Debian 12"},
            },
            "torch": {"build": {"version": f"{version}+cpu"}, "threads": 2},
        }
        with (path.parent / sessions.FILE_NAME).open("a") as file:
            file.write(json.dumps(line) + "\n")
    return results
