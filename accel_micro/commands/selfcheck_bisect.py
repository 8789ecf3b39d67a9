"""Section 4 of `selfcheck`: searches on machines that do not exist, ours and others'."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from accel_micro.selfcheck.findings import Column, Row, Table

if TYPE_CHECKING:
    from accel_micro.selfcheck.simulating import Outcome

BUILDS: Final = 60
_JOBS: Final = 2
_AT_ONCE: Final = 8
_MOST: Final = 200
_FALSE: Final = 0.05

Told = Callable[[str], None]


class Cell(NamedTuple):
    """A world and an effect in units of the noise; 0: nothing got slower."""

    world: str
    effect: float
    title: str


CELLS: Final = (
    Cell("plain", 2.0, "a step of twice the noise"),
    Cell("plain", 0.0, "nothing got slower"),
    Cell("drift", 2.0, "the machine drifts by twice the noise"),
    Cell("three in ten slow", 4.0, "three processes in ten run 1.8 times slower"),
)
COLUMNS: Final = (
    Column("wrong", "innocent build named", "share", "low"),
    Column("right", "culprit named", "share", "high"),
    Column("runs", "runs a search", "number"),
    Column("searches", "searches", "count"),
)


def simulate(budget_seconds: float, tell: Told) -> "dict[Cell, dict[str, list[Outcome]]]":
    """The same histories by each rule, some of every cell in turn, until the budget ends."""
    from accel_micro.selfcheck.peers.searches import RIVALS
    from accel_micro.selfcheck.simulating import ours, theirs

    found: dict[Cell, dict[str, list[Outcome]]] = {cell: {} for cell in CELLS}
    begin, seed, longest = perf_counter(), 0, 0.0
    # Fresh interpreters: in this one asv's commands may have been replaced by ours.
    with ProcessPoolExecutor(_JOBS, mp_context=get_context("spawn")) as pool:
        while seed < _MOST and (seed == 0 or perf_counter() - begin + longest < budget_seconds):
            start = perf_counter()
            seeds = range(seed, seed + _AT_ONCE)
            for cell in CELLS:
                rules = {"ours": partial(ours, cell.world, BUILDS, cell.effect)} | {
                    rival: partial(theirs, rival, cell.world, BUILDS, cell.effect) for rival in RIVALS
                }
                for name, rule in rules.items():
                    found[cell].setdefault(name, []).extend(pool.map(rule, seeds))
            seed += _AT_ONCE
            longest = max(longest, perf_counter() - start)
            tell(f"bisect: {seed} searches a cell, {perf_counter() - begin:.0f} of {budget_seconds:.0f} s")
    return found


def tables(found: "dict[Cell, dict[str, list[Outcome]]]") -> list[Table]:
    """A table for each cell. A rule that names innocents does not compete in naming culprits."""
    made = []
    for cell, by_rule in found.items():
        columns = [column for column in COLUMNS if cell.effect or column.key != "right"]
        rows = [_row(name, outcomes) for name, outcomes in by_rule.items() if outcomes]
        made.append(Table(f"{BUILDS} builds, {cell.title}", tuple(columns), tuple(rows), first="rule"))
    return made


def _row(name: str, outcomes: "Sequence[Outcome]") -> Row:
    wrong = sum(one.wrong for one in outcomes) / len(outcomes)
    values = {
        "wrong": wrong,
        "right": sum(one.right for one in outcomes) / len(outcomes),
        "runs": fmean(one.runs for one in outcomes),
        "searches": len(outcomes),
    }
    void = frozenset({"right"}) if wrong > _FALSE else frozenset[str]()
    return Row(name, values, ours=name == "ours", void=void)
