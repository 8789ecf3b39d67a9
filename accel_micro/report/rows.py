"""Records in, rows out: one row a case, with its estimates, its rate against the machine's peak, and what to
know.

Pure. Tables, exports and the page all read rows, so that they cannot disagree.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

from accel_micro.measure.flags import REMEDIES
from accel_micro.measure.process import CLOCKS
from accel_micro.measure.records import Case, Check, Cold, Failure, Peak, Record, Work
from accel_micro.report.units import is_finite_positive
from accel_micro.results.trials import WITHHELD
from accel_micro.shapes import hot, is_cold
from accel_micro.stats.estimate import Estimate, estimate

HEADLINE_CLOCKS: Final = ("throughput", "latency", "device", "dispatch")
"""The clock that stands for a case is the first of these that was read."""

Bound = Literal["launch-bound", "device-bound", ""]
T = TypeVar("T")


@dataclass(frozen=True)
class Rate:
    """Work per second of the headline clock: FLOP/s or B/s, whichever comes closer to the machine's peak."""

    per_second: float
    unit: Literal["FLOP/s", "B/s"]
    share_of_peak: float | None


@dataclass(frozen=True)
class FlagCount:
    """A flag, and in how many of the processes that read this clock it was raised."""

    name: str
    clock: str
    processes: int
    of: int
    details: tuple[str, ...] = ()

    @property
    def remedy(self) -> str:
        """What to do about it, one line."""
        return REMEDIES[self.name]


@dataclass(frozen=True)
class FailureCount:
    """A kind of failure, its first detail, and how many of the case's processes it ended."""

    kind: str
    detail: str
    processes: int
    of: int


@dataclass(frozen=True)
class Row:
    """One case on one build of one machine.

    Attributes:
        estimates: by clock; empty when there is no time to show.
        rate: work per second, None when the work is not known.
        flags: by flag and clock. failures: by kind.
        check: the worst agreement with the reference over the processes.
        first_call_seconds: median over the processes of the very first call.
        compile_seconds: the same of the compiler's share of it, where the backend counts that.
        peak_memory_bytes: the largest over the processes.
        device_interval: bounds of the device's seconds per call where it has no clock, the widest over the processes.
        records: the processes it was made from.
        cold: how its inputs were kept out of the cache, of the last process; None where they were not.
        over_hot: of such a case, its time over that of the case with the same shape and hot inputs, by the device clock
            where both have it, for launches do not depend on caches, else by the one that stands for the case.
    """

    case: Case
    machine: str
    build: str
    environment: str
    estimates: Mapping[str, Estimate]
    rate: Rate | None
    flags: tuple[FlagCount, ...]
    failures: tuple[FailureCount, ...]
    check: Check | None
    work: Work | None
    peak: Peak | None
    first_call_seconds: float | None
    compile_seconds: float | None
    peak_memory_bytes: int | None
    device_interval: tuple[float, float] | None
    records: tuple[Record, ...]
    cold: Cold | None = None
    over_hot: float | None = None

    @property
    def clock(self) -> str | None:
        """The clock that stands for the case, None when there is no time."""
        return next((clock for clock in HEADLINE_CLOCKS if clock in self.estimates), None)

    @property
    def headline(self) -> Estimate | None:
        """The estimate of that clock."""
        return None if self.clock is None else self.estimates[self.clock]

    @property
    def dispatch_over_device(self) -> float | None:
        """Dispatch ÷ device seconds of a call; None unless both clocks were read."""
        if "dispatch" not in self.estimates or "device" not in self.estimates:
            return None
        return self.estimates["dispatch"].seconds / self.estimates["device"].seconds

    @property
    def bound(self) -> Bound:
        """`launch-bound` when enqueueing takes longer than running, else `device-bound`; empty on a CPU."""
        ratio = self.dispatch_over_device
        if ratio is None:
            return ""
        return "launch-bound" if ratio > 1 else "device-bound"

    @property
    def flops_per_second(self) -> float | None:
        """FLOPs of the headline clock's time; None without a time or known FLOPs."""
        return self._per_second(self.work.flops if self.work else 0.0)

    @property
    def bytes_per_second(self) -> float | None:
        """The same for bytes read and written."""
        return self._per_second(self.work.bytes if self.work else 0.0)

    def _per_second(self, amount: float) -> float | None:
        return amount / self.headline.seconds if self.headline is not None and amount > 0 else None

    @property
    def intensity(self) -> float | None:
        """Arithmetic intensity, FLOPs per byte; None when either is unknown or zero."""
        if self.work is None or not self.work.flops or not self.work.bytes:
            return None
        return self.work.flops / self.work.bytes


