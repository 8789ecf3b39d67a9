"""Our clocks and those of other harnesses against a witness of the truth, in one process and in turns.

On CUDA the witness is CUPTI's kernel time, read before and after each harness; on the CPU it is the work itself, a
spin that notes its length. Harnesses that cannot be imported, and cases that fail, are named and cost themselves alone.
"""

import argparse
import contextlib
import gc
import json
import math
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from accel_micro import profiles
from accel_micro.device_names import kind_of
from accel_micro.selfcheck.peers.reading import first_line, read_case
from accel_micro.selfcheck.spreading import in_turns
from accel_micro.selfcheck.truth import KERNELS, Band, Reading, Timed, differences, errors, spreads
from benchmarks.harness.cases import cases
from benchmarks.harness.clocks import prepared_case, usable

FAMILIES = r"^(matmul|conv2d|attention|optimizer|pointwise)\."
BUDGET_SECONDS = 300.0

_AGREEMENT = 0.15
_NVBENCH_SHARE = 0.2
_NVBENCH_LAST_SECONDS = 60.0  # for the case under way when its time is up, and to end
_NVBENCH = "cuda.bench"

Key = tuple[str, str, str, str]
"""Name of the op, direction, dtype and shape."""


@dataclass(frozen=True)
class Effort:
    """How long each case is looked at.

    Attributes:
        brief: each harness gets a part of its default time.
        seconds: of ours for a clock; None is the profile's. warmup_seconds: of ours before it; the case before has kept
            the GPU's clock up, so less than in a process of its own.
        together: harnesses between two readings of CUPTI.
        repeated_cases, repeats_share: how many cases are read again, and in what share of the whole time.
        harness: regular expression of those that read.
    """

    brief: bool
    seconds: float | None
    warmup_seconds: float
    together: int
    repeated_cases: int
    repeats_share: float
    harness: str = ""

    def has(self, name: str) -> bool:
        """Whether the harness of that name reads."""
        return re.search(self.harness, name) is not None


WHOLE = Effort(False, None, 0.2, 1, 4, 0.35)
BRIEF = Effort(True, 0.15, 0.03, 3, 8, 0.14)


@dataclass
class Budget:
    """Seconds that may be spent, from now on."""

    seconds: float
    start: float = field(default_factory=perf_counter)

    @property
    def left(self) -> float:
        """Seconds that are left, negative once they are overspent."""
        return self.start + self.seconds - perf_counter()


def families_of(keys: Sequence[Key]) -> dict[str, list[Key]]:
    """Cases by the family of their op, in order."""
    groups: dict[str, list[Key]] = {}
    for key in keys:
        groups.setdefault(key[0].partition(".")[0], []).append(key)
    return groups


def chosen_again(timed: Sequence[Timed], bands: Sequence[Band], most: int) -> list[Timed]:
    """Up to `most` cases for repetition: of each band in turn, those of the middle first that were not repeated."""
    groups = {}
    for band in bands:
        among = sorted((case for case in timed if band.has(case.unit_seconds)), key=lambda c: c.unit_seconds)
        middle = len(among) // 2
        order = {id(case): (bool(case.again), abs(place - middle)) for place, case in enumerate(among)}
        groups[band.name] = sorted(among, key=lambda case: order[id(case)])
    picked: list[Timed] = []
    for turn in range(most):
        for among in groups.values():
            if turn < len(among) and len(picked) < most:
                picked.append(among[turn])
    return picked


def repeat_case(row: Timed, watches: Sequence[Any], call: Callable[[], Any], runs: int, left: Budget) -> None:
    """Each harness that read the case reads it again, in turns, as often as wanted while time is left."""
    for _ in range(runs):
        if left.left < 0:
            return
        for watch in watches:
            if watch.name in row.readings:
                with contextlib.suppress(Exception):  # it read before: a run that fails is one run fewer
                    row.again.setdefault(watch.name, []).append(watch.read(call))


# CUDA


@contextlib.contextmanager
def _on_cuda(
    key: Key, classes: Mapping[str, Any], device_name: str, effort: Effort
) -> Iterator[tuple[Any, Any, Any]]:
    """The open device, the call of a case, and CUPTI for it."""
    from accel_micro.measure.sampling import opened
    from accel_micro.selfcheck.peers.witnesses import Cupti

    name, direction, dtype, shape = key
    cls = classes[name]
    cls().setup(device_name, dtype, shape)
    with opened(device_name) as device, prepared_case(cls, direction, device_name, dtype, shape) as (case, _):
        device.minimum_warmup_seconds = effort.warmup_seconds
        start = perf_counter()
        while perf_counter() < start + 0.05:
            case.call()
            device.synchronize()
        yield device, case.call, Cupti(device, case.call)


