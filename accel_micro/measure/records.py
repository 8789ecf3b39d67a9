"""What a process leaves behind besides asv's samples: one JSON line, kept beside asv's results.

asv stores samples and nothing about them. A record holds the rest: every clock's raw values, speeds and flags, the
error of the result, the work, the peaks and, where a case failed, why.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from accel_micro.appending import append_text
from accel_micro.measure.process import Process

SCHEMA: Final = 1
SUFFIX: Final = ".processes.jsonl"
"""Ending of the files that hold records; one file a machine and build, named as asv names its own."""

FAILURES: Final[dict[str, str]] = {
    "wrong result": "the output differs from the float64 reference; no time is published",
    "implausible": "faster than the device can be, so not all of the work was timed; no time is published",
    "rejected": "the backend's counters show that something else than the op was timed; no time is published",
    "crashed": "the process died",
    "timed out": "the case hung and was ended",
    "out of memory": "the case does not fit on this machine",
    "failed": "the op raised an error",
}
"""Kinds of failure and what they mean. Each costs its own case only."""


@dataclass(frozen=True)
class Failure:
    """Why a case has no time. `kind` is a key of `FAILURES`; `detail` is the error itself."""

    kind: str
    detail: str = ""


@dataclass(frozen=True)
class Check:
    """Comparison with the float64 reference: relative errors, and the largest that is allowed."""

    error: float
    tolerance: float
    worst_element_error: float = 0.0
    reference: str = "cpu"


@dataclass(frozen=True)
class Work:
    """What one call must do at least: floating-point operations, and bytes read and written once.

    `fewest_flops` is the least that any algorithm in use needs (Winograd needs fewer than `flops`); it is what
    plausibility is judged by.
    """

    flops: float = 0.0
    bytes: float = 0.0
    fewest_flops: float | None = None


@dataclass(frozen=True)
class Peak:
    """What this machine was measured to reach, for the dtype of the case and the size of its data."""

    flops_per_second: float | None = None
    bytes_per_second: float | None = None


@dataclass(frozen=True)
class Cold:
    """How the inputs of a cold case were kept out of the cache: calls took `sets` of them in turn.

    Attributes:
        sets: input sets, each with memory of its own and the same values.
        read_bytes: what a call reads, or overwrites, of its set.
        cache_bytes: the last-level cache, which `sets × read_bytes` exceed more than twice.
        cache: where its size is from. assumed: nothing told it.
    """

    sets: int
    read_bytes: float
    cache_bytes: int
    cache: str = ""
    assumed: bool = False


def method_name(direction: str, clock: str) -> str:
    """The method of an op's class that reads one clock: `time_forward`, `time_backward_device`."""
    return f"time_{direction}" if clock == "throughput" else f"time_{direction}_{clock}"


@dataclass(frozen=True)
class Case:
    """op × shape × dtype × device, and the direction: `forward` or `backward`."""

    op: str
    direction: str
    device: str
    dtype: str
    shape: str

    @property
    def family(self) -> str:
        """The file under benchmarks/ that defines the op."""
        return self.op.split(".")[0]

    def named(self, clock: str = "throughput") -> str:
        """As asv names it: `matmul.mm.time_forward('cpu', 'float32', 'm=64 k=64 n=64')`."""
        method = method_name(self.direction, clock)
        return f"{self.op}.{method}({self.device!r}, {self.dtype!r}, {self.shape!r})"

    def __str__(self) -> str:
        return f"{self.op} {self.direction} {self.dtype} {self.shape} on {self.device}"


@dataclass(frozen=True)
class Record:
    """One process of one case: what every clock read, or why there is nothing to read.

    Attributes:
        case: what was timed.
        clocks: a `Process` for each clock that was read.
        failure: why there is no time, else None.
        skipped: why the case does not exist here (no such kernel, no such device), else None.
        check: agreement with the float64 reference.
        work: least work of one call. peak: what the machine can do.
        peak_memory_bytes: most memory held during one call beyond its inputs, None when unknown.
        device_interval: least and most seconds for which a call keeps the device busy, where it has no clock of its own
            and the two are known from throughput and dispatch.
        cold: how its inputs were kept out of the cache, where that was asked for.
        precision: TF32, cudnn.benchmark and such modes, and the number of threads.
        hardware: which card it was, its power limits, clock, temperature and throttling, or why these are not watched.
        seconds: what the process spent on each phase: prepare, check, peak, measure, memory.
        machine, build, environment, session, round, started: whose process it was; filled in by asv's side.
    """

    case: Case
    clocks: Mapping[str, Process] = field(default_factory=dict)
    failure: Failure | None = None
    skipped: str | None = None
    check: Check | None = None
    work: Work | None = None
    peak: Peak | None = None
    peak_memory_bytes: int | None = None
    device_interval: tuple[float, float] | None = None
    cold: Cold | None = None
    precision: Mapping[str, Any] = field(default_factory=dict)
    hardware: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    machine: str = ""
    build: str = ""
    environment: str = ""
    session: str = ""
    round: int = 1
    started: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data with the schema's number. Without `cold` where it is None: older versions read such a record."""
        data = asdict(self)
        if self.cold is None:
            del data["cold"]
        data["clocks"] = {name: process.to_json() for name, process in self.clocks.items()}
        data["precision"], data["hardware"] = dict(self.precision), dict(self.hardware)
        data["seconds"] = dict(self.seconds)
        return {"schema": SCHEMA, **data}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Record":
        """The inverse of `to_json`.

        Raises:
            KeyError, TypeError, ValueError: the data is not a record of this schema.
        """
        if data["schema"] != SCHEMA:
            raise ValueError(f"record of schema {data['schema']!r}, this version reads {SCHEMA}")
        rest = {"seconds": {}, **{key: value for key, value in data.items() if key != "schema"}}
        interval = rest.get("device_interval")
        rest["device_interval"] = None if interval is None else (float(interval[0]), float(interval[1]))
        rest["case"] = Case(**data["case"])
        rest["clocks"] = {name: Process.from_json(value) for name, value in data["clocks"].items()}
        for key, kind in (("failure", Failure), ("check", Check), ("work", Work), ("peak", Peak)):
            rest[key] = kind(**data[key]) if data[key] is not None else None
        rest["cold"] = Cold(**data["cold"]) if data.get("cold") is not None else None
        return cls(**rest)


def append(path: Path, record: Record) -> None:
    """Add a record to a file, in one write, so that processes which share the file do not tear each other's lines."""
    append_line(path, record.to_json())


def append_line(path: Path, data: Mapping[str, Any], default: Callable[[Any], Any] | None = None) -> None:
    """Add a line of JSON to a file in one write; one that was cut short before it does not take it along.

    Args:
        default: what becomes of values that JSON does not know; without it they raise TypeError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    append_text(path, json.dumps(data, separators=(",", ":"), default=default) + "\n")


def read(path: Path, problems: list[str] | None = None) -> Iterator[Record]:
    """The records of a file. A torn or foreign line is skipped, and named in `problems` when that is given."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                yield Record.from_json(json.loads(line))
            except (
                LookupError,
                TypeError,
                ValueError,
                ArithmeticError,
                AttributeError,
                RecursionError,
            ) as error:
                if problems is not None:
                    problems.append(
                        f"{path}:{number}: not a record, skipped ({type(error).__name__}: {error})"
                    )


def read_all(results: Path, problems: list[str] | None = None) -> Iterator[Record]:
    """The records of every machine and build below a results folder, in order of file name."""
    for path in sorted(results.rglob(f"*{SUFFIX}")):
        yield from read(path, problems)
