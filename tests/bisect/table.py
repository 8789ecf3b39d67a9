"""How often searches name an innocent build, and what they cost, in Markdown; simulated.

    python -m tests.bisect.table [--runs 200] [--builds 60] [--effects 4 2 1] [--worlds plain drift] [--rivals [NAME …]]
        [--jobs 2]

Each cell is of that many searches. `wrong` are searches that named a pair in which nothing got slower, or that has a
build between that works; with an upper 95 % limit (Clopper and Pearson).
"""

import argparse
import functools
import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from accel_micro.bisect import search
from tests.bisect.rivals import RIVALS
from tests.bisect.worlds import NOTHING, WORLDS, Machine, World


@dataclass(frozen=True)
class Outcome:
    """Of one search.

    Attributes:
        wrong: it named an innocent pair. right: it named one, and none that is innocent.
        kind: of its result; of a rival `culprit` or `not_reproduced`.
        both: it named two.
        held: the suspects hold a culprit.
        covered, named: intervals of the steps that were named which hold the truth, and how many there are.
    """

    runs: int
    kind: str
    wrong: bool
    both: bool
    held: bool
    covered: int = 0
    named: int = 0

    @property
    def right(self) -> bool:
        return self.kind == "culprit" and not self.wrong


def guilty(world: World, good: int, bad: int) -> bool:
    """Whether something got slower after `good` up to `bad`, and nothing between them works."""
    between = all(build in world.broken for build in range(good + 1, bad))
    return between and any(good < culprit <= bad for culprit in world.culprits)


def ours(name: str, builds: int, effect: float, seed: int, max_runs: int = 500) -> Outcome:
    """One search."""
    chance = np.random.default_rng([seed, builds, 17])
    world = (WORLDS if effect else NOTHING)[name](chance, builds, effect)
    found = search(range(builds), Machine(world, chance), max_runs=max_runs, seed=seed)
    covered = 0
    for step in found.steps:
        truth = math.exp(world.spread * (world.levels[step.bad] - world.levels[step.good]))
        covered += step.ratio.low <= truth <= step.ratio.high
    return Outcome(
        runs=found.runs,
        kind=found.kind,
        wrong=any(not guilty(world, step.good, step.bad) for step in found.steps),
        both=len(found.steps) > 1,
        held=any(culprit in found.suspects for culprit in world.culprits),
        covered=covered,
        named=len(found.steps),
    )


def theirs(rival: str, name: str, builds: int, effect: float, seed: int) -> Outcome:
    """One search of another rule on the same history; told twice the noise where there is nothing."""
    chance = np.random.default_rng([seed, builds, 17])
    world = (WORLDS if effect else NOTHING)[name](chance, builds, effect)
    machine = Machine(world, chance)
    named = RIVALS[rival](machine, builds, effect or 2.0)
    wrong = any(not guilty(world, good, bad) for good, bad in named)
    return Outcome(machine.ran, "culprit" if named else "not_reproduced", wrong, len(named) > 1, not wrong)


def upper_limit(count: int, of: int, confidence: float = 0.95) -> float:
    """Of a share, one-sided (Clopper and Pearson 1934)."""
    return 1.0 if count == of else float(beta.ppf(confidence, count + 1, of - count))


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