def _cuda_case(
    key: Key, classes: Mapping[str, Any], device_name: str, budget_seconds: float, effort: Effort
) -> Timed:
    row = Timed(" ".join(key))
    with _on_cuda(key, classes, device_name, effort) as (device, call, cupti):
        mine, watches = _watches(device, budget_seconds, effort)
        regimes = {"queued": cupti.queued, "cold": cupti.cold}
        read_case(row, watches, call, cupti.plain, regimes, effort.together)
        row.unit_seconds = median(one.truth for one in row.readings.values()) / max(1.0, cupti.kernels)
        row.facts |= {"kernels": cupti.kernels, **mine.facts}
    return row


def _watches(device: Any, budget_seconds: float, effort: Effort) -> tuple[Any, list[Any]]:
    """Ours, and all who read a case: ours, then the others."""
    from accel_micro.selfcheck.peers.stopwatches import Ours, stopwatches

    mine = Ours(device, effort.seconds or budget_seconds, brief=effort.brief)
    among = [*mine.stopwatches, *stopwatches("cuda", brief=effort.brief)]
    return mine, [watch for watch in among if effort.has(watch.name)]


def _cuda(options: argparse.Namespace, budget: Budget, effort: Effort) -> list[Timed]:
    import torch

    profile = profiles.get(options.profile)
    found = list(cases(options.device, profile, options.bench or FAMILIES, cold=False))
    classes = {cls.op.name: cls for cls, *_ in found}
    keys = [(cls.op.name, direction, dtype, shape) for cls, direction, dtype, shape in found]
    groups = families_of(keys)
    rows = earlier(options.after, torch.cuda.get_device_name(), torch.__version__)
    by_name = {" ".join(key): key for key in in_turns(groups)}
    known = {row.name for row in rows}
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}; {len(keys)} cases in {len(groups)} families"
        + (f"; {len(known)} were read earlier" if known else "")
    )
    with_nvbench = effort.has(_NVBENCH) and nvbench_absent() is None
    reserved = _NVBENCH_SHARE * budget.seconds if with_nvbench else 0.0
    repeating = (effort.repeats_share if options.repeats > 1 else 0.0) * budget.seconds
    alive = True
    for name, key in by_name.items():
        if budget.left < reserved + repeating:
            break
        if name in known:
            continue
        start = perf_counter()
        try:
            row = _cuda_case(key, classes, options.device, profile.budget_seconds, effort)
        except Exception as error:  # one case must not end the table
            print(f"{name}: {type(error).__name__}: {first_line(error)}", flush=True)
            if not (alive := usable(options.device)):
                print("the device refuses all further work in this process", flush=True)
                break
            continue
        if not gc.get_freeze_count():  # torch, all of it imported now, makes each later collection 0.2 s long
            gc.collect()
            gc.freeze()
        rows.append(row)
        _print_row(row, perf_counter() - start)
        if not (alive := usable(options.device)):
            print(f"after {row.name} the device refuses all further work in this process", flush=True)
            break
    if options.repeats > 1 and alive:
        again = chosen_again([row for row in rows if row.name in by_name], KERNELS, effort.repeated_cases)
        for place, row in enumerate(again):
            time_for_it = Budget((budget.left - reserved) / (len(again) - place))
            with _on_cuda(by_name[row.name], classes, options.device, effort) as (device, call, cupti):
                _, watches = _watches(device, profile.budget_seconds, effort)
                repeat_case(row, watches, call, options.repeats, time_for_it)
                row.again["CUPTI"] = [cupti.plain() for _ in range(options.repeats)]
            print(f"read again {len(row.again['CUPTI'])} times: {row.name}", flush=True)
    if reserved:
        of_case = {row.name: row for row in rows if not any(one.startswith(_NVBENCH) for one in row.readings)}
        unread = [of_case[name] for name in by_name if name in of_case]
        _read_nvbench(unread, by_name, options.device, budget, effort)
    return rows


def earlier(files: Sequence[str], card: str, torch_version: str) -> list[Timed]:
    """The cases that these files of earlier runs hold, of the same card and torch; the later file has a case twice.

    Raises:
        SystemExit: a file cannot be read, or is of another card or torch.
    """
    found: dict[str, Timed] = {}
    for name in files:
        of, rows = _kept(name)
        if of != (card, torch_version):
            raise SystemExit(
                f"{name} is of {of[0]} with torch {of[1]}, not of {card} with torch {torch_version}"
            )
        found.update((row.name, row) for row in rows)
    return list(found.values())


