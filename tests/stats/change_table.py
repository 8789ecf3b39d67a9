"""False alarms and hits of change point methods, in Markdown.

`python -m tests.stats.change_table SERIES BUILDS [METHOD …]`; each cell is of that many simulated series.
"""

import sys
import time

import numpy as np

from tests.stats.change_methods import METHODS
from tests.stats.series import WORLDS, step

FLOOR = 0.02


def false_alarms(method: str, repetitions: int, builds: int) -> dict[str, float]:
    """World → share of series without a change in which one is named."""
    result = {}
    for world in WORLDS:
        rng = np.random.default_rng(1)
        named = [bool(METHODS[method](world.series(rng, builds), FLOOR)) for _ in range(repetitions)]
        result[world.name] = float(np.mean(named))
    return result


def hits(
    method: str, repetitions: int, builds: int, size: float, after: int
) -> dict[str, tuple[float, float]]:
    """World → share of series in which the step is named within a build; other changes named a series."""
    result = {}
    for world in WORLDS:
        rng = np.random.default_rng(2)
        hit, others = 0, 0
        for _ in range(repetitions):
            found = METHODS[method](world.series(rng, builds, step(builds, after, size)), FLOOR)
            near = [index for index in found if abs(index - (builds - after)) <= 1]
            hit += bool(near)
            others += len(found) - bool(near)
        result[world.name] = (hit / repetitions, others / repetitions)
    return result


def main() -> None:
    names = sys.argv[3:] or list(METHODS)
    repetitions, builds = int(sys.argv[1]), int(sys.argv[2])
    columns = [(0.03, 15), (0.05, 15), (0.05, 3), (0.1, 15), (0.1, 3), (0.1, 2), (0.1, 1)]
    for name in names:
        began = time.perf_counter()
        rows = {world: [f"{share:.3f}"] for world, share in false_alarms(name, repetitions, builds).items()}
        seconds = (time.perf_counter() - began) / repetitions / len(WORLDS)
        for size, after in columns:
            for world, (hit, others) in hits(name, repetitions, builds, size, after).items():
                rows[world].append(f"{hit:.2f}/{others:.2f}")
        print(
            f"\n**{name}**, {builds} builds, {repetitions} series a cell, {1000 * seconds:.1f} ms a series\n"
        )
        head = ["world", "false alarms", *(f"+{round(100 * s)} %, {a} after" for s, a in columns)]
        print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
        for world, cells in rows.items():
            print("| " + " | ".join([world, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
