"""Peaks are measured once, remembered, and looked up by the size of the working set."""

import itertools
from typing import Any

import pytest
import torch

from accel_micro import devices
from accel_micro.devices import peaks, store
from accel_micro.devices.base import WatchState
from accel_micro.devices.cpu import Cpu
from tests.fake import Clock, FakeDevice


def test_a_larger_working_set_never_has_a_higher_peak() -> None:
    cpu = devices.get("cpu")
    ladder = {"65536": 30e9, "1048576": 160e9, "16777216": 60e9, "268435456": 20e9}
    store.update("peaks", lambda data: data.update({peaks.machine_key(cpu): {"bytes": ladder}}))
    rates = [peaks.bytes_per_second(cpu, size) for size in (1e3, 1e5, 1e6, 4e6, 1e8, 1e9, 1e12)]
    assert rates == sorted(rates, key=lambda rate: -(rate or 0))
    assert rates[0] == 160e9  # a small set may sit in a cache whose own rung was too short to show its rate
    assert rates[-1] == 20e9


def test_unknown_arithmetic_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown arithmetic 'int4'; known: float64, float32"):
        peaks.flops_per_second(devices.get("cpu"), "int4")


def test_peaks_are_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = devices.get("cpu")
    asked: list[str] = []

    def measured(device: Any, arithmetic: str) -> float:
        asked.append(arithmetic)
        return 1e9

    monkeypatch.setattr(peaks, "_measure_flops", measured)
    assert [peaks.flops_per_second(cpu, "float32") for _ in range(3)] == [1e9] * 3
    assert peaks.flops_per_second(cpu, "tf32") == 1e9  # on a CPU TF32 is float32
    assert asked == ["float32"]