def _kept(name: str) -> tuple[tuple[str, str], list[Timed]]:
    """What `--out` wrote there: card and version of torch, and the cases.

    Raises:
        SystemExit: the file cannot be read.
    """
    try:
        data = json.loads(Path(name).read_text(encoding="utf-8"))
        return (data["card"], data["torch"]), [Timed.from_json(case) for case in data["cases"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"{name} is no file of this command: {first_line(error)}") from None


# cuda.bench, in a process of its own: it runs what was registered once, and then no more


def nvbench_absent() -> str | None:
    """None where NVIDIA's `cuda.bench` can be imported, else why not, a sentence."""
    from importlib.util import find_spec

    try:
        found = find_spec("cuda.bench") is not None
    except (ImportError, ValueError):
        found = False
    return (
        None if found else "cuda.bench is not installed (pip install cuda-bench[cu12], or cu13 as your torch)"
    )


def _read_nvbench(
    rows: list[Timed], by_name: Mapping[str, Key], device: str, budget: Budget, effort: Effort
) -> None:
    """As many of the cases, in their order, as fit the time that is left."""
    wanted = [row for row in rows if row.readings]
    if not wanted:
        return
    seconds = max(0.0, budget.left)
    with tempfile.TemporaryDirectory() as name:
        todo, done = Path(name) / "cases.json", Path(name) / "read.json"
        todo.write_text(json.dumps([by_name[row.name] for row in wanted]), encoding="utf-8")
        command = [sys.executable, "-m", "benchmarks.harness.nvbench", device, str(todo), str(done)]
        command += [f"{seconds:.1f}", *(["brief"] if effort.brief else [])]
        limit = seconds + _NVBENCH_LAST_SECONDS
        try:
            ran = subprocess.run(
                command, capture_output=True, text=True, timeout=limit, cwd=Path(__file__).parents[2]
            )
        except subprocess.TimeoutExpired:
            print(f"{_NVBENCH}: not done after {limit:.0f} s")
            return
        if not done.exists():
            print(f"{_NVBENCH}: {(ran.stderr.strip() or ran.stdout.strip() or 'no output')[-600:]}")
            return
        read = json.loads(done.read_text(encoding="utf-8"))
    for row in wanted:
        if row.name in read:
            take_nvbench(row, read[row.name])


def take_nvbench(row: Timed, read: Mapping[str, Any]) -> None:
    """Enter what the process of `cuda.bench` read of a case."""
    for way, regime in (("cold", "cold"), ("batch", "queued")):
        name = f"{_NVBENCH}, {way}"
        if read.get(way):
            row.readings[name] = Reading(
                read[way], read["truth"], row.facts.get(regime, 0.0), read.get("spent", 0.0)
            )
        else:
            row.refused[name] = read.get("refused", "it read nothing")


# CPU


def _cpu(options: argparse.Namespace) -> None:
    """The spins of section 1 of `accel-micro selfcheck`, for as long as the budget says."""
    from accel_micro.commands.selfcheck_truth import read_spins, spin_tables
    from accel_micro.report.selfcheck_words import cells

    readings = read_spins(options.budget, lambda text: None)
    for table in spin_tables(readings):
        print(f"\n{table.title}\n{'harness':28s} " + " ".join(f"{one.title:>24s}" for one in table.columns))
        for row in table.rows:
            print(f"{row.name:28s} " + " ".join(f"{cell:>24s}" for cell in cells(row, table.columns)))
    if options.out:
        facts = {
            f"{one.seconds:g}": {name: [asdict(run) for run in runs] for name, runs in one.readings.items()}
            for one in readings
        }
        Path(options.out).write_text(json.dumps(facts, indent=1), encoding="utf-8")


# The command


def peers(options: argparse.Namespace) -> None:
    """Read cases within the budget, print a row for each, then each harness's errors and spread.

    With files of several processes instead print the tables of all their readings, and how far those of a case differ.
    """
    if options.files:
        _print_files(options.files)
        return
    if kind_of(options.device) == "cpu":
        _cpu(options)
        return
    import torch

    budget = Budget(options.budget)
    effort = replace(BRIEF if options.brief else WHOLE, harness=options.harness)
    rows = _cuda(options, budget, effort)
    harnesses = _harnesses(rows)
    print_table(rows, KERNELS, harnesses)
    if effort.has(_NVBENCH) and (absent := nvbench_absent()) is not None:
        print(absent)
    print(f"{len(rows)} cases in {perf_counter() - budget.start:.0f} s")
    if options.out:
        facts = {
            "device": options.device,
            "card": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "profile": options.profile,
            "budget_seconds": options.budget,
            "brief": options.brief,
            "errors": [vars(one) for one in errors(rows, KERNELS, harnesses)],
            "cases": [row.to_json() for row in rows],
        }
        Path(options.out).write_text(json.dumps(facts, indent=1), encoding="utf-8")


def _harnesses(rows: Sequence[Timed]) -> list[str]:
    """All that read a case or refused one, in the order in which they first did."""
    return list(dict.fromkeys(name for row in rows for name in (*row.readings, *row.refused)))


def _print_files(files: Sequence[str]) -> None:
    """Tables of the readings of several processes: each of them counts, the worst of any process is the worst.

    Raises:
        SystemExit: a file cannot be read, or they are not of one kind of card and one torch.
    """
    kept = [_kept(name) for name in files]
    kinds = sorted({of for of, _ in kept})
    if len(kinds) > 1:
        raise SystemExit(
            f"not of one card and torch: {', '.join(f'{card}, torch {of}' for card, of in kinds)}"
        )
    rows = [row for _, each in kept for row in each]
    processes = Counter(row.name for row in rows)
    harnesses = _harnesses(rows)
    ((card, version),) = kinds
    print(
        f"{card}, torch {version}; {len(processes)} cases in {len(files)} processes, "
        f"{sum(count > 1 for count in processes.values())} of them in more than one; "
        "a case counts as often as it was read"
    )
    print_table(rows, KERNELS, harnesses)
    found = differences(rows, KERNELS, harnesses)
    if found:
        print(
            "between processes: (largest − smallest) ÷ median of reading ÷ CUPTI, in the harness's own state"
        )
    for one in found:
        print(
            f"  {one.band:24s} {one.harness:28s} {one.cases:5d} cases, median {100 * one.middle:6.2f} %, "
            f"worst {100 * one.worst:6.1f} %  {one.worst_case}"
        )


def _print_row(row: Timed, seconds: float) -> None:
    truth = median(one.truth for one in row.readings.values()) if row.readings else math.nan
    read = ", ".join(f"{name} {100 * one.error:+.1f} %" for name, one in row.readings.items())
    refused = "".join(f"; {name}: {reason}" for name, reason in row.refused.items())
    print(f"{row.name}: {1e6 * truth:.2f} µs; {read}{refused} ({seconds:.1f} s)", flush=True)


def _print_agreement(rows: Sequence[Timed]) -> None:
    """Our three clocks against each other."""
    ratios = sorted(row.facts["over_larger"] for row in rows if "over_larger" in row.facts)
    if ratios:
        within = sum(abs(ratio - 1) <= _AGREEMENT for ratio in ratios)
        print(
            f"our throughput ÷ the larger of dispatch and device: {within} of {len(ratios)} cases within "
            f"{100 * _AGREEMENT:.0f} %, median {median(ratios):.3f}, {ratios[0]:.3f} to {ratios[-1]:.3f}"
        )


def print_table(rows: Sequence[Timed], bands: Sequence[Band], harnesses: Sequence[str]) -> None:
    """Errors by band and harness, why harnesses refused, and the spread of what was read again."""
    table = errors(rows, bands, harnesses)
    for band in bands:
        among = [one for one in table if one.band == band.name]
        if not among:
            continue
        count = sum(band.has(row.unit_seconds) for row in rows)
        print(f"\n{band.name}: {count} cases")
        print(
            f"{'harness':28s} {'cases':>5s} {'refused':>7s} {'unsteady':>8s} {'median error':>12s} "
            f"{'in its state':>12s} {'worst':>9s} {'in its state':>12s} {'s a reading':>11s}"
        )
        for one in among:
            print(
                f"{one.harness:28s} {one.cases:5d} {one.refused:7d} {one.unsteady:8d} {100 * one.middle:10.2f} % "
                f"{100 * one.middle_in_regime:10.2f} % {100 * one.worst:+7.1f} % "
                f"{100 * one.worst_in_regime:+10.1f} % {one.spent:11.2f}  {one.worst_case}"
            )
    print(
        "\nmedian error: of the sizes, against the witness as the host calls; in its state: against the witness "
        "with calls queued, or with the cache flushed, where the harness does so; unsteady: the work itself became "
        "faster or slower meanwhile, and these are not counted; ours are read together, all of it told with the first"
    )
    _print_agreement(rows)
    reasons = Counter((name, reason) for row in rows for name, reason in row.refused.items())
    for (name, reason), count in reasons.most_common():
        print(f"  {name} refused {count}: {reason}")
    for name, again in spreads(rows, [*harnesses, "CUPTI"]).items():
        print(f"spread (largest − smallest) ÷ median over runs, {name}")
        for harness, spread, runs in again:
            print(f"  {harness:28s} {100 * spread:7.2f} %  of {runs} runs")
