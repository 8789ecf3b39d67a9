"""The same build against itself: how many of many cases are called faster or slower?"""

import tempfile
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import Final

from accel_micro.measure.records import Record
from accel_micro.stats.false_alarms import split
from accel_micro.stats.judging import judge_family
from benchmarks.harness.reports.row import Attempt, DoesNotApply, Finding

_CASES: Final = 12
_PROCESSES: Final = 8
_CLOCK: Final = "throughput"

Samples = Sequence[float]


def nvbench_says(baseline: Samples, contender: Samples) -> str:
    """The rule of nvbench-compare: FAST or SLOW where the means differ by more than the smaller relative deviation.

    >>> nvbench_says([1.0, 1.01], [1.1, 1.2]), nvbench_says([1.0, 1.2], [1.01, 1.21])
    ('SLOW', 'SAME')
    """
    means = fmean(baseline), fmean(contender)
    noise = min(stdev(side) / mean for side, mean in zip((baseline, contender), means, strict=True))
    change = means[1] / means[0] - 1
    return "SAME" if abs(change) <= noise else "SLOW" if change > 0 else "FAST"


def against_itself() -> Finding:
    """Report 15, on the CPU: fresh processes of the installed torch, A B B A, as a calibration takes them."""
    from accel_micro.commands.calibrate import Request, bench
    from accel_micro.commands.calibrate_cases import spread
    from accel_micro.commands.calibrate_run import run

    with (
        tempfile.TemporaryDirectory() as folder,
        bench(Request(devices=("cpu",), out=Path(folder))) as installed,
    ):
        measured = run(
            spread(installed.definitions("cpu"), "cpu"),
            installed.measure,
            cases=_CASES,
            seconds=None,
            processes=_PROCESSES,
            renew=installed.renew,
        )
    cases = [each.records for each in measured.cases if len(each.records) == _PROCESSES]
    if not cases:
        raise DoesNotApply("no case has a time here")
    verdicts = judge_family([split(_samples(records)) for records in cases], turns=True)
    kinds = [verdict.kind for verdict in verdicts]
    called = sum(kind in ("regression", "improvement") for kind in kinds)
    pairs = [
        nvbench_says(one.clocks[_CLOCK].raw_samples, other.clocks[_CLOCK].raw_samples)
        for records in cases
        for one, other in combinations(records, 2)
    ]
    unlike = sum(word != "SAME" for word in pairs)
    return Finding(
        tried=f"torch against itself: {len(cases)} cases, {_PROCESSES} fresh processes each, A B B A",
        naive=f"{unlike} of {len(pairs)} pairs of single processes FAST or SLOW by nvbench's rule, on samples as read",
        ours=f"{called} of {len(cases)} cases called different; {kinds.count('invariant')} invariant, "
        f"{kinds.count('inconclusive')} inconclusive",
        does=f"{called} false alarms",
        good=called == 0,
        figures={
            "cases": len(cases),
            "processes": _PROCESSES,
            "naive_pairs": len(pairs),
            "naive_different": unlike,
            "ours_different": called,
            "ours_invariant": kinds.count("invariant"),
            "ours_inconclusive": kinds.count("inconclusive"),
            "ratios": {str(records[0].case): v.ratio for records, v in zip(cases, verdicts, strict=True)},
            "seconds": measured.seconds,
        },
    )


def _samples(records: Sequence[Record]) -> list[tuple[float, ...]]:
    return [record.clocks[_CLOCK].samples for record in records]


ATTEMPTS: Final = (Attempt(15, "cpu", "CPU", against_itself, most_seconds=580.0),)
