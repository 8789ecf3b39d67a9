"""Comparisons whose answer is known, on this machine: how often are they wrong? Run by hand; takes up to two hours.

    python -m tests.end_to_end.series [--nothing 100] [--planted 30] [--out FILE]

Three environments hold the same torch under three versions. In the last one some
functions do every twentieth call twice. Small ops of the first two are compared with each other, as
`accel-micro compare --measure` compares them; any difference that is found is a false alarm. Then those that are
planted are looked for. The very samples that were taken are judged by other rules too: that of `asv compare`,
Mann-Whitney on pooled samples, and medians that differ by 2 %, as those of `torch.utils.benchmark` are read.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from accel_micro.asv_plugin.interleaving import interleaved
from accel_micro.asv_plugin.opening import Where
from accel_micro.comparison.deciding import Pair, decide
from tests.asv_plugin.conftest import CHECKOUT, INIT
from tests.end_to_end.repacked import Repacked, Served, serving

VERSIONS = {"baseline": "2.15.0.dev20261101", "same": "2.15.0.dev20261102", "planted": "2.15.0.dev20261103"}
AT_ONCE = 10

OPS = """
import torch
from torch.nn import functional

from accel_micro.suite import op


@op(quick=["rows=64 width=512"], backward=False)
def softmax(t, rows, width):
    x = t(rows, width)
    return lambda: functional.softmax(x, dim=1)


@op(quick=["rows=64 width=512"], backward=False)
def layer_norm(t, rows, width):
    x = t(rows, width)
    return lambda: functional.layer_norm(x, (width,))


@op(quick=["rows=32 width=1024"], backward=False)
def elu(t, rows, width):
    x = t(rows, width)
    return lambda: functional.elu(x)


@op(quick=["n=128"], backward=False)
def mm(t, n):
    a, b = t(n, n), t(n, n)
    return lambda: torch.mm(a, b)


@op(quick=["n=512"], backward=False)
def mv(t, n):
    a, b = t(n, n), t(n)
    return lambda: torch.mv(a, b)


@op(quick=["b=12 n=64"], backward=False)
def bmm(t, b, n):
    x, y = t(b, n, n), t(b, n, n)
    return lambda: torch.bmm(x, y)


@op(quick=["n=100000"], backward=False)
def add(t, n):
    a, b = t(n), t(n)
    return lambda: torch.add(a, b)


@op(quick=["n=30000"], backward=False)
def tanh(t, n):
    a = t(n)
    return lambda: torch.tanh(a)


@op(quick=["n=300000"], backward=False)
def sigmoid(t, n):
    a = t(n)
    return lambda: torch.sigmoid(a)


@op(quick=["c=16 n=32"], backward=False)
def conv(t, c, n):
    x, w = t(1, c, n, n), t(c, c, 3, 3)
    return lambda: functional.conv2d(x, w)
"""

PLANT = """

import itertools


def _five_per_cent_more(function):
    calls = itertools.count(1)

    def slower(*args, **kwargs):
        if not next(calls) % 20:
            function(*args, **kwargs)
        return function(*args, **kwargs)

    return slower


softmax, layer_norm, elu, conv2d = map(_five_per_cent_more, (softmax, layer_norm, elu, conv2d))
for _name in ("mm", "mv", "bmm", "add", "tanh", "sigmoid"):
    setattr(torch, _name, _five_per_cent_more(getattr(torch, _name)))
"""

Side = Sequence[Sequence[float]]


def main() -> None:
    """Measure, and print a line for each comparison and the table of rules."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nothing", type=int, default=100, help="comparisons of the same with itself")
    parser.add_argument("--planted", type=int, default=30, help="comparisons with what is 5 %% slower")
    parser.add_argument("--planted-seconds", type=float, default=60.0, help="budget for each of those")
    parser.add_argument("--nothing-seconds", type=float, default=60.0, help="budget for each of the others")
    parser.add_argument("--out", type=Path, help="where the samples go, a line of JSON for each comparison")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="accel-micro-series-") as name, serving() as index:
        out = (options.out or Path(name) / "series.jsonl").absolute()
        prepare(Path(name), index)
        with out.open("a", encoding="utf-8") as file:
            series("planted", options.planted, options.planted_seconds, file)
            series("same", options.nothing, options.nothing_seconds, file)
        print_table(read(out))


def prepare(folder: Path, index: Served) -> None:
    """A suite, a home without settings, and an index of three wheels."""
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "__init__.py").write_text(INIT)
    (folder / "benchmarks" / "ops.py").write_text(OPS)
    shutil.copy(CHECKOUT / "asv.conf.json", folder)
    (folder / "runtime").mkdir(mode=0o700)
    os.environ.update(HOME=str(folder), XDG_RUNTIME_DIR=str(folder / "runtime"), PYTHONPATH=str(CHECKOUT))
    os.environ.update(ACCEL_MICRO_VARIANT="cpu", ACCEL_MICRO_INDEXES=index.url)
    os.chdir(folder)
    torch = Repacked(folder / "common")
    local = "+" + torch.version.partition("+")[2] if "+" in torch.version else ""
    for number, (name, version) in enumerate(VERSIONS.items(), 1):
        change = [lambda text: text + PLANT] if name == "planted" else []
        index.add(torch.wheel(version + local, f"{number:040x}", *change))


