"""Machines on paper: two sides of processes, measured in turns A B B A, on a machine that is as it is said to be."""

import math
from dataclasses import dataclass

import numpy as np

SAMPLES = 20
SLOWER = 1.8
"""How much slower the second speed of a machine is (measured on two shared cores of an AMD EPYC)."""


@dataclass(frozen=True)
class World:
    """A machine.

    Attributes:
        spread: standard deviation of the log medians of processes.
        within: the same of the samples of one process.
        stray: share of samples that take longer, by an exponential with mean 30 %.
        slow: share of processes that run at the slow speed from beginning to end, without a flag.
        drift: by which it becomes slower from the first process to the last.
        waves: by which it is slower at times, for ten processes on average, and as long not.
        processes: a side.
    """

    spread: float = 0.01
    within: float = 0.005
    stray: float = 0.0
    slow: float = 0.0
    drift: float = 0.0
    waves: float = 0.0
    processes: int = 10

    def sides(
        self, rng: np.random.Generator, change: float = 0.0
    ) -> tuple[list[list[float]], list[list[float]]]:
        """Baseline and contender; the contender takes `1 + change` times as long."""
        count = 2 * self.processes
        place = np.arange(count)
        contends = np.isin(place % 4, (1, 2))
        level = rng.normal(0, self.spread, count) + self.drift * place / count + math.log1p(change) * contends
        if self.waves:
            turned = np.cumsum(rng.random(count) < 0.1) + rng.integers(2)
            level += math.log1p(self.waves) * (turned % 2)
        level += math.log(SLOWER) * (rng.random(count) < self.slow)
        samples = level[:, None] + rng.normal(0, self.within, (count, SAMPLES))
        samples += rng.exponential(0.3, samples.shape) * (rng.random(samples.shape) < self.stray)
        seconds = 1e-4 * np.exp(samples)
        return seconds[~contends].tolist(), seconds[contends].tolist()


LOG_NORMAL = {f"sd {100 * spread:g} %": World(spread) for spread in (0.005, 0.01, 0.02)}
OTHERS = {
    "heavy tails": World(stray=0.1),
    "one in seven slow": World(slow=1 / 7),
    "three in ten slow": World(slow=0.3),
    "half slow": World(slow=0.5),
    "drift 5 %": World(drift=0.05),
}
WORLDS = {**LOG_NORMAL, **OTHERS}
WAVES = World(waves=0.15)
"""As small ops on two shared cores are: 10 to 16 % slower for half a minute at a time (measured)."""
