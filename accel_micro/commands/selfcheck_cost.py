"""Section 3 of `selfcheck`: seconds to a given precision, what reading costs besides, start-up, processes."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import TYPE_CHECKING, Final

from accel_micro.selfcheck.findings import Column, Row, Table, Value
from accel_micro.selfcheck.rates import Rounds, precision

if TYPE_CHECKING:
    from accel_micro.selfcheck.peers.reading import Known

Told = Callable[[str], None]

PRECISION_COLUMNS: Final = (
    Column("seconds", "seconds to ±1 %", "seconds", "low", 0.1),
    Column("processes", "processes", "count"),
    Column("process", "a process", "seconds"),
    Column("spread", "spread of processes", "share"),
)
READING_COLUMNS: Final = (
    Column("spent", "a reading", "seconds"),
    Column("counted", "of it in calls that count", "share", "high", 0.02),
)
START_COLUMNS: Final = (Column("seconds", "median", "seconds", "low", 0.1), Column("runs", "runs", "count"))
PROCESS_COLUMNS: Final = (
    Column("process", "a process", "seconds", "low", 0.1),
    Column("whole", "24 combinations × 3 builds", "seconds", "low", 0.1),
    Column("factor", "over ours", "factor"),
)
COMBINATIONS, BUILDS = 24, 3

_STARTS: Final = 5
_SAMPLED: Final = 6
_SPIN_SECONDS: Final = 100e-6
_READINGS: Final = 3


def precision_table(rounds: Rounds, names: Mapping[str, str]) -> Table | None:
    """Machine time until the mean of process medians is known within ±1 %, for the median op.

    Args:
        names: whose processes, as `peers.worker` calls them, and the name to show.
    """
    rows = []
    for reads, name in names.items():
        found = [one for op in rounds.ops(reads) if (one := precision(rounds, reads, op)) is not None]
        if not found:
            continue
        middle = sorted(found, key=lambda one: one.seconds)[len(found) // 2]
        values: dict[str, Value] = {
            "seconds": middle.seconds,
            "processes": middle.processes,
            "process": middle.process_seconds,
            "spread": middle.spread,
        }
        rows.append(Row(name, values, ours=name == "ours"))
    if not rows:
        return None
    note = (
        "Processes of the same work scatter; so many give a 95 % interval of ±1 %. Of the ops of section 2 the one in "
        "the middle. Starting an interpreter is not counted: it is the same for all."
    )
    return Table("Known within ±1 %", PRECISION_COLUMNS, tuple(rows), note)


def reading_table(readings: "Mapping[str, Sequence[Known]]") -> Table:
    """What share of a reading goes into calls whose times count; the rest is warm-up, probes and calibration."""
    rows = [
        Row(
            name,
            {
                "spent": fmean(one.spent for one in runs),
                "counted": fmean(one.counted / one.spent for one in runs),
            },
            ours=name == "ours",
        )
        for name, runs in readings.items()
    ]
    return Table("A reading of a call of 100 µs", READING_COLUMNS, tuple(rows))


def read_readings() -> "dict[str, list[Known]]":
    """A few readings by each harness."""
    from accel_micro.measure.sampling import opened
    from accel_micro.selfcheck.peers.reading import known_readings
    from accel_micro.selfcheck.peers.witnesses import KnownSpin

    found: dict[str, list[Known]] = {}
    with opened("cpu") as device:
        spin = KnownSpin.of(_SPIN_SECONDS)
        for _ in range(_READINGS):
            for name, read in known_readings(device, spin).items():
                spin.lengths.clear()
                found.setdefault(name, []).append(read())
    return found


def start_table() -> Table:
    """Commands that do nothing but help, in turns."""
    commands = {
        "accel-micro --help": (True, ["-m", "accel_micro", "--help"]),
        "asv --help": (False, ["-m", "asv", "--help"]),
        "import torch.utils.benchmark": (False, ["-c", "import torch.utils.benchmark"]),
        "an interpreter alone": (False, ["-c", "pass"]),
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(_STARTS):
        for name, (_, arguments) in commands.items():
            start = perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            seconds[name].append(perf_counter() - start)
    alone = frozenset({"seconds"})
    rows = tuple(
        Row(
            name,
            {"seconds": median(seconds[name]), "runs": _STARTS},
            ours=is_ours,
            void=alone if name == "an interpreter alone" else frozenset(),
        )
        for name, (is_ours, _) in commands.items()
    )
    return Table("Start-up", START_COLUMNS, rows, first="command")


_PLAIN: Final = """
import torch


