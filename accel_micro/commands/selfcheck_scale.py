"""Section 6 of `selfcheck`: what commands cost as cases and builds grow ten- and a hundredfold."""

import io
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple

from accel_micro.selfcheck.findings import Column, Row, Table, Value
from accel_micro.selfcheck.growth import exponent

FACTORS: Final = (1, 10, 100)
Told = Callable[[str], None]


class Step(NamedTuple):
    """Work whose cost grows: its name, what grows, its smallest size, and what makes a size and times it."""

    name: str
    grows: str
    least: int
    run: Callable[[int, Path], float]


def _compare(cases: int, folder: Path) -> float:
    from accel_micro.builds import Ledger
    from accel_micro.comparison.comparing import Request, compare
    from accel_micro.report.comparison import render
    from accel_micro.selfcheck.inventing import write_results

    baseline, contender = write_results(folder, cases, 3)
    start = perf_counter()
    comparison = compare(Request(baseline, contender), folder, Ledger.beside(folder))
    render(comparison, "table", io.StringIO(), width=120)
    return perf_counter() - start


def _publish(builds: int, folder: Path) -> float:
    from accel_micro.report.site import write_site
    from accel_micro.selfcheck.inventing import write_results

    write_results(folder / "results", 5, 2, builds)
    start = perf_counter()
    write_site(folder / "html", folder / "results")
    return perf_counter() - start


def _publish_cases(cases: int, folder: Path) -> float:
    from accel_micro.report.site import write_site
    from accel_micro.selfcheck.inventing import write_results

    write_results(folder / "results", cases, 2, 3)
    start = perf_counter()
    write_site(folder / "html", folder / "results")
    return perf_counter() - start


def _ledger(builds: int, folder: Path) -> float:
    from accel_micro.builds import Ledger, Target
    from accel_micro.builds.ranges import select
    from accel_micro.builds.sync import sync
    from accel_micro.builds.web import Web
    from accel_micro.selfcheck.inventing import write_index

    versions = write_index(folder / "index", builds)
    path = folder / "results" / "builds.jsonl"
    start = perf_counter()
    with Web() as web:
        sync(Ledger(path), [str(folder / "index")], [Target.here(("cpu",))], web, commits=False)
    select(Ledger(path), f"{versions[1]}..{versions[-2]}")
    return perf_counter() - start


def _bisect(builds: int, folder: Path) -> float:
    """Of the search itself: what it measures takes no time. The median of five histories."""
    from statistics import median

    import numpy as np

    from accel_micro.bisect import search
    from accel_micro.selfcheck.worlds import Machine, one_step

    spent = []
    for seed in range(5):
        chance = np.random.default_rng([seed, builds])
        machine = Machine(one_step(chance, builds, 4.0), chance)
        start = perf_counter()
        search(range(builds), machine, seed=seed)
        spent.append(perf_counter() - start)
    return median(spent)


STEPS: Final = (
    Step("compare", "cases", 20, _compare),
    Step("publish", "builds", 3, _publish),
    Step("publish", "cases", 5, _publish_cases),
    Step("ledger: sync and resolve a range", "builds", 30, _ledger),
    Step("bisect: the search itself", "builds", 30, _bisect),
)
COLUMNS: Final = (
    Column("least", "smallest", "count"),
    *(Column(f"at {factor}", f"×{factor}", "seconds") for factor in FACTORS),
    Column("tenfold", "the last tenfold", "factor"),
    Column("exponent", "growth exponent", "number"),
)
NOTE: Final = (
    "Seconds in one process, made-up results. The exponent is the slope of log seconds over log size: 1 is linear, and "
    "less than 1 means that something which does not grow is still most of it."
)


def grow(tell: Told, steps: Sequence[Step] = STEPS) -> Iterator[Row]:
    """Each step at its sizes. One that fails says why."""
    for step in steps:
        name = f"{step.name}, by {step.grows}"
        tell(f"scale: {name}")
        sizes = [step.least * factor for factor in FACTORS]
        seconds: list[float] = []
        try:
            for size in (step.least, *sizes):  # what the first one imports is not counted
                with tempfile.TemporaryDirectory() as folder:
                    seconds.append(step.run(size, Path(folder)))
            del seconds[0]
        except Exception as error:  # one step must not end the rest
            yield Row(name, {"least": step.least}, absent=f"{type(error).__name__}: {error}")
            continue
        values: dict[str, Value] = {
            "least": step.least,
            **{f"at {factor}": spent for factor, spent in zip(FACTORS, seconds, strict=True)},
            "tenfold": seconds[-1] / seconds[-2],
            "exponent": exponent(sizes, seconds),
        }
        yield Row(name, values, ours=True)


def table(rows: Sequence[Row]) -> Table:
    """All steps."""
    return Table("Cost over size", COLUMNS, tuple(rows), NOTE, first="work")
