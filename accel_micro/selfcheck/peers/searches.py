"""How others bisect: each is handed a machine and names pairs of neighbours among builds.

`asv find` is asv's own code. Pinpoint is no library: its rule is written down again, as is plain bisection.
"""

import math
import statistics
from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from accel_micro.selfcheck.worlds import Machine

Named = list[tuple[int, int]]


def asv_find(machine: Machine, builds: int, effect: float) -> Named:
    """`asv find` itself, its builds played by the machine: each once, the half with the larger rise, always a culprit.

    Where our plugin has taken its place, that hands on what is not torch's. Of an asv that has changed too much to be
    played with, whatever it raises.
    """
    from asv.commands import find
    from asv.util import UserError

    hashes = [f"{build:040x}" for build in range(builds)]

    class Results:
        def __init__(self, params: Any, requirements: Any, commit: str, *rest: Any) -> None:
            self.build = int(commit, 16)
            self.value: float | None = None
            self.errcode = {"time_op": 0}

        def get_result_value(self, name: str, params: Any) -> list[float | None]:
            return [self.value]

    def run_benchmarks(benchmarks: Any, env: Any, results: Results, **options: Any) -> Results:
        results.value = machine.one(results.build)
        return results

    found: list[str] = []

    def decorated(commit: str, length: int) -> str:
        found.append(commit)  # the last one that asv names is its answer
        return commit

    environment = SimpleNamespace(
        install_project=_nothing, python="3", requirements={}, name="env", env_vars={}
    )
    repository = SimpleNamespace(
        pull=_nothing,
        get_hashes_from_range=lambda text: hashes[::-1],
        get_decorated_hash=decorated,
        get_date=lambda commit: 0,
    )
    played: dict[str, Any] = {
        "get_repo": lambda conf: repository,
        "Machine": SimpleNamespace(load=lambda **options: SimpleNamespace(save=_nothing)),
        "Setup": SimpleNamespace(run=lambda **options: [environment]),
        "Benchmarks": SimpleNamespace(discover=lambda *a, **k: {"time_op": {"type": "time", "params": []}}),
        "Results": Results,
        "run_benchmarks": run_benchmarks,
        "log": SimpleNamespace(info=_nothing, error=_nothing, warning=_nothing, indent=nullcontext),
    }
    with patch.multiple(find, **played):
        try:
            find.Find.run(
                SimpleNamespace(project="", results_dir="", dvcs="played"), "", "time_op", skip_save=True
            )
        except UserError:
            return []  # "Too many commits failed"
    high = int(found[-1], 16)
    return [(_working_before(machine, high), high)]


def _nothing(*arguments: Any, **options: Any) -> None:
    """What asv does besides searching."""


def bisect_by_ten(machine: Machine, builds: int, effect: float) -> Named:
    """Ten runs each, one build after the other; a build is bad when its median lies nearer to the bad end's."""

    def median(build: int) -> float | None:
        values = [machine.one(build) for _ in range(10)]
        working = [math.log(value) for value in values if value is not None]
        return statistics.median(working) if working else None

    low, high = 0, builds - 1
    good, bad = median(low), median(high)
    assert good is not None and bad is not None
    middle_line = (good + bad) / 2
    skipped: set[int] = set()
    while left := [build for build in range(low + 1, high) if build not in skipped]:
        build = min(left, key=lambda each: abs(each - (low + high) / 2))
        found = median(build)
        if found is None:
            skipped.add(build)
        elif (found > middle_line) == (bad > good):
            high = build
        else:
            low = build
    return [(low, high)]


def pinpoint(machine: Machine, builds: int, effect: float) -> Named:
    """Chromium's Pinpoint (job_state.py, compare/compare.py), told how large the difference is.

    Ten runs each; neighbours among the builds that were tried are compared by the smaller p-value of
    Kolmogorov-Smirnov and Mann-Whitney. Up to 0.01 they differ and the build in the middle is tried; above a bound that
    depends on size and number they are the same; else the one with fewer runs is run ten times more. The bound is a
    table there, the p-value that a difference of that size exceeds once in a hundred; here its normal approximation.
    """
    values: dict[int, list[float]] = {}
    broken: set[int] = set()

    def run(build: int) -> None:
        got = [value for _ in range(10) if (value := machine.one(build)) is not None]
        if got:
            values.setdefault(build, []).extend(got)
        else:
            broken.add(build)

    run(0)
    run(builds - 1)
    size = math.expm1(machine.world.spread * effect) * 1e-3
    while True:
        tried = sorted(values)
        more = False
        for a, b in pairwise(tried):
            verdict = _compare(values[a], values[b], size)
            if verdict == "unknown":
                run(a if len(values[a]) <= len(values[b]) else b)
                more = True
            elif verdict == "different":
                left = [build for build in range(a + 1, b) if build not in broken]
                if left:
                    run(min(left, key=lambda each: abs(each - (a + b) / 2)))
                    more = True
        if not more:
            break
    tried = sorted(values)
    return [(a, b) for a, b in pairwise(tried) if _compare(values[a], values[b], size) == "different"]


def _compare(a: list[float], b: list[float], size: float) -> str:
    from scipy.stats import ks_2samp, mannwhitneyu

    p_value = min(
        float(ks_2samp(a, b, method="asymp").pvalue), float(mannwhitneyu(a, b, method="asymptotic").pvalue)
    )
    if p_value <= 0.01:
        return "different"
    ranges = [_interquartile_range(values) for values in (a, b)]
    count = (len(a) + len(b)) / 2
    least = size / max(ranges) * 1.349 * math.sqrt(count / 2) * 0.977 - 2.326
    bound = math.erfc(least / math.sqrt(2)) if least > 0 else 1.0
    return "same" if p_value > bound or count >= 160 else "unknown"


def _interquartile_range(values: list[float]) -> float:
    first, _, third = statistics.quantiles(values, n=4)
    return third - first


def _working_before(machine: Machine, build: int) -> int:
    build -= 1
    while build > 0 and build in machine.world.broken:
        build -= 1
    return build


Rival = Callable[[Machine, int, float], Named]
RIVALS: Final[dict[str, Rival]] = {
    "asv find": asv_find,
    "ten runs each": bisect_by_ten,
    "Pinpoint": pinpoint,
}
