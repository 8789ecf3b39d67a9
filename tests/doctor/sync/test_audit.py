"""The audit on devices of paper: every mistake shows as what it is, and ours as right."""

import io
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from accel_micro.devices.cuda import PROBE_CYCLES, SPIN_CYCLES, Cuda
from accel_micro.doctor import sync
from accel_micro.doctor.sync import ways
from accel_micro.doctor.sync.audit import Audit, audited
from accel_micro.doctor.sync.workload import Workload, product, slope_of
from tests.devices.fake_cuda import HERTZ, LAUNCH_SECONDS, FakeCuda
from tests.devices.lazy_xla import COMPUTE, Backend, XlaOnPaper
from tests.fake import Clock, FakeDevice, OnPaper

WITNESS = "a chain on paper"


def workload(
    device: Any, name: str, call: Callable[[], Any], least: float | None, chain: Callable[[int], None]
) -> Workload:
    return Workload(
        name, "work on paper", call, partial(slope_of, device, chain), lambda again: least, WITNESS
    )


def of_fake(device: FakeDevice, name: str = "large", least: float | None = None) -> Workload:
    def chain(calls: int) -> None:
        for _ in range(calls):
            device.call()
        device.clock.seconds = max(
            device.clock.seconds, device.busy_until
        )  # a number is fetched: no sync's matter

    return workload(device, name, device.call, least, chain)


def rows(audit: Audit) -> dict[str, str]:
    """Each way's verdict, without its figures."""
    return {row.way: row.word.partition(",")[0] for row in audit.rows}


