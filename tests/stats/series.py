"""Simulated series of builds whose changes are known: worlds with and without steps, as histories are found."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_micro.stats.changes import Point

Floats = NDArray[np.float64]
SECONDS = 12.3e-6
BIMODAL = np.log(1.8)


@dataclass(frozen=True)
class World:
    """How values scatter when nothing changes.

    Attributes:
        name: for tables.
        noise: (generator, builds) → logs of the builds' values about their level.
        processes: (generator, builds) → processes of each build.
        process_sd: how the processes of a build differ.
    """

    name: str
    noise: Callable[[np.random.Generator, int], Floats]
    processes: Callable[[np.random.Generator, int], Any] = lambda rng, n: np.ones(n, dtype=int)
    process_sd: float = 0.0

    def series(self, rng: np.random.Generator, builds: int, level: Floats | float = 0.0) -> list[Point]:
        """Builds with logs of their times about `level`."""
        values = self.noise(rng, builds) + level + np.log(SECONDS)
        return [
            Point(tuple(np.exp(value + self.process_sd * rng.standard_normal(count)).tolist()))
            for value, count in zip(values, self.processes(rng, builds), strict=True)
        ]


def iid(sd: float) -> Callable[[np.random.Generator, int], Floats]:
    return lambda rng, n: sd * rng.standard_normal(n)


def autoregressive(sd: float, correlation: float) -> Callable[[np.random.Generator, int], Floats]:
    def noise(rng: np.random.Generator, n: int) -> Floats:
        steps = rng.standard_normal(n)
        values = np.empty(n)
        values[0] = steps[0]
        for i in range(1, n):
            values[i] = correlation * values[i - 1] + np.sqrt(1 - correlation**2) * steps[i]
        return sd * values

    return noise


def outliers(sd: float, share: float) -> Callable[[np.random.Generator, int], Floats]:
    """Some builds are slower by 5 to 100 %."""

    def noise(rng: np.random.Generator, n: int) -> Floats:
        return sd * rng.standard_normal(n) + (rng.random(n) < share) * rng.uniform(0.05, np.log(2), n)

    return noise


def modes(sd: float, share: float) -> Callable[[np.random.Generator, int], Floats]:
    """Some builds run in a mode slower by 1.8."""
    return lambda rng, n: sd * rng.standard_normal(n) + (rng.random(n) < share) * BIMODAL


def drift(sd: float, total: float) -> Callable[[np.random.Generator, int], Floats]:
    return lambda rng, n: sd * rng.standard_normal(n) + np.linspace(0, total, n)


def seasons(sd: float, amplitude: float) -> Callable[[np.random.Generator, int], Floats]:
    def noise(rng: np.random.Generator, n: int) -> Floats:
        return sd * rng.standard_normal(n) + amplitude * np.sin(
            2 * np.pi * (np.arange(n) / 60 + rng.random())
        )

    return noise


def several(rng: np.random.Generator, n: int) -> Any:
    return rng.integers(1, 11, n)


def three(rng: np.random.Generator, n: int) -> Any:
    return np.full(n, 3)


def missing(sd: float, share: float, correlation: float) -> Callable[[np.random.Generator, int], Floats]:
    """Values of what is left of an autocorrelated series of which some builds were never measured."""

    def noise(rng: np.random.Generator, n: int) -> Floats:
        long = autoregressive(sd, correlation)(rng, 2 * n)
        return long[np.flatnonzero(rng.random(2 * n) >= share)[:n]]

    return noise


WORLDS = [
    World("iid 0.5 %", iid(0.005)),
    World("iid 1 %", iid(0.01)),
    World("iid 2 %", iid(0.02)),
    World("AR .6, 1 %", autoregressive(0.01, 0.6)),
    World("AR .6, 2 %", autoregressive(0.02, 0.6)),
    World("5 % outliers, 1 %", outliers(0.01, 0.05)),
    World("bimodal .15, 1 %", modes(0.01, 0.15)),
    World("bimodal .3, 1 %", modes(0.01, 0.3)),
    World("drift 3 %, 1 %", drift(0.01, 0.03)),
    World("drift 6 %, 1 %", drift(0.01, 0.06)),
    World("seasons ±2 %, 1 %", seasons(0.01, 0.02)),
    World("sessions 1 %, 3 processes 1 %", iid(0.01), three, 0.01),
    World("sessions 1 %, 1-10 processes 2 %", iid(0.01), several, 0.02),
    World("AR .6, 1 %, a quarter missing", missing(0.01, 0.25, 0.6)),
    World("one build spikes, 1 %", lambda rng, n: _spiked(rng, n)),
]


def _spiked(rng: np.random.Generator, n: int) -> Floats:
    values = 0.01 * rng.standard_normal(n)
    values[rng.integers(0, n)] += rng.choice([0.05, 0.1, 0.3, BIMODAL])
    return values


def step(builds: int, after: int, size: float) -> Floats:
    """Level of a series with a step of `size` (0.05 is +5 %) that `after` builds have."""
    level = np.zeros(builds)
    level[builds - after :] = np.log1p(size)
    return level