def series(contender: str, count: int, seconds: float, file: IO[str]) -> None:
    """Compare families of ten at most until there are enough."""
    places = [Where(VERSIONS["baseline"]), Where(VERSIONS[contender])]
    with interleaved(Path("asv.conf.json"), places=places, devices=["cpu"], clocks=["throughput"]) as measure:
        cases = measure.cases(places[0], "quick")
        for done in range(0, count, len(cases)):
            family = cases[: count - done]
            began = time.monotonic()
            decisions = decide(
                [Pair((places[0], case), (places[1], case), ("throughput",)) for case in family],
                lambda subject: measure(*subject),
                budget_seconds=seconds * len(family),
                at_once=AT_ONCE,
                renew=lambda subjects: measure.renew([place for place, _ in subjects]),
            )
            spent = (time.monotonic() - began) / len(family)
            for decision in decisions:
                row = {
                    "contender": contender,
                    "case": f"{decision.pair.baseline[1].op.removeprefix('ops.')} {decision.pair.baseline[1].shape}",
                    "kind": decision.verdict.kind,
                    "ratio": decision.verdict.ratio,
                    "q_value": decision.verdict.q_value,
                    "seconds": spent,
                    "sides": [decision.baseline, decision.contender],
                }
                print(json.dumps(row), file=file, flush=True)
                print(told(row), flush=True)


def told(row: dict[str, Any]) -> str:
    """A comparison as a line."""
    spreads = " ".join(f"{100 * spread(side):5.2f}" for side in row["sides"])
    return (
        f"{row['contender']:8s} {row['case']:32s}{row['kind']:13s}{row['ratio']:7.4f}  q {row['q_value']:.1e}  "
        f"{len(row['sides'][0]):3d} a side, spread % {spreads}, {row['seconds']:5.1f} s each"
    )


def spread(side: Side) -> float:
    """Standard deviation of log process medians; NaN for fewer than two."""
    logs = [math.log(statistics.median(process)) for process in side]
    return statistics.stdev(logs) if len(logs) > 1 else math.nan


def read(path: Path) -> list[dict[str, Any]]:
    """What was measured."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def by_asv(baseline: Side, contender: Side) -> bool:
    """Would `asv compare` mark it? Its own rule at its own factor of 1.1, either way."""
    from asv.commands.compare import _is_result_better
    from asv_runner.statistics import compute_stats

    sides = [[x for process in side for x in process] for side in (baseline, contender)]
    (a, a_stats), (b, b_stats) = (compute_stats(side, 1) for side in sides)
    return bool(
        _is_result_better(a, b, (a_stats, sides[0]), (b_stats, sides[1]), 1.1)
        or _is_result_better(b, a, (b_stats, sides[1]), (a_stats, sides[0]), 1.1)
    )


def by_mann_whitney(baseline: Side, contender: Side, alpha: float = 0.01) -> bool:
    """Mann and Whitney's test on all samples, whatever process they are of."""
    from scipy.stats import mannwhitneyu

    pooled = [[x for process in side for x in process] for side in (baseline, contender)]
    return bool(mannwhitneyu(*pooled).pvalue < alpha)


def by_medians(baseline: Side, contender: Side) -> bool:
    """Medians of all samples that differ by more than 2 %."""
    a, b = (statistics.median(x for process in side for x in process) for side in (baseline, contender))
    return max(a / b, b / a) > 1.02


def by_first_medians(baseline: Side, contender: Side) -> bool:
    """The same of the first process of each side alone, as most people measure."""
    return by_medians(baseline[:1], contender[:1])


RULES: dict[str, Callable[[Side, Side], bool]] = {
    "asv compare (factor 1.1)": by_asv,
    "Mann-Whitney, pooled samples, 1 %": by_mann_whitney,
    "medians of all samples, 2 %": by_medians,
    "medians of one process each, 2 %": by_first_medians,
}


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Of each rule how many differences it found, where there is none and where there is one."""
    of = {name: [row for row in rows if row["contender"] == name] for name in ("same", "planted")}
    counts = {name: len(found) for name, found in of.items()}
    yield f"{'called different by':36s}{'nothing there':>16s}{'5 % planted':>16s}"
    kinds = ("regression", "improvement")
    ours = [sum(row["kind"] in kinds for row in of[name]) for name in of]
    for rule, found in [
        ("accel-micro compare --measure", ours),
        *((rule, [sum(f(*row["sides"]) for row in of[name]) for name in of]) for rule, f in RULES.items()),
    ]:
        cells = [f"{n} of {counts[name]}" for n, name in zip(found, of, strict=True)]
        yield f"{rule:36s}" + "".join(f"{cell:>16s}" for cell in cells)
    for name, found_rows in of.items():
        if found_rows:
            kinds_of = {
                kind: sum(row["kind"] == kind for row in found_rows)
                for kind in (*kinds, "invariant", "inconclusive")
            }
            ratios = [row["ratio"] for row in found_rows]
            yield (
                f"{name}: {', '.join(f'{n} {kind}' for kind, n in kinds_of.items())}; "
                f"ratios {min(ratios):.3f} to {max(ratios):.3f}, median {statistics.median(ratios):.3f}; "
                f"{statistics.mean(len(row['sides'][0]) for row in found_rows):.1f} processes a side and "
                f"{statistics.mean(row['seconds'] for row in found_rows):.1f} s a case on average"
            )


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print what `table` says."""
    print()
    for line in table(rows):
        print(line)


if __name__ == "__main__":
    main()
