"""What `selfcheck` does: section after section, each within its share of the time; what fails costs itself alone."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from time import perf_counter
from typing import TYPE_CHECKING, Final

from accel_micro.device_names import kind_of
from accel_micro.selfcheck.findings import Column, Row, Section, SelfCheck, Table, Value
from accel_micro.selfcheck.planning import BUDGET_SECONDS, Part, plan

if TYPE_CHECKING:
    from accel_micro.selfcheck.rates import Method, Rate, Rounds

Told = Callable[[str], None]
_FALSE_ALARMS: Final = 0.05
_PYPERF_SECONDS: Final = 900.0
"""Of budget for section 2, below which pyperf's own processes, some twenty seconds a side, are left out."""

FULLER: Final = {
    "truth": "python -m benchmarks.harness peers --device {kind}",
    "power": "accel-micro selfcheck power --device {device} --budget 3600",
    "cost": "python -m tests.end_to_end.whole_suite",
    "bisect": "python -m tests.bisect.table --runs 200",
    "explain": "accel-micro selfcheck explain --device {device} --budget 600",
    "scale": "python -m benchmarks.harness compare",
}


@dataclass
class Request:
    """What is asked for. `command`: as the user wrote it."""

    sections: Sequence[str] = ()
    device: str = "cpu"
    budget_seconds: float = BUDGET_SECONDS
    command: str = "accel-micro selfcheck"


@dataclass
class _Shared:
    """What one section measures and another one uses."""

    rounds: "Rounds | None" = None
    facts: list[tuple[str, str]] = field(default_factory=list)


def check(request: Request, tell: Told) -> SelfCheck:
    """Run the sections. Ctrl-C ends it; what was found until then is kept.

    Raises:
        UnknownSection: there is no such section. UnknownDevice, DeviceUnavailable: no such device, or not here.
    """
    from accel_micro import devices
    from accel_micro.devices.base import DeviceUnavailable

    parts = plan(request.sections, request.budget_seconds)
    reason = devices.get(request.device).unavailable()
    if reason is not None:
        raise DeviceUnavailable(reason)
    started, begin = datetime.now(timezone.utc).isoformat(timespec="seconds"), perf_counter()
    shared = _Shared(facts=facts_of(request.device))
    sections: list[Section] = []
    interrupted = False
    for part, seconds in parts:
        tell(f"{part.title}: about {seconds:.0f} s")
        start = perf_counter()
        try:
            section = SECTIONS[part.key](part, request, seconds, shared, tell)
        except KeyboardInterrupt:
            interrupted = True
            break
        except Exception as error:  # one section must not end the rest
            section = Section(part.key, part.title, part.question, failed=f"{type(error).__name__}: {error}")
        fuller = FULLER[part.key].format(device=request.device, kind=kind_of(request.device))
        sections.append(replace(section, seconds=perf_counter() - start, fuller=fuller))
    return SelfCheck(
        tuple(sections),
        tuple(shared.facts),
        request.command,
        started,
        perf_counter() - begin,
        interrupted,
    )


def facts_of(device: str) -> list[tuple[str, str]]:
    """What the machine is, and how busy it was when this began."""
    import os
    import platform

    import torch

    from accel_micro import devices, host
    from accel_micro.report.words import count

    described = devices.get(device).describe()
    facts = [
        ("machine", f"{count(host.allowed_cores(), 'core')}, {devices.get('cpu').describe()['model']}"),
        ("device", f"{device}: {described['model']}" if device != "cpu" else "cpu"),
        ("torch", str(torch.__version__)),
        ("python", platform.python_version()),
        ("system", platform.platform(terse=True)),
    ]
    if hasattr(os, "getloadavg"):
        facts.append(("load before", f"{os.getloadavg()[0]:.1f} programs ready to run"))
    return facts


@contextlib.contextmanager
def _alone_on(device: str) -> Iterator[None]:
    """No other run of accel_micro measures on the device meanwhile.

    Raises:
        DeviceBusy: one does; the message says who.
    """
    from accel_micro.asv_plugin.locking import DeviceLocks

    locks = DeviceLocks()
    locks.acquire({"cpu", device})
    try:
        yield
    finally:
        locks.release()


def _truth(part: Part, request: Request, seconds: float, shared: _Shared, tell: Told) -> Section:
    from accel_micro.commands import selfcheck_truth as truth

    tables: list[Table] = []
    notes: list[str] = []
    with _alone_on(request.device):
        if kind_of(request.device) == "cuda":
            seconds /= 2
            tables += truth.kernel_tables(truth.read_kernels(request.device, seconds, tell))
            notes += truth.KERNEL_NOTES
        tables += truth.spin_tables(truth.read_spins(seconds, tell))
    notes += truth.SPIN_NOTES
    return Section(
        part.key,
        part.title,
        part.question,
        "known work, by each harness in turns",
        tuple(tables),
        tuple(notes),
    )


def _power(part: Part, request: Request, seconds: float, shared: _Shared, tell: Told) -> Section:
    from accel_micro.commands import selfcheck_power as power
    from accel_micro.report.words import count
    from accel_micro.selfcheck.peers import worker

    pyperf_seconds = seconds / 3 if seconds >= _PYPERF_SECONDS else 0.0
    kind = kind_of(request.device)
    with _alone_on(request.device):
        rounds = shared.rounds = power.gather(request.device, seconds - pyperf_seconds, tell)
        rows = power_rows(rounds, power.methods(kind))
        rows.append(power.pyperf_row(request.device, pyperf_seconds, tell))
    turns = max((len(found) for found in rounds.processes.values()), default=0)
    done = (
        f"{count(turns, 'round')} of fresh processes in an order by chance; {len(worker.OPS)} small ops, each called "
        f"{worker.BASE} times in a call, and 2, 5 and 10 times more"
    )
    return Section(
        part.key,
        part.title,
        part.question,
        done,
        (Table("Planted work", POWER_COLUMNS, tuple(rows), first="rule"),),
        POWER_NOTES,
    )


