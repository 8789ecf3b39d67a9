"""Machines that do not exist: medians of processes of one build that ran one after the other."""

import math
from collections.abc import Callable

import numpy as np

World = Callable[[np.random.Generator, int], np.ndarray]
SPREAD = 0.01


def quiet(chance: np.random.Generator, processes: int) -> np.ndarray:
    """Log medians that differ by 1 % (standard deviation)."""
    return chance.normal(0, SPREAD, processes)


def two_modes(chance: np.random.Generator, processes: int) -> np.ndarray:
    """One process in seven runs 1.8 times slower."""
    slow = chance.random(processes) < 1 / 7
    return quiet(chance, processes) + math.log(1.8) * slow


def drifting(chance: np.random.Generator, processes: int) -> np.ndarray:
    """Ever slower, by a spread every ten processes."""
    return quiet(chance, processes) + SPREAD * np.arange(processes) / 10


def heavy_tailed(chance: np.random.Generator, processes: int) -> np.ndarray:
    """Student's t with 2.5 degrees of freedom."""
    return SPREAD * chance.standard_t(2.5, processes)


def bursts(chance: np.random.Generator, processes: int) -> np.ndarray:
    """Something else runs now and then, for three processes, and slows them by 10 %."""
    begins = chance.random(processes + 2) < 0.07
    hit = begins[2:] | begins[1:-1] | begins[:-2]
    return quiet(chance, processes) + 0.1 * hit


def in_step(chance: np.random.Generator, processes: int) -> np.ndarray:
    """Something else runs for every third and fourth process: bursts in step with A B B A, by 1.2 spreads."""
    order = np.arange(processes) + chance.integers(4)
    return quiet(chance, processes) + 1.2 * SPREAD * (order % 4 < 2)


SOUND: dict[str, World] = {
    "quiet": quiet,
    "two modes": two_modes,
    "drifting": drifting,
    "heavy-tailed": heavy_tailed,
    "bursts": bursts,
}


def processes(logs: np.ndarray, seconds: float = 1e-3) -> tuple[tuple[float, ...], ...]:
    """Processes with these log medians, of one sample each."""
    return tuple((seconds * float(value),) for value in np.exp(logs))
