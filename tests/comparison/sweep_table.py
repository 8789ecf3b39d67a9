"""The table of docs/crossover.md: `python -m tests.comparison.sweep_table [RUNS]` simulates it anew."""

import argparse
import statistics

from tests.comparison.sweep_worlds import WORLDS, tally


def main(runs: int) -> None:
    """Print it as Markdown."""
    print(
        "| machine | a size on the wrong side | crossings a sweep | of them empty | width | off by | processes |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, world in WORLDS.items():
        told = tally(world, range(runs))
        width = f"{statistics.median(told.widths):.2f}" if told.widths else "–"
        off = f"{100 * statistics.median(told.misses):.1f} %" if told.misses else "–"
        print(
            f"| {name} | {100 * told.wrong / runs:.1f} % | {told.found / runs:.2f} | "
            f"{100 * told.empty / max(told.found, 1):.1f} % | {width} | {off} | "
            f"{statistics.mean(told.processes):.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=int, nargs="?", default=400, help="sweeps on each machine")
    main(parser.parse_args().runs)
