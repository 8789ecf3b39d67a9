"""Bisections between releases that people use: of an op that truly changed between them, and of one that did not."""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from time import perf_counter
from typing import Any

CHANGED = "layout.tril.time_forward('cpu', 'bfloat16', 'rows=1000 width=1000')"
UNCHANGED = "pointwise.relu.time_forward('cpu', 'float32', 'n=1000000')"
"""Between torch 2.9.0 and 2.15.0: `tril` got faster with 2.10.0 (docs/bisecting.md)."""


def add_options(command: argparse.ArgumentParser) -> None:
    """Say what can be asked for."""
    command.add_argument("--good", default="2.9.0")
    command.add_argument("--bad", default="2.15.0")
    command.add_argument("--case", action="append", help="a case of the suite, repeatable; else the two")
    command.add_argument("--max-runs", type=int, default=500)
    command.add_argument("--variant", default="", help="of the wheels; default: those that plain pip takes")
    command.set_defaults(run=releases)


def releases(options: argparse.Namespace) -> None:
    """Bisect each case and print a line of it. Downloads the releases that are asked for: gigabytes."""
    for case in options.case or (CHANGED, UNCHANGED):
        command = [
            sys.executable,
            "-m",
            "accel_micro",
            "bisect",
            case,
            "--regress",
            "either",
            "--format",
            "json",
        ]
        command += ["--good", options.good, "--bad", options.bad, "--max-runs", str(options.max_runs)]
        command += ["--variant", options.variant] if options.variant else []
        started = perf_counter()
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if not done.stdout:
            sys.exit(f"{case}: accel-micro bisect ended with {done.returncode} and no answer")
        print(line(case, json.loads(done.stdout), perf_counter() - started), flush=True)


def line(case: str, answer: Mapping[str, Any], seconds: float) -> str:
    """What came of one case: the pair where one was named, the ratio with its interval, what it took."""
    steps = answer["steps"]
    told = [f"{s['good']['version']} → {s['bad']['version']}: {_ratio(s['ratio'])}" for s in steps]
    told = told or [f"{answer['kind']}, the ends: {_ratio(answer['ends'])}"]
    return f"{case}\n  {'; '.join(told)}; {answer['runs']} processes, {seconds / 60:.1f} min"


def _ratio(ratio: Mapping[str, float | None] | None) -> str:
    value, low, high = ((ratio or {}).get(name) for name in ("value", "low", "high"))
    if value is None:
        return "no ratio"
    return f"{value:.3f} ({'–' if low is None else f'{low:.3f}'} to {'–' if high is None else f'{high:.3f}'})"