@pytest.fixture(autouse=True)
def timer_that_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The Timer of torch.utils.benchmark knows no device of paper, just as it knows no XLA."""
    clock = Clock()

    def read() -> float:
        clock.seconds += 20e-9
        return clock.seconds

    monkeypatch.setattr(ways, "shipped_clock", lambda: read)
    return clock


def gpu(clock: Clock, device_seconds: float = 2e-3, **facts: Any) -> FakeDevice:
    return FakeDevice(
        clock,
        host_seconds=10e-6,
        device_seconds=device_seconds,
        sync_seconds=20e-6,
        asynchronous=True,
        **facts,
    )


def test_work_that_is_not_waited_for_is_too_fast_to_be_true(timer_that_waits_for_nothing: Clock) -> None:
    device = gpu(timer_that_waits_for_nothing)
    found = audited(device, of_fake(device, least=1.9e-3))
    assert rows(found) == {
        "ours": "right",
        "no sync": "impossible",
        "torch.utils.benchmark": "impossible",
        "sync each call": "right",
        "asv time_": "impossible",
    }
    assert found.right
    assert found.true_seconds == pytest.approx(2e-3)
    assert found.ours.seconds == pytest.approx(2e-3, rel=0.01)
    assert dict(found.left_out) == {"event pair": "fake has no events"}
    assert sync.exit_code([found]) == 0


def test_without_a_peak_it_is_still_too_small(timer_that_waits_for_nothing: Clock) -> None:
    device = gpu(timer_that_waits_for_nothing)
    assert rows(audited(device, of_fake(device)))["no sync"] == "too small"


def test_where_launches_are_the_bound_waiting_each_time_is_too_slow(
    timer_that_waits_for_nothing: Clock,
) -> None:
    device = gpu(timer_that_waits_for_nothing, device_seconds=2e-6)
    found = rows(audited(device, of_fake(device, "small")))
    assert found["ours"] == "right"
    assert found["sync each call"] == "too large"
    assert found["no sync"] == "right"  # the host is what takes long
    assert "no warm-up" in found


def test_a_first_call_that_initialises_is_no_time(timer_that_waits_for_nothing: Clock) -> None:
    device = gpu(timer_that_waits_for_nothing)
    calls = iter([50e-3])

    def call() -> None:
        device.clock.work(next(calls, 0.0))
        device.call()

    work = of_fake(device, "small")
    found = audited(device, Workload("small", "", call, work.witness, work.least, WITNESS))
    assert rows(found)["no warm-up"] == "too large"
    assert rows(found)["ours"] == "right"


def test_a_synchronisation_that_does_not_wait_is_found_out(timer_that_waits_for_nothing: Clock) -> None:
    """This is what ours would read if it were wrong: the witness does not believe it."""
    device = gpu(timer_that_waits_for_nothing, forgets_to_wait=True)
    found = audited(device, of_fake(device, least=1.9e-3))
    assert not found.right
    assert rows(found)["ours"] in {"impossible", "no time: three times as many calls take 1.00 times as long"}
    assert sync.exit_code([found]) == 3


def test_a_witness_faster_than_the_peak_judges_nothing(timer_that_waits_for_nothing: Clock) -> None:
    device = gpu(timer_that_waits_for_nothing)
    found = audited(device, of_fake(device, least=10e-3))
    assert "5 times as fast as the peak" in found.problem
    assert sync.exit_code([found]) == 3


def test_a_peak_of_a_busy_moment_is_measured_again(timer_that_waits_for_nothing: Clock) -> None:
    device = gpu(timer_that_waits_for_nothing)
    work = of_fake(device)
    again = Workload("large", "", work.call, work.witness, lambda again: 1.9e-3 if again else 10e-3, WITNESS)
    assert audited(device, again).right


def test_on_a_synchronous_device_all_ways_read_alike(timer_that_waits_for_nothing: Clock) -> None:
    device = FakeDevice(timer_that_waits_for_nothing, host_seconds=0.0, device_seconds=100e-6)
    found = audited(device, of_fake(device, least=90e-6))
    assert set(rows(found).values()) == {"right"}
    assert found.synchronous
    assert found.unlike == ()


def test_a_synchronous_device_on_which_they_do_not_is_told(timer_that_waits_for_nothing: Clock) -> None:
    device = FakeDevice(timer_that_waits_for_nothing, host_seconds=10e-6, sync_seconds=30e-6)
    found = audited(device, of_fake(device))
    assert [row.way for row in found.unlike] == ["sync each call"]
    assert "and sync each call did not with the large work" in printed([found], 120)


def test_lazy_ways(monkeypatch: pytest.MonkeyPatch, timer_that_waits_for_nothing: Clock) -> None:
    backend = Backend(timer_that_waits_for_nothing)
    backend.install(monkeypatch)
    device = XlaOnPaper(timer_that_waits_for_nothing)

    def chain(calls: int) -> None:
        for _ in range(calls):
            device.mark_step(backend.op())
        backend.wait_device_ops()

    found = audited(device, workload(device, "large", backend.op, 0.9 * COMPUTE, chain))
    assert rows(found) == {
        "ours": "right",
        "no sync": "impossible",
        "dropped": "impossible",
        "marked": "impossible",
        "torch.utils.benchmark": "impossible",
        "sync each call": "too large",
        "asv time_": "impossible",
    }
    assert backend.counters["UncachedCompile"] == 1


def test_an_op_that_runs_on_the_host_has_no_time_and_ours_is_not_right(
    monkeypatch: pytest.MonkeyPatch, timer_that_waits_for_nothing: Clock
) -> None:
    backend = Backend(timer_that_waits_for_nothing)
    backend.install(monkeypatch)
    device = XlaOnPaper(timer_that_waits_for_nothing)

    def chain(calls: int) -> None:
        for _ in range(calls):
            device.mark_step(backend.op())
        backend.wait_device_ops()

    found = audited(device, workload(device, "large", backend.on_host, None, chain))
    assert found.ours.word.startswith("no time: aten::bincount ran on the CPU")
    assert found.ours.seconds is None
    assert not found.right


class CudaOnPaper(OnPaper, Cuda):
    """The real device's event pair and spin, on a CUDA of paper."""

    clocks = ("throughput", "latency")

    def __init__(self, cuda: FakeCuda) -> None:
        super().__init__("cuda")
        self.cuda = cuda
        self.clock = Clock()

    def now(self) -> float:
        self.cuda.now += 20e-9
        return self.cuda.now

    def probe_host_speed(self) -> float:
        self.cuda.work(1e-3)
        return 1e6

    def describe(self) -> dict[str, str | int | float]:
        return {"model": "GPU on paper"}


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> CudaOnPaper:
    fake = FakeCuda()
    for name, value in vars(fake.torch.cuda).items():
        monkeypatch.setattr(
            torch.cuda, name, (lambda index=None: fake.synchronize()) if name == "synchronize" else value
        )

    def read() -> float:
        fake.synchronize()  # as torch.utils.benchmark does where there is an accelerator
        return fake.now

    monkeypatch.setattr(ways, "shipped_clock", lambda: read)
    return CudaOnPaper(fake)


