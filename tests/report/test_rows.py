"""From records to rows: what counts, what is withheld, and in which order it stands."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_micro.measure.flags import REMEDIES, Flag
from accel_micro.measure.process import Process
from accel_micro.measure.records import FAILURES, Case, Check, Cold, Failure, Peak, Record, Work
from accel_micro.report.rows import Rate, Row, collect, make_row, rate
from accel_micro.stats.estimate import estimate
from tests.report.fixtures import cpu_records, h100_records, process

CASE = Case("matmul.mm", "forward", "cuda", "float32", "m=64 k=64 n=64")


def record(seconds: float = 1e-5, *, clocks: Sequence[str] = ("throughput",), **fields: object) -> Record:
    read = {clock: process(seconds, device="cuda", clock=clock) for clock in clocks}
    return Record(CASE, clocks=read, **fields)  # type: ignore[arg-type]


def only_row(records: Sequence[Record]) -> Row:
    (row,) = collect(records).rows
    return row


def test_each_clock_gets_the_estimate_of_its_processes() -> None:
    records = [r for r in h100_records() if r.case == CASE]
    row = only_row(records)
    for clock in ("throughput", "dispatch", "device"):
        assert row.estimates[clock] == estimate([r.clocks[clock].samples for r in records])
    assert row.clock == "throughput"
    assert row.headline == row.estimates["throughput"]


def test_clocks_may_come_from_different_records() -> None:
    # asv runs a benchmark for each clock, in processes of its own.
    row = only_row(
        [record(15e-6), record(15e-6), record(14.7e-6, clocks=["dispatch"]), record(4e-6, clocks=["device"])]
    )
    assert {clock: e.processes for clock, e in row.estimates.items()} == {
        "throughput": 2,
        "dispatch": 1,
        "device": 1,
    }
    assert row.bound == "launch-bound"


def test_launch_bound_is_dispatch_above_device_and_cpus_have_neither() -> None:
    rows = {
        (row.case.op, row.case.dtype, row.case.shape, row.case.direction): row
        for row in collect(h100_records()).rows
    }
    small = rows["matmul.mm", "float32", "m=64 k=64 n=64", "forward"]
    large = rows["matmul.mm", "float32", "m=8192 k=8192 n=8192", "forward"]
    assert (small.bound, large.bound) == ("launch-bound", "device-bound")
    assert small.dispatch_over_device == pytest.approx(14.7 / 4.0, rel=0.02)
    assert {(row.bound, row.dispatch_over_device) for row in collect(cpu_records()).rows} == {("", None)}


@pytest.mark.parametrize(
    ("work", "peak", "expected"),
    [
        (Work(1e6, 1e4), Peak(1e12, 1e12), Rate(1e11, "FLOP/s", 0.1)),
        (Work(1e6, 1e4), Peak(1e12, 1e9), Rate(1e9, "B/s", 1.0)),
        (Work(1e6, 1e4), Peak(None, 1e10), Rate(1e9, "B/s", 0.1)),
        (Work(1e6, 1e4), None, Rate(1e11, "FLOP/s", None)),
        (Work(0.0, 1e4), None, Rate(1e9, "B/s", None)),
        (Work(1e6, 1e4), Peak(0.0, float("nan")), Rate(1e11, "FLOP/s", None)),
        (Work(0.0, 0.0), Peak(1e12, 1e12), None),
        (None, Peak(1e12, 1e12), None),
    ],
)
def test_the_rate_is_the_one_nearer_to_its_peak(
    work: Work | None, peak: Peak | None, expected: Rate | None
) -> None:
    made = rate(work, peak, 1e-5)
    if expected is None:
        assert made is None
        return
    assert made is not None
    assert (made.unit, made.per_second) == (expected.unit, pytest.approx(expected.per_second))
    assert made.share_of_peak == (
        None if expected.share_of_peak is None else pytest.approx(expected.share_of_peak)
    )


def test_the_latest_session_wins_unless_all_are_asked_for() -> None:
    old = [
        record(9e-6, session="a", started="2026-11-01T10:00"),
        record(9e-6, session="a", started="2026-11-01T10:05"),
    ]
    new = [record(5e-6, session="b", started="2026-11-02T10:00")]
    assert only_row([*new, *old]).estimates["throughput"].seconds == pytest.approx(5e-6)
    (pooled,) = collect([*new, *old], sessions="all").rows
    assert pooled.estimates["throughput"].processes == 3


def test_a_later_failure_replaces_an_earlier_time_but_a_later_skip_does_not() -> None:
    old = record(session="a", started="2026-11-01")
    failed = Record(CASE, failure=Failure("crashed", "signal 11"), session="b", started="2026-11-02")
    skipped = Record(CASE, skipped="cuda is busy", session="c", started="2026-11-03")
    assert only_row([old, failed]).estimates == {}
    report = collect([old, skipped])
    assert len(report.rows) == 1
    assert report.skips == ()


def test_skips_are_gathered_by_reason_most_frequent_first() -> None:
    skips = collect(h100_records()).skips
    assert [(skip.reason, len(skip.cases)) for skip in skips] == [
        ("this torch was built without MPS", 2),
        ("profile standard does not run float64 on cuda", 1),
    ]


@pytest.mark.parametrize("kind", FAILURES)
def test_every_kind_of_failure_is_reported_and_a_wrong_op_shows_no_time(kind: str) -> None:
    records = [record(), record(), Record(CASE, failure=Failure(kind, "why"))]
    report = collect(records)
    (row,) = report.failed
    assert [(f.kind, f.detail, f.processes, f.of) for f in row.failures] == [(kind, "why", 1, 3)]
    assert bool(row.estimates) == (kind not in ("wrong result", "implausible"))
    assert len(report.rows) == 1, "a row with a time and a failure is one row"
    assert sum(len(family.rows) for family in report.families) == bool(row.estimates)


@pytest.mark.parametrize("bad", [0.0, -1e-6, float("nan"), float("inf")])
def test_samples_that_are_no_times_make_a_failure_and_cost_no_other_case(bad: float) -> None:
    broken = record()
    clock = broken.clocks["throughput"]
    broken = replace(broken, clocks={"throughput": replace(clock, samples=(bad, *clock.samples[1:]))})
    report = collect([broken, *cpu_records()])
    (row,) = report.failed
    assert row.failures[0].kind == "implausible"
    assert "not a positive number" in row.failures[0].detail
    assert len(report.rows) == 1 + len(collect(cpu_records()).rows)


def test_a_record_without_time_or_reason_is_a_failure() -> None:
    row = only_row([Record(CASE)])
    assert [(f.kind, f.processes) for f in row.failures] == [("failed", 1)]


def test_flags_are_counted_over_the_processes_that_read_the_clock() -> None:
    low = process(1e-5, clock="device", flags=[Flag("low clock", "1.6 GHz")])
    noisy = process(1e-5, flags=[Flag("noisy", "9 %"), Flag("noisy", "again")], slow=(1,))
    row = make_row(
        [Record(CASE, clocks={"throughput": noisy}), record(), Record(CASE, clocks={"device": low})]
    )
    assert [(f.name, f.clock, f.processes, f.of, f.details) for f in row.flags] == [
        ("speed-corrected", "throughput", 1, 2, ("1 of 20 samples",)),
        ("noisy", "throughput", 1, 2, ("9 %",)),
        ("low clock", "device", 1, 1, ("1.6 GHz",)),
    ]
    assert all(f.remedy == REMEDIES[f.name] for f in row.flags)


def test_a_row_keeps_the_worst_check_and_the_most_memory() -> None:
    row = make_row(
        [
            record(check=Check(1e-7, 1e-5), peak_memory_bytes=10),
            record(check=Check(3e-7, 1e-5), peak_memory_bytes=30),
            record(peak_memory_bytes=20),
        ]
    )
    assert row.check == Check(3e-7, 1e-5)
    assert row.peak_memory_bytes == 30


def test_machines_builds_and_environments_are_kept_apart() -> None:
    records = [record(machine=m, build=b) for m in ("one", "two") for b in ("2.12.0", "2.13.0")]
    families = collect(records).families
    assert [(f.machine, f.build) for f in families] == [
        ("one", "2.12.0"), ("one", "2.13.0"), ("two", "2.12.0"), ("two", "2.13.0")
    ]  # fmt: skip


def test_a_family_keeps_devices_together_and_the_order_of_its_definition() -> None:
    def timed(op: str, device: str, direction: str, shape: str) -> Record:
        return replace(record(), case=Case(op, direction, device, "float32", shape))

    records = [
        timed("matmul.mm", "cpu", "backward", "n=1"),
        timed("conv.conv2d", "cpu", "forward", "n=1"),
        timed("matmul.mm", "cuda", "forward", "n=9"),
        timed("matmul.mm", "cpu", "forward", "n=9"),
        timed("matmul.bmm", "cpu", "forward", "n=1"),
        timed("matmul.mm", "cpu", "forward", "n=1"),
    ]
    families = collect(records).families
    assert [(f.name, f.device) for f in families] == [("matmul", "cpu"), ("matmul", "cuda"), ("conv", "cpu")]
    assert [(r.case.op, r.case.direction, r.case.shape) for r in families[0].rows] == [
        ("matmul.mm", "forward", "n=1"),
        ("matmul.mm", "forward", "n=9"),
        ("matmul.mm", "backward", "n=1"),
        ("matmul.bmm", "forward", "n=1"),
    ]


@settings(max_examples=25)
@given(st.randoms(use_true_random=False))
def test_the_order_of_the_records_changes_no_number(rng: random.Random) -> None:
    records = h100_records()
    expected = {row.case: row for row in collect(records).rows}
    for row in collect(rng.sample(records, len(records))).rows:
        known = expected.pop(row.case)
        assert set(row.estimates) == set(known.estimates)
        for clock, e in row.estimates.items():
            assert e.seconds == pytest.approx(known.estimates[clock].seconds, rel=1e-12)
            assert e.high == pytest.approx(known.estimates[clock].high, rel=1e-12)
        assert row.bound == known.bound
        assert {f.kind: f.processes for f in row.failures} == {f.kind: f.processes for f in known.failures}
    assert not expected


def test_no_records_make_an_empty_report() -> None:
    report = collect([])
    assert (report.families, report.failed, report.skips, report.rows) == ((), (), (), ())


def test_bounds_of_the_device_s_time_are_the_widest_over_the_processes() -> None:
    first = replace(record(), device_interval=(2e-6, 5e-6))
    second = replace(record(), device_interval=(1e-6, 4e-6))
    (row,) = collect([first, second, record()]).rows
    assert row.device_interval == (1e-6, 5e-6)
    assert Record.from_json(json.loads(json.dumps(first.to_json()))) == first
    assert collect([record()]).rows[0].device_interval is None


COLD = Cold(9, 8e6, 33_554_432, "paper")


def beside(hot: dict[str, float], cold: dict[str, float], shape: str = CASE.shape) -> Row:
    """The row of a cold case beside a hot one; seconds by clock."""
    records = [
        Record(replace(CASE, shape=f"{CASE.shape} cache=cold"), clocks=_read(cold), cold=COLD),
        Record(replace(CASE, shape=shape), clocks=_read(hot)),
    ]
    return next(row for row in collect(records).rows if row.cold)


def _read(seconds: dict[str, float]) -> dict[str, Process]:
    return {clock: process(value, device="cuda", clock=clock) for clock, value in seconds.items()}


def test_a_cold_case_is_held_against_its_hot_one() -> None:
    assert beside({"throughput": 1e-5}, {"throughput": 3e-5}).over_hot == pytest.approx(3.0)
    launch_bound = {"throughput": 1e-5, "dispatch": 1e-5}
    row = beside({**launch_bound, "device": 2e-6}, {**launch_bound, "device": 5e-6})
    assert row.over_hot == pytest.approx(2.5), "a launch takes as long either way"
    assert beside({"throughput": 1e-5}, {"latency": 3e-5}).over_hot is None
    assert beside({"throughput": 1e-5}, {"throughput": 3e-5}, "m=8 k=8 n=8").over_hot is None
    assert beside({}, {"throughput": 3e-5}).over_hot is None


def test_a_cold_case_stands_right_behind_its_hot_one() -> None:
    shapes = ("n=1", "n=2", "n=3", "n=1 cache=cold", "n=3 cache=cold")
    records = [
        replace(record(), case=replace(CASE, dtype=dtype, shape=shape))
        for dtype in ("float32", "bfloat16")
        for shape in shapes
    ]
    (family,) = collect(records).families
    assert [row.case.shape for row in family.rows] == [
        "n=1", "n=1 cache=cold", "n=2", "n=3", "n=3 cache=cold"
    ] * 2  # fmt: skip
