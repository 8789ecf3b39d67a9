"""Folders of results made by hand: builds, devices and machines that differ as told, the same on every platform."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accel_micro.builds import Ledger, identify
from accel_micro.measure.process import Process
from accel_micro.measure.records import Case, Failure, Record
from tests.report.fixtures import scatter

OLD, NEW = identify("2.14.1+cpu"), identify("2.15.0.dev20261101+cpu")
SHIFTS = (0.0, 0.004, -0.003, 0.002, -0.004, 0.001, -0.001)
"""How far processes lie from their trial's time, relative."""


class Results:
    """A folder of results that grows by one call a trial.

    >>> results.trial(OLD.version, case("add"), 1e-5, session="s")   # doctest: +SKIP
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ledger = Ledger.beside(path)
        self._sessions: set[tuple[str, str, str, str]] = set()
        self._count = 0

    def trial(
        self,
        version: str,
        case: Case,
        seconds: float | Mapping[str, float],
        *,
        processes: int = 5,
        machine: str = "workshop",
        environment: str = "torch-py3.11",
        session: str = "s1",
        spread: float = 1.0,
        at: int = 0,
        precision: Mapping[str, Any] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Records of so many processes; `at` is the minute in which the first began, the others follow it.

        Args:
            seconds: by clock, else of throughput. spread: how many times the usual scatter of processes.
            facts: of the session, see `session`.
        """
        by_clock = seconds if isinstance(seconds, Mapping) else {"throughput": seconds}
        for number in range(processes):
            shift = 1 + spread * SHIFTS[(number + 2 * self._count) % len(SHIFTS)]
            clocks = {
                clock: self._process(case.device, clock, value * shift, number)
                for clock, value in by_clock.items()
            }
            self.record(
                version,
                Record(case, clocks=clocks, precision=precision or {"threads": 2}),
                machine=machine,
                environment=environment,
                session=session,
                at=at + 2 * number,
            )
        self._count += 1
        self.session(version, machine, environment, session, facts)

    def _process(self, device: str, clock: str, seconds: float, number: int) -> Process:
        samples = tuple(seconds * (1 + 0.001 * z) for z in scatter(number))
        return Process(device, clock, samples, samples, (1.0,) * len(samples), 100)

    def without_time(
        self,
        version: str,
        case: Case,
        failure: Failure | None = None,
        skipped: str | None = None,
        **where: Any,
    ) -> None:
        """A record of a failure or of a skip."""
        self.record(version, Record(case, failure=failure, skipped=skipped), **where)

    def record(
        self,
        version: str,
        record: Record,
        *,
        machine: str = "workshop",
        environment: str = "torch-py3.11",
        session: str = "s1",
        at: int = 0,
    ) -> None:
        """One line, in the file in which a run would write it."""
        build = self.ledger.remember(identify(version), 1_790_000_000_000)
        data = record.to_json() | {
            "machine": machine,
            "build": build.id,
            "environment": environment,
            "session": session,
            "started": f"2026-11-27T{10 + at // 60:02d}:{at % 60:02d}:00+00:00",
        }
        self.add_line(machine, f"{build.id[:8]}-{environment}.processes.jsonl", json.dumps(data))

    def session(
        self,
        version: str,
        machine: str,
        environment: str,
        session: str,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """The line of a session, once; `facts` has `host` and `torch`."""
        build = identify(version)
        key = (machine, session, build.id, environment)
        if key in self._sessions or facts == {}:
            return
        self._sessions.add(key)
        known = facts or {}
        line = {
            "schema": 1,
            "session": session,
            "started": "2026-11-27T10:00:00+00:00",
            "build": build.id,
            "environment": environment,
            "host": known.get("host", {"cpu": {"allowed_cores": 2}}),
            "torch": known.get("torch", {"build": {"version": version}}),
        }
        self.add_line(machine, "sessions.jsonl", json.dumps(line))

    def add_line(self, machine: str, name: str, text: str) -> None:
        """Any line of any file."""
        path = self.path / machine / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text + "\n")


