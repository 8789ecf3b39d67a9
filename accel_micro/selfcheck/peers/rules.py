"""How others tell a slower side from the same: their own code on data that they would have gathered.

Each rule says `slower`, `faster` or `same` of two sides. What it takes is stated with it.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final, Literal

Called = Literal["slower", "faster", "same"]

TIMER_TOLERANCE: Final = 0.02
"""torch.utils.benchmark has no test; who reads two medians takes a difference of more than this for one."""

POOLED_LEVEL: Final = 0.01
"""Of the Mann–Whitney test on pooled samples: our own level."""


def asv_compare(baseline: Sequence[float], contender: Sequence[float], factor: float = 1.1) -> Called:
    """`asv compare`, `asv continuous`: the samples of all processes of a side, pooled; its test and its factor."""
    from asv.commands.compare import _is_result_better
    from asv_runner.statistics import compute_stats

    sides = []
    for samples in (baseline, contender):
        value, stats = compute_stats(list(samples), 1)
        sides.append((value, (stats, list(samples))))
    (first, first_stats), (second, second_stats) = sides
    if _is_result_better(first, second, first_stats, second_stats, factor):
        return "slower"
    if _is_result_better(second, first, second_stats, first_stats, factor):
        return "faster"
    return "same"


def pooled(baseline: Sequence[float], contender: Sequence[float]) -> Called:
    """Mann and Whitney's test, by asv's code, on the samples of all processes as if they were independent."""
    from asv._stats import mann_whitney_u

    _, p_value = mann_whitney_u(list(baseline), list(contender))
    return _called(median(contender) / median(baseline)) if p_value <= POOLED_LEVEL else "same"


def medians(baseline: float, contender: float) -> Called:
    """Two readings of one process each, held against each other by eye."""
    ratio = contender / baseline
    return _called(ratio) if max(ratio, 1 / ratio) > 1 + TIMER_TOLERANCE else "same"


def pyperf_compare(baseline: Path, contender: Path) -> Called:
    """`pyperf compare_to` of two files of its own: a t test on all values of all processes.

    Raises:
        ImportError: pyperf is not installed.
    """
    import pyperf
    from pyperf._compare import is_significant_benchs

    first, second = (pyperf.Benchmark.load(str(path)) for path in (baseline, contender))
    significant, _ = is_significant_benchs(first, second)
    return _called(second.mean() / first.mean()) if significant else "same"


def _called(ratio: float) -> Called:
    return "slower" if ratio > 1 else "faster"


def is_wrong(called: Called, planted: float) -> bool:
    """A false alarm where nothing was planted; a miss, or the wrong direction, where something was."""
    return called != ("slower" if planted > 0 else "same")