def test_a_peak_measured_again_can_only_rise(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = devices.get("cpu")
    rates = iter([5e9, 3e9, 8e9])
    monkeypatch.setattr(peaks, "_measure_flops", lambda device, arithmetic: next(rates))
    assert peaks.flops_per_second(cpu, "float32") == 5e9
    assert peaks.flops_per_second(cpu, "float32", again=True) == 5e9
    assert peaks.flops_per_second(cpu, "float32", again=True) == 8e9
    ladders = iter([{"65536": 5e9}, {"65536": 4e9, "131072": 2e9}])
    monkeypatch.setattr(peaks, "_measure_bytes", lambda device: next(ladders))
    assert peaks.bytes_per_second(cpu, 1.0) == 5e9
    assert peaks.bytes_per_second(cpu, 1.0, again=True) == 5e9
    assert peaks.bytes_per_second(cpu, 1e9) == 2e9


@pytest.mark.slow
def test_a_product_does_not_beat_the_measured_peak() -> None:
    cpu = devices.get("cpu")
    with cpu.session():
        peak = peaks.flops_per_second(cpu, "float32")
        assert peak is not None
        a = torch.randn(1024, 1024)
        best = peaks._best_rate(cpu, lambda: a @ a, 2.0 * 1024**3)
    assert best is not None
    assert best < 1.3 * peak


class LazyCpu(Cpu):
    """A CPU that says it is lazy, and notes the steps that are marked."""

    lazy = True
    marked = 0

    def mark_step(self, result: Any) -> None:
        self.marked += 1


def test_peaks_of_a_lazy_device_come_from_results_that_must_be_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernels: set[str] = set()

    def rate(device: Any, call: Any, amount: float) -> float:
        kernels.add(getattr(call, "func", call).__name__)
        return amount

    monkeypatch.setattr(peaks, "_best_rate", rate)
    monkeypatch.setattr(peaks, "_CPU_BYTES", (1 << 16,))
    peaks._measure_bytes(LazyCpu("cpu"))
    assert kernels == {"mul", "add", "sum"}
    kernels.clear()
    peaks._measure_bytes(devices.get("cpu"))
    assert kernels == {"copy_", "add_", "sum", "fill_"}


def test_each_call_of_a_lazy_peak_is_a_step_of_its_own(
    known_machine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peaks, "_SECONDS_PER_KERNEL", 0.01)
    device, calls = LazyCpu("cpu"), []
    peaks._best_rate(device, lambda: calls.append(1), 1.0)
    assert device.marked == len(calls) > 2


def test_a_cold_peak_is_that_of_the_size_below_or_of_larger_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = devices.get("cpu")
    ladder = {"65536": 300e9, "16777216": 200e9, "67108864": 60e9, "268435456": 20e9}
    asked: list[tuple[int, ...]] = []

    def measured(device: Any, sizes: tuple[int, ...] = ()) -> dict[str, float]:
        asked.append(tuple(sizes))
        return {str(size): 50e9 for size in sizes} if sizes else ladder

    monkeypatch.setattr(peaks, "_measure_bytes", measured)
    assert peaks.bytes_per_second_cold(cpu, 48e6) == 60e9, (
        "none of the caches' rates, and a larger rung's if higher"
    )
    assert peaks.bytes_per_second_cold(cpu, 140e6) == 50e9
    assert peaks.bytes_per_second_cold(cpu, 120e6) == 60e9, "67108864 is the power of two below"
    assert peaks.bytes_per_second(cpu, 48e6) == 200e9, "of a hot case, caches count"
    assert peaks.bytes_per_second_cold(cpu, 48e6) == 60e9
    assert asked == [(33554432,), (), (134217728,), (67108864,)], "each is measured once"


def watched(state: WatchState, queue: Any) -> Cpu:
    """A device of 2 GHz with a device clock, whose driver says this of it."""

    class Watch:
        def read(self) -> WatchState:
            return state

    class Hot(Cpu):
        clocks = ("throughput", "device")
        watch: Any = Watch()

        def probe_device_speed(self) -> float:
            return 2e9

        def queue(self, call: Any) -> Any:
            return queue

    return Hot("cpu")


@pytest.mark.parametrize(
    ("reasons", "hertz", "factor"),
    [
        (("power cap",), 1.6e9, 1.25),  # the probe draws little power, so it reads the full clock, 2 GHz
        ((), 1.6e9, 1.0),
        (("power cap",), None, 1.0),
        (("power cap",), 0.5e9, 1.5),  # no more than that is believed
        (("power cap",), 2.1e9, 1.0),
    ],
)
def test_a_peak_is_that_of_the_full_clock(
    reasons: tuple[str, ...], hertz: float | None, factor: float
) -> None:
    class Queue:
        def device_calls(self, block_seconds: float) -> int:
            return 10

        def device(self, calls: int) -> float:
            return 2e-3

    assert peaks._best_rate(
        watched(WatchState(reasons, hertz=hertz), Queue()), lambda: None, 1e9
    ) == pytest.approx(factor * 5e11)


def test_a_peak_is_that_of_a_card_that_has_rested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose driver says that nothing holds it down, while it works at four fifths of its clock."""
    rested = [False]

    class Queue:
        def device_calls(self, block_seconds: float) -> int:
            return max(1, round(block_seconds / 2e-3))

        def device(self, calls: int) -> float:
            fast, rested[0] = rested[0] and calls == 1, False
            return 1.6e-3 if fast else 2e-3

    monkeypatch.setattr(peaks, "sleep", lambda seconds: rested.__setitem__(0, seconds > 0.02))
    assert peaks._best_rate(watched(WatchState((), hertz=2e9), Queue()), lambda: None, 1e9) == pytest.approx(
        1e9 / 1.6e-3
    )


@pytest.mark.parametrize(
    ("shares", "others", "rate"),
    [
        ([0.4], 0.0, 1e12 / 2e-3),  # the thread that makes the calls waited alone: no call took that time
        ([0.4], 0.5, 0.6e12 / 2e-3),  # another waited too, and how long it kept the calls is not known
        ([0.9], 0.0, 0.2e12 / 2e-3),  # hardly ran: little is known, and no more than half is taken off
        ([0.9, 0.9, 0.0], 0.0, 1e12 / 2e-3),  # one block with a core is enough, if it comes late
        ([0.0, 0.9], 0.0, 1e12 / 2e-3),
    ],
)
def test_a_peak_is_that_of_a_thread_with_a_core(
    monkeypatch: pytest.MonkeyPatch, shares: list[float], others: float, rate: float
) -> None:
    """Samples are freed of the time without a core; peaks that were not called them impossible on a busy machine."""

    class Busy(Cpu):
        """Another program has the core for these shares of the blocks in turn. Clocks are virtual."""

        clock = waited = 0.0

        def now(self) -> float:
            return self.clock

        def own_waited_seconds(self) -> float:
            return self.waited

        def waited_seconds(self) -> float:
            return self.waited * (1.0 + others)

        def synchronize(self) -> None:
            pass

        def probe_host_speed(self) -> float:
            self.clock += 1e-3
            return 1000.0

    device, calls = Busy("cpu"), itertools.count()

    def call() -> None:
        number = next(calls)  # the first is the one that says how many make a block: one
        share = shares[(number - 1) % len(shares)]
        device.clock += 2e-3 / (1.0 - share)
        device.waited += 2e-3 / (1.0 - share) * share

    monkeypatch.setattr(peaks.full_speed, "establish", lambda *_: 1000.0)
    assert peaks._best_rate(device, call, 1e12) == pytest.approx(rate)


def test_what_the_first_call_loads_is_no_speed_of_the_kernel(known_machine: None) -> None:
    clock = Clock()
    device = FakeDevice(clock, host_seconds=1e-3)

    def call() -> None:
        if not device.calls:
            clock.work(0.8)  # a library that is loaded, a kernel that is compiled
        device.call()

    assert peaks._best_rate(device, call, 1.0) == pytest.approx(1e3, rel=0.01)
    slow = FakeDevice(clock, host_seconds=0.8)
    assert peaks._best_rate(slow, slow.call, 1.0) is None
    assert slow.calls == 2


def test_sizes_too_large_for_a_slow_device_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def rate(device: Any, call: Any, amount: float) -> float | None:
        return amount if amount < 1 << 20 else None

    monkeypatch.setattr(peaks, "_best_rate", rate)
    monkeypatch.setattr(peaks, "_CPU_BYTES", (1 << 16, 1 << 22))
    assert list(peaks._measure_bytes(devices.get("cpu"))) == ["65536"]
