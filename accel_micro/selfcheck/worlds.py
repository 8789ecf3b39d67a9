"""Machines and histories that do not exist: what a block of builds reads on them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

SPREAD: Final = 0.02
"""Standard deviation of the log medians of processes, where nothing else is said."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class World:
    """A history of builds and the machine that it is measured on. All of it is in units of the spread.

    Attributes:
        levels: log seconds of each build.
        broken: builds that do not work.
        slow: share of processes that run 1.8 times slower, and nothing tells.
        drift: how much slower the machine gets in sixty processes.
        blocks: standard deviation of the speed of the machine from block to block.
        tails: degrees of freedom of Student's t; infinite for a normal.
    """

    levels: tuple[float, ...]
    broken: frozenset[int] = frozenset()
    slow: float = 0.0
    drift: float = 0.0
    blocks: float = 0.0
    tails: float = math.inf
    spread: float = SPREAD

    @property
    def culprits(self) -> list[int]:
        """First builds of each slowdown."""
        return [i for i in range(1, len(self.levels)) if self.levels[i] > self.levels[i - 1]]


@dataclass
class Machine:
    """Runs blocks of builds of a world, one process after the other."""

    world: World
    chance: np.random.Generator
    ran: int = 0
    _speed: float = field(default=0.0)

    def __call__(self, builds: Sequence[int]) -> list[float | None]:
        """Seconds of each, None for a broken one."""
        self._speed = float(self.chance.normal(0, 1)) * self.world.blocks
        return [self.one(build) for build in builds]

    def one(self, build: int) -> float | None:
        """The same of one build alone; the speed of the machine changes every four processes."""
        world = self.world
        if self.ran % 4 == 0:
            self._speed = float(self.chance.normal(0, 1)) * world.blocks
        self.ran += 1
        noise = self.chance.normal() if world.tails == math.inf else self.chance.standard_t(world.tails)
        slow = math.log(1.8) if self.chance.random() < world.slow else 0.0
        if build in world.broken:
            return None
        units = world.levels[build] + noise + self._speed + world.drift * self.ran / 60
        return 1e-3 * math.exp(world.spread * float(units) + slow)


def stepped(builds: int, steps: dict[int, float]) -> tuple[float, ...]:
    """Levels of builds, from steps at first builds."""
    levels = np.zeros(builds)
    for first, size in steps.items():
        levels[first:] += size
    return tuple(map(float, levels))


def one_step(chance: np.random.Generator, builds: int, effect: float) -> World:
    """A step at any build but the ends."""
    return World(stepped(builds, {int(chance.integers(1, builds)): effect}))


def _singles(chance: np.random.Generator, builds: int, effect: float) -> World:
    world = one_step(chance, builds, effect)
    broken = frozenset(int(i) for i in np.flatnonzero(chance.random(builds) < 0.15)) - {0, builds - 1}
    return replace(world, broken=broken)


def _runs(chance: np.random.Generator, builds: int, effect: float) -> World:
    """A fifth of the builds in runs of five; one holds the culprit or lies beside it."""
    world = one_step(chance, builds, effect)
    begins = [world.culprits[0] - int(chance.integers(0, 6))]
    begins += [int(i) for i in chance.integers(1, builds - 6, builds // 30)]
    broken = frozenset(b for begin in begins for b in range(begin, begin + 5) if 0 < b < builds - 1)
    return replace(world, broken=broken)


def _two(chance: np.random.Generator, builds: int, effect: float) -> World:
    first, second = sorted(chance.choice(np.arange(1, builds), 2, replace=False))
    return World(stepped(builds, {int(first): effect, int(second): effect}))


def _between(chance: np.random.Generator, builds: int, effect: float) -> World:
    """A slowdown, and before or after it an improvement of half its size."""
    first, second = (int(i) for i in chance.choice(np.arange(1, builds), 2, replace=False))
    return World(stepped(builds, {first: effect, second: -effect / 2}))


def _machine(**what: float) -> Callable[[np.random.Generator, int, float], World]:
    return lambda chance, builds, effect: replace(one_step(chance, builds, effect), **what)  # type: ignore[arg-type]


Maker = Callable[[np.random.Generator, int, float], World]

WORLDS: dict[str, Maker] = {
    "plain": one_step,
    "drift": _machine(drift=2.0),
    "speed of blocks": _machine(blocks=3.0),
    "one in seven slow": _machine(slow=1 / 7),
    "three in ten slow": _machine(slow=0.3),
    "heavy tails": _machine(tails=2.5),
    "single broken builds": _singles,
    "runs of five broken": _runs,
    "two regressions": _two,
    "improvement between": _between,
    "gradual": lambda chance, builds, effect: World(tuple(effect * np.arange(builds) / (builds - 1))),
}


def _nothing(make: Maker) -> Maker:
    return lambda chance, builds, _: replace(make(chance, builds, 1.0), levels=(0.0,) * builds)


NOTHING: dict[str, Maker] = {
    name: _nothing(make)
    for name, make in WORLDS.items()
    if name not in ("two regressions", "improvement between", "gradual")
}
