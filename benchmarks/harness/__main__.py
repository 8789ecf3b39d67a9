"""Benchmarks of accel_micro itself: is what it reads true, and what does reading cost? Run by hand, printed as ratios.

python -m benchmarks.harness clocks --device cuda   # our clocks against each other and CUPTI, and times without a sync
python -m benchmarks.harness clocks --device-only   # our device clock against CUPTI alone, for a whole profile
python -m benchmarks.harness peers --device cuda    # our clocks and other harnesses' against CUPTI, in turns
python -m benchmarks.harness peers --device cpu     # the same against a spin that notes its own length
python -m benchmarks.harness check --device cuda    # every case of a profile against float64, nothing timed
python -m benchmarks.harness explain same          # the same setting against itself: nothing to explain
python -m benchmarks.harness cold --device cuda     # times of cold cases by how much data lies between two uses
python -m benchmarks.harness gate                   # medians of processes: raw, gated, less time without a core
python -m benchmarks.harness help                   # how soon `accel-micro --help` answers
python -m benchmarks.harness launch                 # asv's processes by fork and by spawn, 24 cases
python -m benchmarks.harness ledger                 # a ledger of three years: sync, list, resolve a range
python -m benchmarks.harness compare                # ten thousand cases of two builds, from files to the table
python -m benchmarks.harness publish                # the pages of a year of builds and five hundred cases
python -m benchmarks.harness reports --device cpu   # public reports on other harnesses, tried here
python -m benchmarks.harness bisect                 # bisections of histories that do not exist: wrong ones, and runs
python -m benchmarks.harness releases               # bisections between real releases; downloads gigabytes
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from math import log
from pathlib import Path
from statistics import median, stdev
from time import perf_counter
from typing import Any

from accel_micro.devices import UnknownDevice, get
from accel_micro.selfcheck.inventing import write_index, write_results
from benchmarks.harness import explain, releases
from benchmarks.harness.check import check
from benchmarks.harness.clocks import clocks
from benchmarks.harness.cold import cold
from benchmarks.harness.peers import BUDGET_SECONDS, FAMILIES, peers
from benchmarks.harness.reports.command import add_options

_ONE_PROCESS = """
import json, sys, torch
from time import perf_counter
from accel_micro.devices.waiting import thread_waited_seconds
from accel_micro.measure.sampling import Sampler, opened
from accel_micro.selfcheck.peers.stopwatches import asv_process
a, b = torch.randn(8, 32, 32), torch.randn(8, 32, 32)
call = lambda: torch.bmm(a, b)
with opened("cpu") as device:
    sampler = Sampler(device, call, float(sys.argv[1]))
    sampler.warm_up()
    calls = sampler._blocks.calls_for_block()
    raw, own = [], []
    for _ in range(20):
        waited, start = thread_waited_seconds(), perf_counter()
        raw.append(sampler._blocks.seconds_of(calls) / calls)
        share = (thread_waited_seconds() - waited) / (perf_counter() - start)
        own.append(raw[-1] * (1 - share))
    gated = sampler.read("throughput")
    single = sorted(asv_process(call)[0])
