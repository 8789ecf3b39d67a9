"""A self-check that nobody ran: every kind of row, figure and section."""

import math

from accel_micro.commands.selfcheck import POWER_COLUMNS, POWER_NOTES
from accel_micro.commands.selfcheck_bisect import CELLS
from accel_micro.commands.selfcheck_bisect import tables as bisect_tables
from accel_micro.commands.selfcheck_scale import table as scale_table
from accel_micro.commands.selfcheck_truth import (
    KERNEL_NOTES,
    SPIN_NOTES,
    SpinReadings,
    kernel_tables,
    spin_tables,
)
from accel_micro.selfcheck.findings import Column, Row, Section, SelfCheck, Table
from accel_micro.selfcheck.peers.reading import Known
from accel_micro.selfcheck.planning import PARTS
from accel_micro.selfcheck.simulating import Outcome
from accel_micro.selfcheck.truth import Reading, Timed

TITLES = {part.key: (part.title, part.question) for part in PARTS}


def spins() -> list[SpinReadings]:
    """Ours is within a tenth of a percent, timeit adds a fifth."""
    runs = {
        "ours": [Known(10.01e-6, ((10.01e-6, 10e-6), (10.02e-6, 10e-6)), 1.0, 0.5)] * 2
        + [Known(10.2e-6, ((10.2e-6, 10.2e-6),), 1.0, 0.5)],
        "timeit": [
            Known(12e-6, ((12e-6, 10e-6),), 0.4, 0.2),
            Known(22e-6, ((22e-6, 18e-6),), 0.4, 0.2),
        ],
    }
    return [SpinReadings(10e-6, runs)]


def kernels() -> list[Timed]:
    """A large case, and a small one that a graph cannot hold."""
    large = Timed(
        "matmul.mm 4096 bfloat16",
        200e-6,
        {
            "ours, device": Reading(201e-6, 200e-6, 200e-6, 0.6),
            "triton do_bench": Reading(210e-6, 200e-6, 208e-6, 0.2),
        },
    )
    small = Timed(
        "pointwise.add 1000 float32",
        1.1e-6,
        {"ours, device": Reading(1.2e-6, 1.1e-6, 1.2e-6, 0.6)},
        {"triton do_bench": "RuntimeError: it <cannot> be captured"},
    )
    return [large, small]


def outcomes(wrong: int, right: int, runs: int) -> list[Outcome]:
    """Ten searches."""
    found = [Outcome(runs, "culprit", True, False, False)] * wrong
    found += [Outcome(runs, "culprit", False, False, True)] * right
    return found + [Outcome(runs, "not_reproduced", False, False, False)] * (10 - wrong - right)


def power() -> Table:
    """Ours misses +2 %; another one cries wolf."""
    figures = {
        "ours": (True, (0.0, 0.0, 0.9, 1.0, 0.3, 60, 12.0)),
        "asv compare": (False, (0.02, 0.0, 0.0, 0.1, 0.0, 60, 0.5)),
        "Mann–Whitney, pooled samples": (False, (0.4, 0.8, 1.0, 1.0, 0.0, 60, 8.0)),
    }
    planted = frozenset({"+2 %", "+5 %", "+10 %"})
    rows = [
        Row(
            name,
            dict(zip((column.key for column in POWER_COLUMNS), values, strict=True)),
            ours=ours,
            void=planted if values[0] > 0.05 else frozenset(),
        )
        for name, (ours, values) in figures.items()
    ]
    rows.append(Row("pyperf compare_to", absent="pyperf is not installed: pip install 'accel-micro[peers]'"))
    return Table("Planted work", POWER_COLUMNS, tuple(rows), first="rule")


def check(*, interrupted: bool = False) -> SelfCheck:
    """All sections, one without an answer."""
    cost = Table(
        "Known within ±1 %",
        (
            Column("seconds", "seconds to ±1 %", "seconds", "low", 0.1),
            Column("processes", "processes", "count"),
        ),
        (
            Row("ours", {"seconds": 4.1, "processes": 6}, ours=True),
            Row("asv time_", {"seconds": math.inf, "processes": None}),
        ),
        "See `accel-micro calibrate`.",
    )
    scale = Row(
        "compare, by cases",
        {"least": 20, "at 1": 0.03, "at 10": 0.25, "at 100": 2.6, "tenfold": 10.4, "exponent": 0.97},
        ours=True,
    )
    simulated = {
        CELLS[0]: {"ours": outcomes(0, 9, 85), "asv find": outcomes(7, 3, 8)},
        CELLS[1]: {"ours": outcomes(0, 0, 43), "asv find": outcomes(10, 0, 8)},
    }
    tables = {
        "truth": ((*kernel_tables(kernels()), *spin_tables(spins())), (*KERNEL_NOTES, *SPIN_NOTES)),
        "power": ((power(),), POWER_NOTES),
        "cost": ((cost,), ()),
        "bisect": (tuple(bisect_tables(simulated)), ()),
        "explain": ((), ()),
        "scale": ((scale_table([scale]),), ()),
    }
    sections = tuple(
        Section(
            key,
            *TITLES[key],
            "each in turns",
            of,
            notes,
            f"accel-micro selfcheck {key}",
            12.0,
            failed="CannotCapture: mnist could not be <captured>" if key == "explain" else "",
        )
        for key, (of, notes) in tables.items()
    )
    facts = (("machine", "2 cores, AMD EPYC | 7R13"), ("device", "cpu"), ("torch", "2.13.0+cpu"))
    return SelfCheck(
        sections, facts, "accel-micro selfcheck --budget 600", "2026-11-28T16:00:00+00:00", 612.0, interrupted
    )
