"""What one run shares between the replaced functions of asv."""

import contextlib
import itertools
import os
import subprocess
import tempfile
import uuid
from ast import literal_eval
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from accel_micro import profiles
from accel_micro.asv_plugin.errors import WrongUse
from accel_micro.asv_plugin.events import Event, Listener
from accel_micro.asv_plugin.locking import DeviceLocks
from accel_micro.builds.ahead import Ahead
from accel_micro.devices import chosen
from accel_micro.host import cards
from accel_micro.measure.records import Case, Record
from accel_micro.suite import DEVICES

DEVICES_VARIABLE: Final = chosen.VARIABLE

TOOL: Final = "torch"
"""asv's `environment_type`, and its `-E`, of environments that have one of each build."""

OP_KEY: Final = "accel_micro"
"""Under which asv's list of benchmarks holds the suite's facts about one."""


@dataclass
class Batch:
    """One call of asv's `run_benchmarks`: some benchmarks of one build in one environment.

    Attributes:
        selected: benchmark name → indices of its parameter combinations that are run.
        pending: what another clock's process has measured already, by benchmark name and index.
        measured: indices of the benchmark in flight that are done.
        rounds: processes a case in this batch.
        shape: what is run in place of the parameter: a size of a sweep, of which asv knows nothing.
    """

    benchmarks: Mapping[str, Any]
    selected: Mapping[str, Sequence[int] | None]
    environment: str
    results: Any
    report: Mapping[str, Any]
    show_stderr: bool = False
    rounds: int = 1
    shape: str | None = None
    pending: dict[tuple[str, int], Any] = field(default_factory=dict)
    in_flight: str = ""
    measured: set[int] = field(default_factory=set)


@dataclass
class Run:
    """One session: from the start of a run to its end.

    Attributes:
        records: one for each process so far.
        reports: environment and build, see `report_key` → what `prepare` said about it; asking: processes that
            are yet to say it.
        servers: by the same key, fork servers that have started no process of a case and wait to be taken.
        rounds: processes started so far, by build, environment and case.
        failed: answers of cases that failed, by build, environment, benchmark and index: not tried again.
        stopped: somebody pressed Ctrl-C.
        embedded: begun from Python, where errors are raised rather than printed.
        interleaved: rounds go over all builds in turn, so their environments are used to the end.
        cards: fingerprints of the cards that are measured, by kind of device, where they are known.
        unmeasured: id of a build that could not be measured → why.
        ahead: makes environments before they are asked for, where somebody has it done. expected: ids of the builds
            of a range whose turn is to come, in order, where those are made ahead.
        installs: lines about installations that are not written yet, see `results.installs`.
        at_end: what is called when the session ends.
    """

    session: str = field(default_factory=lambda: uuid.uuid4().hex)
    started: str = field(default_factory=lambda: now())
    profile: profiles.Profile = field(default_factory=lambda: _profile())
    asked: tuple[str, ...] = field(default_factory=lambda: _asked_devices())
    listeners: list[Listener] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    reports: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    asking: "dict[str, subprocess.Popen[bytes]]" = field(default_factory=dict)
    servers: dict[str, Any] = field(default_factory=dict)
    rounds: Counter[tuple[str, str, Case]] = field(default_factory=Counter)
    failed: dict[tuple[str, str, str, int], Any] = field(default_factory=dict)
    locks: DeviceLocks = field(default_factory=DeviceLocks)
    headers: set[tuple[str, str]] = field(default_factory=set)
    saved: int = 0
    index: int = 0
    total: int = 0
    stopped: bool = False
    embedded: bool = False
    interleaved: bool = False
    cards: dict[str, str] = field(default_factory=dict)
    unmeasured: dict[str, str] = field(default_factory=dict)
    ahead: Ahead | None = None
    expected: tuple[str, ...] = ()
    installs: list[dict[str, Any]] = field(default_factory=list)
    at_end: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    batch: Batch | None = None
    spool: Path = Path()

    def tell(self, event: Event) -> None:
        """Let the listeners know."""
        for listener in self.listeners:
            listener(event)

    def failure_key(self, batch: Batch, name: str, index: int) -> tuple[str, str, str, int]:
        """Under which `failed` holds the answer of a benchmark's case."""
        return (str(batch.results.commit_hash), batch.environment, name, index)

    def devices(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Devices that are asked for, with what an environment's report says about them."""
        return {name: facts for name, facts in report["devices"].items() if name in self.asked}


_current: Run | None = None


def active() -> Run | None:
    """The run in progress, if there is one."""
    return _current


def current() -> Run:
    """The run in progress.

    Raises:
        RuntimeError: there is none.
    """
    if _current is None:
        raise RuntimeError("no run is in progress")
    return _current


@contextlib.contextmanager
def running(*listeners: Listener) -> Iterator[Run]:
    """Begin a session, or join the one that is in progress."""
    global _current
    if _current is not None:
        yield _current
        return
    with tempfile.TemporaryDirectory(prefix="accel-micro-") as spool, _counted_as_the_driver_does():
        _current = Run(listeners=list(listeners), spool=Path(spool))
        try:
            yield _current
        finally:
            _current.locks.release()
            _current.at_end.close()
            for process in _current.asking.values():
                end(process)
            for server in _current.servers.values():
                server.close()
            _current = None


def report_key(environment: Any) -> str:
    """Under which the run keeps what an environment says: each build of one says it for itself."""
    build = environment.installed_commit_hash if getattr(environment, "tool_name", None) == TOOL else None
    return f"{environment.name} {build}" if build else str(environment.name)


def ready_server(environment: Any) -> Any:
    """Take the fork server that waits for an environment; None where none does."""
    return None if _current is None else _current.servers.pop(report_key(environment), None)


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a process that asv started as leader of its group, if it still runs."""
    if process.poll() is None:
        process.kill()
        process.communicate()


def combinations(benchmark: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The parameter values of each index; asv keeps them as `repr` writes them."""
    return [tuple(map(literal_eval, values)) for values in itertools.product(*benchmark["params"])]


def case_of(benchmark: Mapping[str, Any], index: int) -> Case:
    """The case that an index of a benchmark of the suite stands for."""
    device, dtype, shape = map(literal_eval, _at(benchmark["params"], index))
    facts = benchmark[OP_KEY]
    return Case(op=facts["op"], direction=facts["direction"], device=device, dtype=dtype, shape=shape)


def _at(axes: Sequence[Sequence[str]], index: int) -> list[str]:
    values: list[str] = []
    for axis in reversed(axes):
        index, position = divmod(index, len(axis))
        values.append(axis[position])
    return values[::-1]


def now() -> str:
    """This moment, ISO 8601 in UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _profile() -> profiles.Profile:
    try:
        return profiles.get()
    except ValueError as error:
        raise WrongUse(f"{profiles.ENVIRONMENT_VARIABLE}: {error}") from None


def _asked_devices() -> tuple[str, ...]:
    try:
        return tuple(chosen.asked()) or DEVICES
    except ValueError as error:
        raise WrongUse(str(error)) from None


@contextlib.contextmanager
def _counted_as_the_driver_does() -> Iterator[None]:
    """CUDA numbers GPUs as nvidia-smi does, in all processes of the run, unless somebody wants another order."""
    if cards.ORDER_VARIABLE in os.environ:
        yield
        return
    os.environ[cards.ORDER_VARIABLE] = cards.BUS_ORDER
    try:
        yield
    finally:
        os.environ.pop(cards.ORDER_VARIABLE, None)
