"""How often searches name an innocent build, and what they cost, beside the rules of others; simulated.

    python -m benchmarks.harness bisect [--cells REGEX] [--runs 200] [--jobs 2] [--minutes M] [--out FILE.json]

`python -m tests.bisect.table` is the same, and needs numpy and scipy alone. Every cell gets a few searches, then every
cell some more, so that it can be ended at any time; with `--out` it goes on from where it was. `wrong` are searches
that named a pair in which nothing got slower, or that has a build between that works; with an upper 95 % limit
(Clopper and Pearson). Exits with 1 where a cell of ours is wrong more often than the stated error rate allows.
"""

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import astuple
from itertools import groupby, islice, takewhile
from pathlib import Path
from typing import Final

import numpy as np

from accel_micro.selfcheck.peers.searches import RIVALS
from accel_micro.selfcheck.simulating import OURS, Cell, Outcome, cells, fingerprint, lower_limit, upper_limit

ERROR_RATE: Final = 0.05
_TURN: Final = 20  # searches of a cell before the next cell's turn
_TASK: Final = 5  # searches that are handed to a process at once
_SECONDS_BETWEEN_NOTES: Final = 15.0

Outcomes = dict[Cell, dict[int, Outcome]]
"""Of each cell, by seed."""


# Running


def simulated(
    wanted: Sequence[Cell], runs: int, known: Outcomes, *, jobs: int, seconds: float
) -> Iterator[None]:
    """Fill in outcomes, the same number for every cell again and again; yields whenever some were added."""
    end = time.monotonic() + seconds
    todo = takewhile(lambda _: time.monotonic() < end, _tasks(wanted, runs, known))
    with ProcessPoolExecutor(jobs) as pool:
        flying = {pool.submit(_some, *task): task for task in islice(todo, 2 * jobs)}
        while flying:
            done, _ = wait(flying, return_when=FIRST_COMPLETED)
            for future in done:
                cell, seeds = flying.pop(future)
                known.setdefault(cell, {}).update(zip(seeds, future.result(), strict=True))
                flying |= {pool.submit(_some, *task): task for task in islice(todo, 1)}
            yield


def _tasks(wanted: Sequence[Cell], runs: int, known: Outcomes) -> Iterator[tuple[Cell, list[int]]]:
    for first in range(0, runs, _TURN):
        for cell in wanted:
            there = known.get(cell, {})
            seeds = [seed for seed in range(first, min(first + _TURN, runs)) if seed not in there]
            for start in range(0, len(seeds), _TASK):
                yield cell, seeds[start : start + _TASK]


def _some(cell: Cell, seeds: Sequence[int]) -> list[Outcome]:
    return [cell.outcome(seed) for seed in seeds]


# The file


def read(path: Path) -> Outcomes:
    """What a file holds; nothing when there is none.

    Raises:
        ValueError: it was made by other rules than those that are here, or is no such file.
    """
    if not path.exists():
        return {}
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        rules, rows = held["rules"], held["cells"]
        known = {
            Cell(*row["cell"]): {int(seed): Outcome(*outcome) for seed, outcome in row["outcomes"].items()}
            for row in rows
        }
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} holds no simulated searches: {error!r}") from None
    if rules != fingerprint():
        raise ValueError(f"{path} was made by other rules than those that are here; name another file")
    return known


def write(path: Path, known: Outcomes) -> None:
    """Keep all outcomes, whole or not at all."""
    rows = [
        {
            "cell": astuple(cell),
            "outcomes": {seed: astuple(known[cell][seed]) for seed in sorted(known[cell])},
        }
        for cell in sorted(known)
    ]
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    draft.write_text(json.dumps({"rules": fingerprint(), "cells": rows}), encoding="utf-8")
    draft.replace(path)


# The table

HEAD: Final = (
    "world", "effect", "searches", "wrong", "right", "undecided", "not reproduced", "runs", "90th percentile",
    "ratio covered", "suspects hold it", "two named",
)  # fmt: skip


def row_of(outcomes: Sequence[Outcome]) -> list[str]:
    """What is told of the searches of one cell."""
    count = len(outcomes)
    wrong = sum(outcome.wrong for outcome in outcomes)
    open_ = [outcome for outcome in outcomes if outcome.kind == "undecided"]
    named = sum(outcome.named for outcome in outcomes)
    return [
        str(count),
        f"{wrong} (≤ {100 * upper_limit(wrong, count):.1f} %)",
        f"{100 * sum(outcome.right for outcome in outcomes) / count:.1f} %",
        f"{100 * len(open_) / count:.1f} %",
        f"{100 * sum(outcome.kind == 'not_reproduced' for outcome in outcomes) / count:.1f} %",
        f"{np.mean([outcome.runs for outcome in outcomes]):.0f}",
        f"{np.percentile([outcome.runs for outcome in outcomes], 90):.0f}",
        f"{100 * sum(o.covered for o in outcomes) / named:.0f} %" if named else "",
        f"{sum(outcome.held for outcome in open_)} of {len(open_)}" if open_ else "",
        f"{100 * sum(outcome.both for outcome in outcomes) / count:.0f} %",
    ]


