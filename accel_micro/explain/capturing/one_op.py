"""One operator of a model's step, timed in place, as a number: what each build runs for `bisect --from-explain`.

    python one_op.py MODEL SETTING PHASE OPERATORS [--inference] [--budget SECONDS]

The last line is the seconds of a step that the calls of these operators (with commas between them) take in that phase,
at the machine's full speed. Exit code 125 and a sentence where there are none, or they cannot be timed: such a build
cannot answer.
"""

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SKIP = 125
"""With which a script tells a bisection that it cannot tell."""

if (
    __name__ == "__main__"
):  # by the Python of an environment without this package; the model may lie in this folder
    sys.path[0:1] = [str(Path(__file__).resolve().parents[3]), str(Path.cwd())]


def main(arguments: Sequence[str] | None = None) -> int:
    """Time it and print it; the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("setting")
    parser.add_argument("phase")
    parser.add_argument("operators")
    parser.add_argument("--inference", action="store_true")
    parser.add_argument("--budget", type=float, default=3.0)
    options = parser.parse_args(arguments)
    from accel_micro.explain.capturing import process

    job = {
        "model": options.model,
        "setting": options.setting,
        "training": not options.inference,
        "budget_seconds": options.budget,
        "ops": True,
    }
    found = process.run(job)
    seconds = seconds_of(found, options.phase, options.operators.split(","))
    if seconds is None:
        why = "; ".join(found["problems"]) or f"the step calls none of {options.operators} in {options.phase}"
        print(why, file=sys.stderr)
        return SKIP
    print(repr(seconds))
    return 0


def seconds_of(found: Mapping[str, Any], phase: str, operators: Sequence[str]) -> float | None:
    """Of a step, for which calls of these operators ran in that phase; None where there are none, or no times."""
    seconds = found["reading"].get("ops")
    if not found["rows"] or not seconds:
        return None
    chosen = [
        each
        for row, each in zip(found["rows"], seconds, strict=True)
        if row["op"] in operators and row["phase"] == phase
    ]
    return math.fsum(chosen) if chosen else None


if __name__ == "__main__":
    sys.exit(main())