POWER_COLUMNS: Final = (
    Column("alarms", "false alarms", "share", "low", 0.02),
    Column("+2 %", "found of +2 %", "share", "high", 0.05),
    Column("+5 %", "found of +5 %", "share", "high", 0.05),
    Column("+10 %", "found of +10 %", "share", "high", 0.05),
    Column("open", "says it is open", "share"),
    Column("comparisons", "comparisons each", "count"),
    Column("seconds", "machine time of one", "seconds"),
)
POWER_NOTES: Final = (
    "Each rule sees processes that were read its own way; comparisons that begin at different rounds overlap, so they "
    "are fewer than they look. A rule that cries wolf in more than 5 % does not compete in what it found.",
    "asv compare is asv's code on two processes a side; Mann–Whitney is that of asv at 1 %, on all samples of four of "
    "our processes a side; medians of torch.utils.benchmark count as different from 2 % on.",
    "Ours needs a difference beyond its tolerance, 2 % unless told otherwise: +2 % is its border, and it says "
    "inconclusive. With the other row it was told 1 %.",
)


def power_rows(rounds: "Rounds", methods: "Sequence[Method]") -> list[Row]:
    """A row for each rule."""
    from accel_micro.selfcheck.rates import BASELINE, LEVELS, rate

    rows = []
    for method in methods:
        by_level = {level: rate(rounds, method, level) for level in LEVELS if level != BASELINE}
        null = by_level["A again"]
        if not null.comparisons:
            why = rounds.failures.get(method.reads, f"fewer than {method.fewest} rounds")
            rows.append(Row(method.name, ours=method.name.startswith("ours"), absent=why))
            continue
        rows.append(_power_row(method.name, null, by_level))
    return rows


def _power_row(name: str, null: "Rate", by_level: "dict[str, Rate]") -> Row:
    from statistics import fmean

    from accel_micro.selfcheck.rates import LEVELS

    planted = [level for level, more in LEVELS.items() if more]
    values: dict[str, Value] = {
        "alarms": null.alarms,
        **{level: by_level[level].found for level in planted},
        "open": fmean(one.open / one.comparisons for one in by_level.values() if one.comparisons),
        "comparisons": null.comparisons,
        "seconds": fmean(one.seconds for one in by_level.values()),
    }
    void = frozenset(planted) if null.alarms > _FALSE_ALARMS else frozenset[str]()
    return Row(name, values, ours=name.startswith("ours"), void=void)


def _cost(part: Part, request: Request, seconds: float, shared: _Shared, tell: Told) -> Section:
    from accel_micro.commands import selfcheck_cost as cost
    from accel_micro.commands import selfcheck_power as power
    from accel_micro.selfcheck.peers import worker

    begin = perf_counter()
    tables: list[Table] = []
    tell("cost: readings and start-up")
    tables.append(cost.reading_table(cost.read_readings()))
    tables.append(cost.start_table())
    tell("cost: processes, forked and spawned")
    tables.append(cost.process_table(cost.forked_seconds(6), cost.spawned_seconds(6)))
    rounds = shared.rounds
    if rounds is None:
        left = seconds - (perf_counter() - begin)
        with _alone_on(request.device):
            rounds = power.gather(request.device, left, tell, ops=worker.OPS[:1])
    names = {name: name for name in power.methods_of(kind_of(request.device))}
    notes: tuple[str, ...] = ()
    if (found := cost.precision_table(rounds, names)) is not None:
        tables.insert(0, found)
    else:
        notes = ("Too few rounds were measured to say how many processes ±1 % takes; give more time.",)
    return Section(
        part.key,
        part.title,
        part.question,
        "the same cases, by each harness its own way",
        tuple(tables),
        notes,
    )


def _bisect(part: Part, request: Request, seconds: float, shared: _Shared, tell: Told) -> Section:
    from accel_micro.commands import selfcheck_bisect as bisecting

    found = bisecting.simulate(seconds, tell)
    return Section(
        part.key,
        part.title,
        part.question,
        "the same made-up histories and machines by each rule",
        tuple(bisecting.tables(found)),
        (
            "asv find is asv's own code, its builds played; Pinpoint is told how large the effect is. A rule that "
            "names innocent builds in more than 5 % does not compete in naming culprits.",
        ),
    )


def _explain(part: Part, request: Request, seconds: float, shared: _Shared, tell: Told) -> Section:
    from accel_micro.commands import selfcheck_explain as explaining

    found, failed = explaining.capture_models(request.device, seconds, tell)
    tables = tuple(explaining.tables(found))
    problem = "" if tables else "; ".join(failed)
    return Section(
        part.key,
        part.title,
        part.question,
        "one capture of each model",
        tables,
        (explaining.NOTE, *failed),
        failed=problem,
    )


def _scale(part: Part, request: Request, seconds: float, shared: _Shared, tell: Told) -> Section:
    from accel_micro.commands import selfcheck_scale as scaling

    rows = list(scaling.grow(tell))
    return Section(part.key, part.title, part.question, "each size made up anew", (scaling.table(rows),))


SECTIONS: Final[dict[str, Callable[[Part, Request, float, _Shared, Told], Section]]] = {
    "truth": _truth,
    "power": _power,
    "cost": _cost,
    "bisect": _bisect,
    "explain": _explain,
    "scale": _scale,
}
