"""`python -m benchmarks.harness reports`."""

import argparse
import importlib.metadata
import json
import sys
from pathlib import Path
from time import perf_counter

from accel_micro.devices.base import DeviceUnavailable
from benchmarks.harness.reports.rendering import read, shown, table, to_json
from benchmarks.harness.reports.row import Row
from benchmarks.harness.reports.running import chosen, run

_NOTHING_TRIED = 3


def reports(options: argparse.Namespace) -> None:
    """Try the reports that this device allows, and print what was found; exit code 1 if anything is not as it should.

    A row that does not apply here is no failure. Exit code 3: this machine does not have the device.
    """
    from benchmarks.harness.reports.attempts import ATTEMPTS

    if options.tables:
        rows = [row for path in options.tables for row in read(path)]
        print(table(sorted(rows, key=lambda row: row.number)))
        return
    places = chosen(ATTEMPTS, options.device, options.only)
    start = perf_counter()
    try:
        rows = run(places, options.device, lambda row: print(shown(row), flush=True))
    except DeviceUnavailable as reason:
        print(f"{options.device} is not to be had here: {reason}", file=sys.stderr)
        sys.exit(_NOTHING_TRIED)
    bad = [row for row in rows if failed(row)]
    print(f"{len(rows)} rows in {perf_counter() - start:.0f} s; not as they should be: {len(bad)}")
    if options.out:
        data = to_json(rows, options.device, importlib.metadata.version("torch"))
        Path(options.out).write_text(
            json.dumps(data, indent=1, ensure_ascii=False, default=str) + "\n", encoding="utf-8"
        )
    if bad:
        sys.exit(1)


def failed(row: Row) -> bool:
    """There is no finding though there should be one, or it is not good."""
    if row.finding is None:
        return not row.problem.startswith("does not apply")
    return not row.finding.good


def numbers(text: str) -> list[int]:
    """`1,2` as numbers of reports.

    Raises:
        argparse.ArgumentTypeError: one of them is none.
    """
    from benchmarks.harness.reports.catalogue import REPORTS

    found = [int(part) for part in text.split(",") if part.strip().isdecimal()]
    if len(found) != len(text.split(",")) or not set(found) <= REPORTS.keys():
        raise argparse.ArgumentTypeError(f"numbers of reports are 1 to {max(REPORTS)}, not {text!r}")
    return found


def add_options(command: argparse.ArgumentParser) -> None:
    """Those of the command."""
    command.add_argument("--device", choices=("cpu", "cuda", "xla"), default="cpu")
    command.add_argument("--only", type=numbers, default=[], help="numbers of reports, such as 1,2")
    command.add_argument("--out", default="", help="write all rows there, as JSON")
    command.add_argument(
        "--tables", nargs="+", type=Path, help="run nothing, print the Markdown table of these files"
    )
    command.set_defaults(run=reports)