def test_one_pair_of_events_around_a_small_call_times_the_launch(cuda: CudaOnPaper) -> None:
    call = cuda.cuda.kernel(10e-6, 30e-6)
    assert cuda.event_pair(call) == pytest.approx(10e-6 + LAUNCH_SECONDS + 30e-6)

    def chain(calls: int) -> None:
        for _ in range(calls):
            call()
        cuda.cuda.synchronize()

    found = rows(audited(cuda, workload(cuda, "small", call, None, chain)))
    assert found["ours"] == found["torch.utils.benchmark"] == "right"
    assert found["event pair"] == "too large"
    assert found["no sync"] == "too small"


def test_a_spin_is_as_long_as_its_cycles(cuda: CudaOnPaper) -> None:
    made = cuda.spin()
    assert made is not None
    call, seconds = made
    assert seconds() == pytest.approx(SPIN_CYCLES / HERTZ, rel=0.01)
    assert SPIN_CYCLES > PROBE_CYCLES
    found = audited(
        cuda, Workload("spin", "", call, lambda calls: seconds(), lambda again: None, "the device")
    )
    assert found.right
    assert rows(found)["no sync"] == rows(found)["asv time_"] == "too small"
    assert rows(found)["event pair"] == "right"


# What people and programs read


def printed(audits: list[Audit], width: int) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    sync.render(audits, console)
    return console.file.getvalue()


@pytest.fixture
def found(timer_that_waits_for_nothing: Clock, monkeypatch: pytest.MonkeyPatch) -> list[Audit]:
    monkeypatch.setattr(ways, "_version", lambda: "2.13.0")
    clock = timer_that_waits_for_nothing
    small, large, broken = gpu(clock, 2e-6), gpu(clock), gpu(clock, forgets_to_wait=True)
    broken.name = "broken"
    return [
        audited(small, of_fake(small, "small")),
        audited(large, of_fake(large, least=1.9e-3)),
        audited(broken, of_fake(broken, least=1.9e-3)),
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_for_people(found: list[Audit], width: int, snapshot: SnapshotAssertion) -> None:
    text = printed(found, width)
    assert max(map(len, text.splitlines())) <= width
    assert text == snapshot


def test_for_programs(found: list[Audit]) -> None:
    data = sync.to_json(found)
    assert json.loads(json.dumps(data))["right"] is False
    assert [audit["right"] for audit in data["audits"]] == [True, True, False]
    assert data["audits"][0]["rows"][0].keys() == {"way", "done", "seconds", "factor", "word", "right"}


class LastResult(FakeDevice):
    """Keeps the result of the last step."""

    last: torch.Tensor

    def mark_step(self, result: Any) -> None:
        self.last = result


def test_a_product_keeps_its_size_over_a_long_chain() -> None:
    """Else numbers would become infinite, or so small that processors make exceptions of them."""
    device = LastResult(Clock())
    device.name = "cpu"
    made = product(device, 64, "small")
    made.witness(300)
    assert 1e-9 < float(device.last.norm() / made.call().norm()) < 1e9
