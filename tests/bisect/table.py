"""How often searches name an innocent build, and what they cost, in Markdown; simulated.

    python -m tests.bisect.table [--runs 200] [--builds 60] [--effects 4 2 1] [--worlds plain drift] [--rivals [NAME …]]
        [--jobs 2]

Each cell is of that many searches. `wrong` are searches that named a pair in which nothing got slower, or that has a
build between that works; with an upper 95 % limit (Clopper and Pearson).
"""

import argparse
import functools
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from accel_micro.selfcheck.peers.searches import RIVALS
from accel_micro.selfcheck.simulating import Outcome, ours, theirs, upper_limit
from accel_micro.selfcheck.worlds import NOTHING, WORLDS


def cell(outcomes: Sequence[Outcome]) -> list[str]:
    """What is told of the searches of one cell."""
    count = len(outcomes)
    wrong = sum(outcome.wrong for outcome in outcomes)
    open_ = [outcome for outcome in outcomes if outcome.kind == "undecided"]
    named = sum(outcome.named for outcome in outcomes)
    return [
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


HEAD = (
    "world", "effect", "wrong", "right", "undecided", "not reproduced", "runs", "90th percentile",
    "ratio covered", "suspects hold it", "two named",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--builds", type=int, default=60)
    parser.add_argument("--effects", type=float, nargs="+", default=[4, 2, 1, 0])
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS))
    parser.add_argument("--rivals", nargs="*", choices=RIVALS, help="other rules instead, all unless named")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    print(f"{options.builds} builds, {options.runs} searches a cell\n")
    with ProcessPoolExecutor(options.jobs) as pool:
        if options.rivals is not None:
            options.rivals = options.rivals or list(RIVALS)
            rivals(options, pool)
            return
        print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
        for name in options.worlds:
            for effect in options.effects:
                if effect or name in NOTHING:
                    one = functools.partial(ours, name, options.builds, effect)
                    outcomes = list(pool.map(one, range(options.runs), chunksize=10))
                    print("| " + " | ".join([name, f"{effect:g}", *cell(outcomes)]) + " |", flush=True)


def rivals(options: argparse.Namespace, pool: ProcessPoolExecutor) -> None:
    """Wrong searches and mean runs of every rule."""
    print("| world | effect | " + " | ".join(options.rivals) + " |\n|---|---|" + "---|" * len(options.rivals))
    for name in options.worlds:
        for effect in options.effects:
            if effect or name in NOTHING:
                cells = []
                for rival in options.rivals:
                    one = functools.partial(theirs, rival, name, options.builds, effect)
                    outcomes = list(pool.map(one, range(options.runs), chunksize=10))
                    wrong = sum(outcome.wrong for outcome in outcomes) / len(outcomes)
                    runs = np.mean([outcome.runs for outcome in outcomes])
                    cells.append(f"{100 * wrong:.0f} % / {runs:.0f}")
                print(f"| {name} | {effect:g} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
