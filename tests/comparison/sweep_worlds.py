"""Two sides over sizes on machines that do not exist, where it is known which side is faster."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from accel_micro.comparison.sweeping import CLOCK, Line, Swept, Which, sweep
from accel_micro.measure.flags import Flag
from accel_micro.measure.process import Process
from accel_micro.measure.records import Case, Record, Work
from accel_micro.sweep import Sweep

SIZES = Sweep.parse("n=16..4096")
LARGEST_RATIO = 256
SLOWER = 1.8

Curve = Callable[[float], float]
"""Log of contender ÷ baseline over sizes."""


def line(slope: float, at: float) -> Curve:
    """The contender gains by a power of the size."""
    return lambda size: -slope * math.log(size / at)


def step(size: float) -> float:
    """A kernel switch: a fifth slower, and from 300 on 14 % faster."""
    return 0.2 if size < 300 else -0.15


def flat(size: float) -> float:
    """No difference at all."""
    return 0.0


def wave(size: float) -> float:
    """Three crossings."""
    return 0.3 * math.cos(3 * math.pi * math.log(size / 16) / math.log(LARGEST_RATIO))


def notch(size: float) -> float:
    """Ever better, but for a hollow about 512 where the contender falls back."""
    return line(0.4, 150)(size) + 0.75 * math.exp(-((math.log2(size / 512) / 0.5) ** 2))


@dataclass(frozen=True)
class World:
    """A machine and two sides.

    Attributes:
        crossings: where the curve crosses 0.
        spread: standard deviation of log process medians, by size. slow: share of processes 1.8 times slower.
        drift: by which processes become slower in a thousand.
    """

    curve: Curve
    crossings: tuple[float, ...]
    spread: Callable[[float], float] = lambda size: 0.01
    slow: float = 0.0
    drift: float = 0.0
    tails: bool = False


WAVE_CROSSINGS = tuple(16 * LARGEST_RATIO ** (k / 6) for k in (1, 3, 5))

WORLDS: dict[str, World] = {
    "steep": World(line(0.7, 200), (200,)),
    "steep, sd 5 % below": World(line(0.7, 200), (200,), lambda size: 0.05 if size < 300 else 0.01),
    "flat slope, sd 2 %": World(line(0.1, 200), (200,), lambda size: 0.02),
    "kernel switch, sd 3 %": World(step, (300,), lambda size: 0.03),
    "three crossings, sd 2 %": World(wave, WAVE_CROSSINGS, lambda size: 0.02),
    "equal everywhere, sd 2 %": World(flat, (), lambda size: 0.02),
    "never, sd 5 %": World(lambda size: 0.25, (), lambda size: 0.05),
    "heavy tails": World(line(0.7, 200), (200,), tails=True),
    "drift 20 %": World(line(0.3, 200), (200,), drift=0.2),
    "one in seven slow": World(line(0.7, 200), (200,), slow=1 / 7),
    "three in ten slow": World(line(0.7, 200), (200,), slow=0.3),
}


@dataclass
class Machine:
    """Measures a world: a process takes a second of its own clock."""

    world: World
    seed: int = 0
    clock: float = 0.0
    seconds_a_process: float = 1.0
    interrupts_at: int | None = None
    broken: Callable[[Which, int], Record | None] = lambda which, size: None
    flags: tuple[Flag, ...] = ()
    seconds: Callable[[int], float] = lambda size: 1e-5
    turns: list[tuple[Which, int]] = field(default_factory=list)
    renewed: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = np.random.default_rng(self.seed)

    def now(self) -> float:
        return self.clock

    def renew(self) -> None:
        self.renewed.append(len(self.turns))

    def measure(self, subject: object, which: Which, size: int) -> Record:
        if len(self.turns) == self.interrupts_at:
            raise KeyboardInterrupt
        self.turns.append((which, size))
        self.clock += self.seconds_a_process
        failed = self.broken(which, size)
        if failed is not None:
            return failed
        world, spread = self.world, self.world.spread(size)
        log = math.log(self.seconds(size)) + (world.curve(size) if which == "contender" else 0.0)
        log += spread * self.chance.standard_t(2.5) if world.tails else self.chance.normal(0, spread)
        log += math.log(SLOWER) * (self.chance.random() < world.slow)
        log += world.drift * len(self.turns) / 1000
        values = tuple(np.exp(log + self.chance.normal(0, 0.003, 20)).tolist())
        process = Process("cpu", CLOCK, values, values, (1.0,) * 20, 7, flags=self.flags)
        case = Case("a.b", "forward", "cpu", "float32", f"n={size}")
        return Record(case, clocks={CLOCK: process}, work=Work(flops=float(size), bytes=float(size)))


def swept(machine: Machine, budget_seconds: float = math.inf, **options: float) -> Swept[str]:
    """One sweep on a machine."""
    (found,) = sweep(
        [Line("op", SIZES)],
        machine.measure,
        budget_seconds=budget_seconds,
        now=machine.now,
        renew=machine.renew,
        **options,
    )
    return found


@dataclass
class Tally:
    """Over many sweeps of one world: of all crossings that were reported, how many hold none; and so on."""

    runs: int = 0
    wrong: int = 0
    empty: int = 0
    found: int = 0
    widths: list[float] = field(default_factory=list)
    misses: list[float] = field(default_factory=list)
    processes: list[int] = field(default_factory=list)


def tally(world: World, seeds: Sequence[int]) -> Tally:
    """Sweep a world many times."""
    told = Tally()
    for seed in seeds:
        machine = Machine(world, seed)
        found = swept(machine)
        told.runs += 1
        told.processes.append(len(machine.turns))
        told.wrong += any(
            (call.faster == "contender" and world.curve(size) >= 0)
            or (call.faster == "baseline" and world.curve(size) <= 0)
            for size, call in found.calls.items()
        )
        for one in found.crossings:
            told.found += 1
            told.widths.append(one.factor)
            inside = [at for at in world.crossings if one.low <= at <= one.high]
            told.empty += not inside
            told.misses += [min(abs(math.log(one.at / at)) for at in inside)] if inside else []
    return told