class Time:
    params = [list(range({count}))]
    param_names = ["n"]
    warmup_time = 0
    number = 1
    repeat = 1
    rounds = 1

    def setup(self, n):
        self.x = torch.randn(64)

    def time_add(self, n):
        self.x + 1
"""

_OURS: Final = """
import torch  # noqa: F401

from accel_micro.asv_plugin import timing
from accel_micro.measure import Process
from accel_micro.measure.records import Record
from accel_micro.suite import OpBenchmark, op

timing.install()


def answer(self, direction, *parameters, clocks, samples=None, budget_seconds=None):
    values = (1e-3,) * 20
    read = {{clock: Process(parameters[0], clock, values, values, (1.0,) * 20, 1) for clock in clocks}}
    return Record(self.case(direction, *parameters), clocks=read)


OpBenchmark.run = answer


@op(quick=[f"n={{n}}" for n in range({count})], backward=False)
def nothing(t, n):
    pass
"""

_ASV_CONF: Final = {
    "version": 1,
    "project": "plain",
    "environment_type": "existing",
    "branches": ["main"],
}


def ours_suite(count: int) -> str:
    """`benchmarks/__init__.py` of a suite of ours of so many cases, whose measuring takes no time."""
    return _OURS.format(count=count)


def plain_suite(count: int) -> str:
    """A module of benchmarks for asv without a plugin: so many combinations, which do next to nothing."""
    return _PLAIN.format(count=count)


def forked_seconds(count: int) -> list[float]:
    """Lives of processes of ours, whose measuring takes no time, in a suite of so many cases."""
    from accel_micro.asv_plugin import session
    from accel_micro.asv_plugin.config import find_config
    from accel_micro.asv_plugin.events import CaseFinished, Event

    lives: list[float] = []

    def listen(event: Event) -> None:
        if isinstance(event, CaseFinished):
            lives.append(event.seconds)

    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder)
        (suite / "benchmarks").mkdir()
        (suite / "benchmarks" / "__init__.py").write_text(ours_suite(count), encoding="utf-8")
        own = find_config(None).path
        (suite / own.name).write_text(own.read_text(encoding="utf-8"), encoding="utf-8")
        session.run(suite, profile="quick", devices=["cpu"], listener=listen, save=False)
    return lives


def spawned_seconds(count: int) -> list[float]:
    """Seconds of `asv run --launch-method spawn` of so many combinations that do next to nothing, for each."""
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder)
        (suite / "benchmarks").mkdir()
        (suite / "benchmarks" / "__init__.py").touch()
        (suite / "asv.conf.json").write_text(json.dumps({**_ASV_CONF, "repo": folder}), encoding="utf-8")
        base = [sys.executable, "-m", "asv"]
        environment_options = ["-E", f"existing:{sys.executable}", "--launch-method", "spawn", "--dry-run"]
        found = []
        git = ["git", "-C", folder, "-c", "user.name=selfcheck", "-c", "user.email=selfcheck@localhost"]
        for arguments in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "one"]):
            subprocess.run([*git, *arguments], check=True, capture_output=True)
        subprocess.run([*base, "machine", "--yes"], cwd=folder, check=True, capture_output=True)
        for combinations in (1, count):
            (suite / "benchmarks" / "ops.py").write_text(plain_suite(combinations), encoding="utf-8")
            start = perf_counter()
            subprocess.run(
                [*base, "run", *environment_options, "--quick"], cwd=folder, check=True, capture_output=True
            )
            found.append(perf_counter() - start)
    return [(found[1] - found[0]) / (count - 1)] * count


def process_table(ours: Sequence[float], spawned: Sequence[float]) -> Table:
    """What starting processes costs alone, projected to 24 combinations on 3 builds."""
    times = COMBINATIONS * BUILDS
    mine = median(ours)
    rows = tuple(
        Row(
            name,
            {"process": each, "whole": times * each, "factor": each / mine},
            ours=is_ours,
        )
        for name, each, is_ours in (
            ("ours, forked after the imports", mine, True),
            ("plain asv, spawned", median(spawned), False),
        )
    )
    note = (
        f"Starting and ending processes that measure nothing, of {len(ours)} each, times {times}. Installing is not in "
        "it: `python -m tests.end_to_end.whole_suite` runs both whole, with real wheels."
    )
    return Table("Processes", PROCESS_COLUMNS, rows, note, first="suite")