flags = [str(flag) for flag in gated.flags]
print(json.dumps([sorted(raw)[10], gated.median_seconds, sorted(own)[10], single[len(single) // 2], flags]))
"""
_GATE_COLUMNS = ("raw", "gated", "own", "asv")


def gate(options: argparse.Namespace) -> None:
    """Fresh processes of one small op, each timed four ways.

    Twenty blocks as they come; through the speed gate; twenty blocks less the time for which the thread that calls had
    no core; and as asv does, the median of single calls.
    """
    read: dict[str, list[float]] = {name: [] for name in _GATE_COLUMNS}
    print("process " + "".join(f"{name + ' µs':>10s}" for name in _GATE_COLUMNS) + "  flags of the gated")
    for number in range(options.processes):
        command = [sys.executable, "-c", _ONE_PROCESS, str(options.budget)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
        out = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        *seconds, flags = json.loads(out)
        for values, one in zip(read.values(), seconds, strict=True):
            values.append(one)
        print(
            f"{number + 1:7d} " + "".join(f"{1e6 * one:10.2f}" for one in seconds) + f"  {'; '.join(flags)}",
            flush=True,
        )
    ratios = ", ".join(f"{name} {max(values) / min(values):.2f}" for name, values in read.items())
    print(f"largest ÷ smallest median: {ratios}")
    if options.processes > 1:
        spreads = ", ".join(f"{name} {stdev(map(log, values)):.3f}" for name, values in read.items())
        print(f"standard deviation of the logs: {spreads}")


def help_(options: argparse.Namespace) -> None:
    """`accel-micro --help` beside an interpreter that does nothing, in turns."""
    script = Path(sys.executable).with_name("accel-micro")
    command = [str(script)] if script.exists() else [sys.executable, "-m", "accel_micro"]
    commands = {"python -c pass": [sys.executable, "-c", "pass"], "accel-micro --help": [*command, "--help"]}
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(options.runs):
        for name, arguments in commands.items():
            start = perf_counter()
            subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
            seconds[name].append(perf_counter() - start)
    nothing, answered = (median(values) for values in seconds.values())
    for name, values in seconds.items():
        print(
            f"{name:20s} median of {len(values)}: {1e3 * median(values):.0f} ms, least {1e3 * min(values):.0f}"
        )
    print(f"accel-micro --help ÷ python -c pass: {answered / nothing:.1f}")


# Cases whose process answers at once: how long measuring takes does not depend on how a process is started.
_SUITE_OF_24 = """
import torch  # noqa: F401

from accel_micro.asv_plugin import timing
from accel_micro.measure import Process
from accel_micro.measure.records import Record
from accel_micro.suite import OpBenchmark, op

timing.install()


def answer(self, direction, *parameters, clocks, samples=None, budget_seconds=None):
    values = (1e-3,) * 20
    read = {clock: Process(parameters[0], clock, values, values, (1.0,) * 20, 1) for clock in clocks}
    return Record(self.case(direction, *parameters), clocks=read)


OpBenchmark.run = answer


@op(quick=[f"n={n}" for n in range(24)], backward=False)
def nothing(t, n):
    pass
"""


def launch(options: argparse.Namespace) -> None:
    """`asv run` of 24 cases, whose processes are forked from a server that has imported torch, or spawned by asv."""
    from accel_micro.asv_plugin import session
    from accel_micro.asv_plugin.events import CaseFinished, Event

    whole: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder)
        (suite / "benchmarks").mkdir()
        (suite / "benchmarks" / "__init__.py").write_text(_SUITE_OF_24, encoding="utf-8")
        own = Path(__file__).parents[1] / "asv.conf.json"
        (suite / own.name).write_text(own.read_text(encoding="utf-8"), encoding="utf-8")
        for method in ("forkserver", "spawn"):
            lives: list[float] = []

            def listen(event: Event, lives: list[float] = lives) -> None:
                if isinstance(event, CaseFinished):
                    lives.append(event.seconds)

            start = perf_counter()
            session.run(suite, profile="quick", devices=["cpu"], listener=listen, launch_method=method)
            whole[method] = perf_counter() - start
            print(
                f"{method:10s} {len(lives)} processes, {median(lives):5.2f} s each; whole run {whole[method]:5.1f} s",
                flush=True,
            )
    print(f"whole run, spawn ÷ forkserver: {whole['spawn'] / whole['forkserver']:.1f}")


def ledger(options: argparse.Namespace) -> None:
    """Seconds of what people wait for with a ledger of many builds, each read anew from its file."""
    import io

    from rich.console import Console

    from accel_micro.builds import Ledger, Target
    from accel_micro.builds.ranges import missing_days, select
    from accel_micro.builds.sync import sync
    from accel_micro.builds.web import Web
    from accel_micro.report.builds import build_rows, print_builds

    targets = [Target.here(("cpu",))]
    with tempfile.TemporaryDirectory() as name, Web() as web:
        folder = Path(name)
        versions = write_index(folder / "all", options.builds)
        write_index(folder / "newest", 60)
        path = folder / "results" / "builds.jsonl"

        def read(index: str) -> int:
            return len(sync(Ledger(path), [str(folder / index)], targets, web, commits=False).builds)

        def listed() -> int:
            builds = Ledger(path)
            rows = build_rows(builds, builds.ordered(), targets, {})
            print_builds(rows, missing_days(builds.ordered()), Console(file=io.StringIO(), width=120))
            return len(rows)

        def resolved() -> int:
            return len(select(Ledger(path), f"{versions[1]}..{versions[-2]}"))

        steps: dict[str, Any] = {
            "sync, all of them new": lambda: read("all"),
            "sync, an index of all, none new": lambda: read("all"),
            "sync, PyTorch's page of 60": lambda: read("newest"),
            "list all": listed,
            "resolve a range": resolved,
        }
        first = next(iter(steps.values()))
        for what, step in steps.items():
            runs = 1 if step is first else options.runs
            seconds, counts = [], []
            for _ in range(runs):
                start = perf_counter()
                counts.append(step())
                seconds.append(perf_counter() - start)
            print(f"{what:32s} {median(seconds):6.3f} s   {counts[-1]} builds", flush=True)
        print(f"ledger: {path.stat().st_size / 1e6:.2f} MB, {options.builds} builds with a wheel each")


_COMPARE = """
import io, resource, sys, time
start = time.perf_counter()
from pathlib import Path
from accel_micro.builds import Ledger
from accel_micro.comparison.comparing import Request, compare
from accel_micro.report.comparison import render
results = Path(sys.argv[1])
comparison = compare(Request(*sys.argv[2:]), results, Ledger.beside(results))
compared = time.perf_counter()
render(comparison, "table", io.StringIO(), width=120)
shown = time.perf_counter()
render(comparison, "json", io.StringIO())
print(len(comparison.rows), compared - start, shown - compared, time.perf_counter() - shown,
      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3))
"""


def compare(options: argparse.Namespace) -> None:
    """Seconds and memory of a comparison of many cases, each in an interpreter of its own, from its start."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "results"
        versions = write_results(folder, options.cases, options.processes)
        size = sum(path.stat().st_size for path in folder.rglob("*.jsonl"))
        print(f"{options.cases} cases, {options.processes} processes a side: {size / 1e6:.0f} MB of records")
        for _ in range(options.runs):
            command = [sys.executable, "-c", _COMPARE, str(folder), *versions]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows, seconds, shown, written, megabytes = map(float, done.stdout.split())
            print(
                f"{rows:.0f} rows compared in {seconds:.2f} s, table in {shown:.2f} s, or JSON in {written:.2f} s; "
                f"peak {megabytes:4.0f} MB",
                flush=True,
            )


_PUBLISH = """
import resource, sys
from pathlib import Path
from accel_micro.report.site import write_site
written = write_site(Path(sys.argv[2]), Path(sys.argv[1]))
print(written.cases, written.builds, written.regressions, written.seconds,
      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3))
"""


def publish(options: argparse.Namespace) -> None:
    """Seconds, memory and size of the pages of many builds and cases, from records to files."""
    with tempfile.TemporaryDirectory() as name:
        results, pages = Path(name) / "results", Path(name) / "html"
        write_results(results, options.cases, options.processes, options.builds)
        size = sum(path.stat().st_size for path in results.rglob("*.jsonl"))
        print(
            f"{options.builds} builds × {options.cases} cases × {options.processes}: {size / 1e6:.0f} MB of records"
        )
        for _ in range(options.runs):
            command = [sys.executable, "-c", _PUBLISH, str(results), str(pages)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            cases, builds, regressions, seconds, megabytes = map(float, done.stdout.split())
            files = [path.stat().st_size for path in pages.rglob("*") if path.is_file()]
            print(
                f"{cases:.0f} cases on {builds:.0f} builds, {regressions:.0f} regressions: {seconds:.1f} s, "
                f"{sum(files) / 1e6:.1f} MB in {len(files)} files, the largest {max(files) / 1e6:.2f} MB; "
                f"peak {megabytes:.0f} MB",
                flush=True,
            )


def main() -> None:
    """Parse the command line and run one benchmark of the harness."""
    from tests.bisect import table as bisections  # of a checkout: a wheel has none

    parser = argparse.ArgumentParser(prog="python -m benchmarks.harness", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True, dest="command")
    command = commands.add_parser("clocks", help="device clock against CUPTI")
    command.add_argument("--device", default="cuda")
    command.add_argument("--profile", default="quick")
    command.add_argument("--bench", default="")
    command.add_argument("--output", default="", help="write all rows there, as JSON")
    command.add_argument("--device-only", action="store_true", help="the device clock alone, and fast")
    command.set_defaults(run=clocks)
    command = commands.add_parser("peers", help="our clocks and other harnesses' against the truth")
    command.add_argument("--device", default="cuda")
    command.add_argument("--profile", default="standard")
    command.add_argument("--bench", default="", help=f"cases to choose from; {FAMILIES} unless given")
    command.add_argument(
        "--repeats", type=int, default=0, help="runs of a few cases, for the spread of each harness"
    )
    command.add_argument("--budget", type=float, default=BUDGET_SECONDS, help="seconds for all of it")
    command.add_argument(
        "--brief", action="store_true", help="a quarter of its time or less for each harness, on CUDA"
    )
    command.add_argument(
        "--harness", default="", metavar="PATTERN", help="harnesses that read, on CUDA; all unless given"
    )
    command.add_argument("--out", default="", help="write all readings there, as JSON")
    command.add_argument(
        "--after",
        nargs="*",
        default=[],
        metavar="FILE",
        help="what --out wrote earlier on this card: its cases are not read again, and the tables have them too",
    )
    command.add_argument(
        "--files",
        nargs="+",
        default=[],
        metavar="FILE",
        help="read nothing: the tables of what --out wrote in several processes, and how far those differ",
    )
    command.set_defaults(run=peers)
    command = commands.add_parser("check", help="every case against float64")
    command.add_argument("--device", default="cuda")
    command.add_argument("--profile", default="quick")
    command.add_argument("--bench", default="")
    command.add_argument(
        "--jobs", type=int, default=0, help="processes side by side; one for four cores unless given"
    )
    command.add_argument("--seconds", type=float, default=120.0, help="most a case may take")
    command.set_defaults(run=check)
    command = commands.add_parser("cold", help="times by how much data lies between two uses")
    command.add_argument("--device", default="cpu")
    command.add_argument("--bench", default="")
    command.add_argument("--turns", type=int, default=15)
    command.set_defaults(run=cold, benchmarks=Path(__file__).parents[1])
    command = commands.add_parser("gate", help="raw and gated medians of many processes")
    command.add_argument("--processes", type=int, default=20)
    command.add_argument("--budget", type=float, default=3.0)
    command.add_argument(
        "--threads", type=int, default=1, help="of a parallel op no probe sees the other cores"
    )
    command.set_defaults(run=gate)
    command = commands.add_parser("help", help="how soon the command line answers")
    command.add_argument("--runs", type=int, default=10)
    command.set_defaults(run=help_)
    command = commands.add_parser("launch", help="asv's processes forked and spawned")
    command.set_defaults(run=launch)
    command = commands.add_parser("ledger", help="a ledger of many builds")
    command.add_argument("--builds", type=int, default=3000)
    command.add_argument("--runs", type=int, default=5)
    command.set_defaults(run=ledger)
    command = commands.add_parser("compare", help="two builds with many cases")
    command.add_argument("--cases", type=int, default=10_000)
    command.add_argument("--processes", type=int, default=5)
    command.add_argument("--runs", type=int, default=3)
    command.set_defaults(run=compare)
    command = commands.add_parser("publish", help="pages of many builds and cases")
    command.add_argument("--builds", type=int, default=365)
    command.add_argument("--cases", type=int, default=500)
    command.add_argument("--processes", type=int, default=3)
    command.add_argument("--runs", type=int, default=1)
    command.set_defaults(run=publish)
    explain.add_options(commands.add_parser("explain", help="does an explanation close, and keep silent"))
    add_options(commands.add_parser("reports", help="public reports on other harnesses, tried here"))
    command = commands.add_parser("bisect", help="simulated bisections, ours and by the rules of others")
    bisections.add_options(command)
    command.set_defaults(run=bisections.run)
    releases.add_options(commands.add_parser("releases", help="bisections between real releases"))
    options = parser.parse_args()
    reads = not (options.command == "peers" and options.files)
    if reads and options.command in ("clocks", "peers", "check", "cold"):
        _require(parser, options.device)
    options.run(options)


def _require(parser: argparse.ArgumentParser, name: str) -> None:
    """End with a sentence where there is no such device: 2 for none of that name, 3 for one that is not here."""
    try:
        reason = get(name).unavailable()
    except UnknownDevice as error:
        parser.error(str(error))
    if reason:
        parser.exit(3, f"{name}: {reason}\n")


if __name__ == "__main__":
    main()