@dataclass(frozen=True)
class Family:
    """The rows of one family of ops on one device: one table."""

    name: str
    device: str
    machine: str
    build: str
    environment: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Skip:
    """A reason for which cases were not measured, and the cases."""

    reason: str
    cases: tuple[Case, ...]


@dataclass(frozen=True)
class Report:
    """Rows with a time by family, rows that failed (a row can be in both), and what was skipped."""

    families: tuple[Family, ...]
    failed: tuple[Row, ...]
    skips: tuple[Skip, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every row once: those with a time, family by family, then those without."""
        timed = [row for family in self.families for row in family.rows]
        return (*timed, *(row for row in self.failed if not row.estimates))


def collect(records: Iterable[Record], *, sessions: Literal["latest", "all"] = "latest") -> Report:
    """Make the rows of all cases, in the order in which ops, shapes and dtypes first occur.

    Args:
        sessions: when a case was measured in several sessions, the latest of them counts; `all` pools them,
            as if the machine had been the same each time.
    """
    by_case: dict[tuple[str, str, str, Case], list[Record]] = {}
    for record in records:
        key = (record.machine, record.build, record.environment, record.case)
        by_case.setdefault(key, []).append(record)
    rows: list[Row] = []
    skipped: dict[str, list[Case]] = {}
    for group in by_case.values():
        tried = [record for record in group if record.skipped is None]
        if not tried:
            last = max(group, key=lambda record: record.started)
            skipped.setdefault(str(last.skipped), []).append(last.case)
            continue
        if sessions == "latest":
            session = max(tried, key=lambda record: record.started).session
            tried = [record for record in tried if record.session == session]
        rows.append(make_row(tried))
    rows = _beside_hot(rows)
    by_count = sorted(skipped.items(), key=lambda item: -len(item[1]))
    return Report(
        families=_families(rows),
        failed=tuple(row for row in rows if row.failures),
        skips=tuple(Skip(reason, tuple(cases)) for reason, cases in by_count),
    )


def _beside_hot(rows: Sequence[Row]) -> list[Row]:
    """The rows, cold ones with what their time is over that of their hot case, where that was timed."""
    times = {_place(row): row.estimates for row in rows}

    def beside(row: Row) -> Row:
        other = times.get(_place(row, hot(row.case.shape)), {})
        both = [clock for clock in ("device", *HEADLINE_CLOCKS) if clock in row.estimates and clock in other]
        if row.cold is None or not both:
            return row
        return replace(row, over_hot=row.estimates[both[0]].seconds / other[both[0]].seconds)

    return [beside(row) for row in rows]


def _place(row: Row, shape: str | None = None) -> tuple[str, str, str, Case]:
    case = row.case if shape is None else replace(row.case, shape=shape)
    return row.machine, row.build, row.environment, case


def make_row(records: Sequence[Record]) -> Row:
    """The row of one case from its processes, at least one."""
    first = records[0]
    estimates, failures = _estimates(records), [record.failure for record in records if record.failure]
    if isinstance(estimates, Failure):
        failures.append(estimates)
    if isinstance(estimates, Failure) or any(failure.kind in WITHHELD for failure in failures):
        estimates = {}
    work = _last(record.work for record in records)
    peak = _last(record.peak for record in records)
    clock = next((clock for clock in HEADLINE_CLOCKS if clock in estimates), None)
    processes = [record.clocks[clock] for record in records if clock in record.clocks] if clock else []
    checks = [record.check for record in records if record.check is not None]
    memory = [record.peak_memory_bytes for record in records if record.peak_memory_bytes is not None]
    return Row(
        case=first.case,
        machine=first.machine,
        build=first.build,
        environment=first.environment,
        estimates=estimates,
        rate=None if clock is None else rate(work, peak, estimates[clock].seconds),
        flags=_flags(records),
        failures=_failures(failures, len(records)),
        check=max(checks, key=lambda check: check.error, default=None),
        work=work,
        peak=peak,
        first_call_seconds=_median(process.first_call_seconds for process in processes),
        compile_seconds=_median(process.compile_seconds for process in processes),
        peak_memory_bytes=max(memory, default=None),
        device_interval=_widest([record.device_interval for record in records if record.device_interval]),
        records=tuple(records),
        cold=_last(record.cold for record in records),
    )


def _widest(intervals: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    return (min(low for low, _ in intervals), max(high for _, high in intervals)) if intervals else None


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def rate(work: Work | None, peak: Peak | None, seconds: float) -> Rate | None:
    """FLOP/s or B/s, the one with the larger share of its peak; without peaks FLOP/s if FLOPs are known."""
    if work is None:
        return None
    candidates: list[Rate] = []
    if work.flops > 0:
        candidates.append(_rate(work.flops / seconds, "FLOP/s", peak.flops_per_second if peak else None))
    if work.bytes > 0:
        candidates.append(_rate(work.bytes / seconds, "B/s", peak.bytes_per_second if peak else None))
    return max(candidates, key=lambda r: -1.0 if r.share_of_peak is None else r.share_of_peak, default=None)


def _rate(per_second: float, unit: Literal["FLOP/s", "B/s"], peak: float | None) -> Rate:
    share = per_second / peak if peak is not None and is_finite_positive(peak) else None
    return Rate(per_second, unit, share)


def _estimates(records: Sequence[Record]) -> dict[str, Estimate] | Failure:
    """Estimates by clock, or why there are none although nothing is said to have failed."""
    estimates: dict[str, Estimate] = {}
    for clock in CLOCKS:
        trial = [record.clocks[clock].samples for record in records if clock in record.clocks]
        if not trial:
            continue
        try:
            estimates[clock] = estimate(trial)
        except ValueError as error:
            return Failure("implausible", f"{clock}: {error}")
    if not estimates and not any(record.failure for record in records):
        return Failure("failed", "the record holds neither a time nor a reason")
    return estimates


def _flags(records: Sequence[Record]) -> tuple[FlagCount, ...]:
    counts: list[FlagCount] = []
    for clock in CLOCKS:
        processes = [record.clocks[clock] for record in records if clock in record.clocks]
        raised: dict[str, list[str]] = {}
        for process in processes:
            for name in dict.fromkeys(flag.name for flag in process.flags):
                detail = next(flag.detail for flag in process.flags if flag.name == name)
                raised.setdefault(name, []).append(detail)
        for name in REMEDIES:
            if name in raised:
                details = tuple(dict.fromkeys(filter(None, raised[name])))
                counts.append(FlagCount(name, clock, len(raised[name]), len(processes), details))
    return tuple(counts)


def _failures(failures: Sequence[Failure], of: int) -> tuple[FailureCount, ...]:
    kinds = dict.fromkeys(failure.kind for failure in failures)
    return tuple(
        FailureCount(kind, same[0].detail, len(same), of)
        for kind in kinds
        if (same := [failure for failure in failures if failure.kind == kind])
    )


def _families(rows: Sequence[Row]) -> tuple[Family, ...]:
    tables: dict[tuple[str, str, str, str, str], list[Row]] = {}
    for row in rows:
        if row.estimates:
            key = (row.machine, row.build, row.environment, row.case.family, row.case.device)
            tables.setdefault(key, []).append(row)
    # A family keeps its devices together, and its ops, dtypes and shapes in the order in which they were run.
    families = _ranks(key[:4] for key in tables)
    ordered = sorted(tables, key=lambda key: families[key[:4]])
    return tuple(
        Family(
            name,
            device,
            machine,
            build,
            environment,
            _ordered(tables[machine, build, environment, name, device]),
        )
        for machine, build, environment, name, device in ordered
    )


def _ordered(rows: Sequence[Row]) -> tuple[Row, ...]:
    """By op, direction, dtype and shape; a cold case right behind its hot one."""
    ops, dtypes = (_ranks(getattr(row.case, name) for row in rows) for name in ("op", "dtype"))
    shapes = _ranks(hot(row.case.shape) for row in rows)

    def key(row: Row) -> tuple[int, bool, int, int, bool]:
        case, shape = row.case, row.case.shape
        return (
            ops[case.op],
            case.direction != "forward",
            dtypes[case.dtype],
            shapes[hot(shape)],
            is_cold(shape),
        )

    return tuple(sorted(rows, key=key))


def _ranks(values: Iterable[T]) -> dict[T, int]:
    return {value: rank for rank, value in enumerate(dict.fromkeys(values))}


def _last(values: Iterable[T | None]) -> T | None:
    known = [value for value in values if value is not None]
    return known[-1] if known else None