def case(
    op: str = "matmul.mm",
    shape: str = "m=64 k=64 n=64",
    *,
    device: str = "cpu",
    dtype: str = "float32",
    direction: str = "forward",
) -> Case:
    """A case, as far as it matters."""
    return Case(op, direction, device, dtype, shape)


def two_builds(path: Path, invariant: int = 12, others: Sequence[str] = ("few", "failures")) -> Results:
    """Two builds in interleaved processes, with every verdict among the rows, and what cannot be compared."""
    results = Results(path)
    driver = {"gpu": {"devices": [{"name": "NVIDIA H100", "driver": "570.86", "clock_hertz": 345000000}]}}
    newer = {"gpu": {"devices": [{"name": "NVIDIA H100", "driver": "580.12", "clock_hertz": 1980000000}]}}
    torch = {"build": {"version": "", "cuda": "12.8"}, "libraries": {"mkl": "2024.2"}}
    facts = (
        {"host": {"cpu": {"allowed_cores": 2}, **driver}, "torch": torch},
        {"host": {"cpu": {"allowed_cores": 2}, **newer}, "torch": {**torch, "libraries": {"mkl": "2025.0"}}},
    )

    def both(what: Case, seconds: float, ratio: float, **options: Any) -> None:
        for number, (build, value) in enumerate(((OLD, seconds), (NEW, seconds * ratio))):
            results.trial(build.version, what, value, at=number, facts=facts[number], **options)

    both(case(shape="m=1024 k=1024 n=1024"), 1.234e-3, 1.051)
    both(case("convolution.conv2d", "resnet.layer1: n=4 c=64 h=56 w=56 kernel=3"), 8.1e-4, 1.4)
    both(case("elementwise.add", "n=1048576", direction="backward"), 9.87e-5, 1.08)
    both(case("normalization.layer_norm", "n=32 c=1024"), 4.56e-5, 0.93)
    both(case("pooling.max", "n=8 c=64 h=56 w=56"), 7.7e-5, 1.021, spread=6)
    both(case("attention.sdpa", "b=4 h=16 s=128 d=64"), 3.3e-4, 1.013, spread=3)
    for number in range(invariant):
        both(case("elementwise.mul", f"n={2**number}"), 1e-6 * 2 ** (number / 2), 1 + 0.0004 * number)
    if "few" in others:
        both(case("optimizer.adam", "parameters=1000"), 5e-5, 1.5, processes=1)
    if "failures" in others:
        bad = case("convolution.conv2d", "n=1 c=3")
        both(bad, 1e-4, 0.5)
        wrong = Failure("wrong result", "relative error 3.1e-02, allowed 1.9e-03")
        results.without_time(NEW.version, bad, wrong)
        for shape in ("n=1", "n=2"):
            results.trial(OLD.version, case("sorting.sort", shape), 1e-5, facts=facts[0])
            results.without_time(NEW.version, case("sorting.sort", shape), Failure("crashed", "signal 11"))
        for build in (OLD, NEW):
            results.without_time(
                build.version, case("fft.rfft", "n=64", dtype="bfloat16"), skipped="no kernel"
            )
        results.trial(NEW.version, case("matmul.addmm", "m=8"), 1e-5, facts=facts[1])
    return results


def two_devices(path: Path) -> Results:
    """The same cases on a CPU and on a GPU, on which more clocks are read; one of them is slower there."""
    results = Results(path)
    for shape, cpu, cuda in (("m=64 k=64 n=64", 8e-6, 1.4e-5), ("m=1024 k=1024 n=1024", 9e-3, 4.2e-5)):
        results.trial(NEW.version, case(shape=shape), cpu, machine="gpu-node")
        clocks = {"throughput": cuda, "dispatch": 1.3e-5, "device": cuda * 0.9}
        results.trial(NEW.version, case(shape=shape, device="cuda"), clocks, machine="gpu-node", at=1)
        half = {"throughput": cuda * 0.6, "dispatch": 1.31e-5, "device": cuda * 0.5}
        half_precise = case(shape=shape, device="cuda", dtype="bfloat16")
        results.trial(NEW.version, half_precise, half, machine="gpu-node", session="s2", at=30)
    return results
