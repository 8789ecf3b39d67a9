"""Searches on machines that do not exist, judged by the truth that is known there."""

import math
from dataclasses import dataclass

import numpy as np

from accel_micro.bisect import search
from accel_micro.selfcheck.peers.searches import RIVALS
from accel_micro.selfcheck.worlds import NOTHING, WORLDS, Machine, World


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
    from scipy.stats import beta

    return 1.0 if count == of else float(beta.ppf(confidence, count + 1, of - count))