def tables(known: Mapping[Cell, Mapping[int, Outcome]]) -> Iterator[str]:
    """Lines of Markdown: ours, then all rules side by side, for each number of builds."""
    listed = [cell for cell in cells() if known.get(cell)]
    for builds, some in groupby(sorted(listed, key=lambda cell: cell.builds), lambda cell: cell.builds):
        group = list(some)
        yield f"{builds} builds:"
        yield ""
        yield from _table(HEAD, _rows_of_ours(group, known))
        rules = [rule for rule in (*RIVALS, OURS) if any(cell.rule == rule for cell in group)]
        if rules != [OURS]:
            yield f"{builds} builds, searches that named an innocent build / mean runs, by each rule:"
            yield ""
            yield from _table(("world", "effect", *rules), _rows_of_all(builds, group, rules, known))


def _rows_of_ours(group: Iterable[Cell], known: Mapping[Cell, Mapping[int, Outcome]]) -> Iterator[list[str]]:
    for cell in group:
        if cell.rule == OURS:
            yield [cell.world, f"{cell.effect:g}", *row_of(list(known[cell].values()))]


def _rows_of_all(
    builds: int, group: Sequence[Cell], rules: Sequence[str], known: Mapping[Cell, Mapping[int, Outcome]]
) -> Iterator[list[str]]:
    for world, effect in dict.fromkeys((cell.world, cell.effect) for cell in group):
        texts = []
        for rule in rules:
            outcomes = list(known.get(Cell(builds, world, effect, rule), {}).values())
            share = sum(outcome.wrong for outcome in outcomes) / max(len(outcomes), 1)
            runs = np.mean([outcome.runs for outcome in outcomes]) if outcomes else 0.0
            texts.append(f"{100 * share:.1f} % / {runs:.0f}" if outcomes else "")
        yield [world, f"{effect:g}", *texts]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|---" + "|--:" * (len(head) - 1) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def broken_promises(known: Mapping[Cell, Mapping[int, Outcome]]) -> list[str]:
    """Cells of ours that are wrong more often than the error rate allows, beyond what chance explains."""
    told = []
    ours = {cell: known[cell] for cell in cells() if cell.rule == OURS and known.get(cell)}
    for cell, outcomes in ours.items():
        wrong = sum(outcome.wrong for outcome in outcomes.values())
        if lower_limit(wrong, len(outcomes), 1 - 0.01 / len(ours)) > ERROR_RATE:
            told.append(f"{cell}: {wrong} of {len(outcomes)} searches named an innocent build")
    return told


# The command


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cells", default="", metavar="REGEX", help="such as '60 builds, (plain|drift), effect 2'"
    )
    parser.add_argument("--runs", type=int, default=200, help="searches of each cell")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no search after that long")
    parser.add_argument(
        "--out", type=Path, help="keep outcomes in this file, and go on with those that it holds"
    )
    parser.add_argument("--list", action="store_true", help="name the cells, and do nothing")


def run(options: argparse.Namespace) -> None:
    """Simulate what is missing, print the tables."""
    wanted = [cell for cell in cells() if re.search(options.cells, str(cell))]
    if not wanted:
        sys.exit(f"no cell matches {options.cells!r}; --list names all")
    if options.list:
        print("\n".join(map(str, wanted)))
        return
    try:
        known = read(options.out) if options.out else {}
    except ValueError as error:
        sys.exit(str(error))
    noted = time.monotonic()
    try:
        for _ in simulated(wanted, options.runs, known, jobs=options.jobs, seconds=60 * options.minutes):
            if time.monotonic() > noted + _SECONDS_BETWEEN_NOTES:
                noted = time.monotonic()
                _keep(options, known)
                done = sum(min(len(known.get(cell, {})), options.runs) for cell in wanted)
                print(f"{done} of {options.runs * len(wanted)} searches", file=sys.stderr, flush=True)
    finally:
        _keep(options, known)
    print("\n".join(tables(known)))
    told = broken_promises(known)
    print("\n".join(told) or f"In no cell of {OURS} more than {100 * ERROR_RATE:g} % name an innocent build.")
    sys.exit(1 if told else 0)


def _keep(options: argparse.Namespace, known: Outcomes) -> None:
    if options.out:
        write(options.out, known)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bisect.table", description=__doc__.split("\n")[0])
    add_options(parser)
    run(parser.parse_args())


if __name__ == "__main__":
    main()
