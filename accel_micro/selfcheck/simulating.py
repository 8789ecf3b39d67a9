"""One simulated search, judged: of ours, and of the rules that others have, on the same histories."""

import hashlib
import math
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np

import accel_micro.bisect
from accel_micro.bisect import search
from accel_micro.selfcheck.peers import searches
from accel_micro.selfcheck.peers.searches import RIVALS
from accel_micro.selfcheck.worlds import NOTHING, WORLDS, Machine, World

OURS: Final = "this search"
SIZES: Final = (60, 365)
EFFECTS: Final = (4.0, 2.0, 1.0, 0.0)
MAX_RUNS: Final = 500


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
        """It named a guilty pair, and no other."""
        return self.kind == "culprit" and not self.wrong


@dataclass(frozen=True, order=True)
class Cell:
    """What searches of one row of the table have in common.

    Attributes:
        world: its name in `worlds`. effect: in units of the noise; 0 for no regression at all.
        rule: `OURS`, or a rival's name.
    """

    builds: int
    world: str
    effect: float
    rule: str = OURS

    def __str__(self) -> str:
        return f"{self.builds} builds, {self.world}, effect {self.effect:g}, {self.rule}"

    def outcome(self, seed: int) -> Outcome:
        """Of the search with this seed; each rule is given the same histories."""
        if self.rule == OURS:
            return ours(self.world, self.builds, self.effect, seed)
        return theirs(self.rule, self.world, self.builds, self.effect, seed)


def cells() -> list[Cell]:
    """All, in the order of the table."""
    return [
        Cell(builds, world, effect, rule)
        for builds, rule, world, effect in product(SIZES, (OURS, *RIVALS), WORLDS, EFFECTS)
        if effect or world in NOTHING
    ]


def fingerprint() -> str:
    """Of everything that an outcome depends on: outcomes of different rules do not belong in one table."""
    files = [Path(__file__), Path(__file__).parent / "worlds.py", Path(searches.__file__)]
    files += sorted(Path(accel_micro.bisect.__file__).parent.glob("*.py"))
    whole = b"".join(file.read_bytes() for file in files)
    return hashlib.sha256(whole).hexdigest()[:16]


def guilty(world: World, good: int, bad: int) -> bool:
    """Whether something got slower after `good` up to `bad`, and nothing between them works."""
    between = all(build in world.broken for build in range(good + 1, bad))
    return between and any(good < culprit <= bad for culprit in world.culprits)


def ours(name: str, builds: int, effect: float, seed: int, max_runs: int = MAX_RUNS) -> Outcome:
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
    from scipy.stats import beta

    return 1.0 if count == of else float(beta.ppf(confidence, count + 1, of - count))


def lower_limit(count: int, of: int, confidence: float = 0.95) -> float:
    """Of a share, one-sided (Clopper and Pearson 1934)."""
    from scipy.stats import beta

    return 0.0 if count == 0 else float(beta.ppf(1 - confidence, count, of - count + 1))
