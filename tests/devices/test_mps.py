"""MPS on paper: the number is right, and a synchronisation that is missing or in the wrong place changes it."""

import math
import platform
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from accel_micro import devices
from accel_micro.devices import peaks
from accel_micro.devices.mps import FALLBACK, Encoding, Mps
from accel_micro.host import apple
from accel_micro.measure.blocks import Implausible, bend, line
from accel_micro.measure.process import Process
from accel_micro.measure.sampling import Sampler
from tests.devices.simulated_mps import ENCODE, GPU, SYNCHRONISE, Gpu, MpsOnPaper
from tests.fake import Clock

BUDGET = 0.5


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    gpu = Gpu(Clock())
    gpu.install(monkeypatch)
    return gpu


def read(device: Mps, call: Callable[[], Any]) -> tuple[dict[str, Process], Sampler]:
    sampler = Sampler(device, call, BUDGET)
    processes, unreadable = sampler.read_together(("throughput", "latency", "dispatch"), 5)
    assert not unreadable
    return processes, sampler


def test_throughput_is_encoding_and_gpu_one_after_the_other(gpu: Gpu) -> None:
    processes, sampler = read(MpsOnPaper(gpu.clock), gpu.call)
    assert processes["throughput"].median_seconds == pytest.approx(ENCODE + GPU, rel=0.01)
    assert processes["latency"].median_seconds == pytest.approx(ENCODE + GPU + SYNCHRONISE, rel=0.01)
    assert processes["dispatch"].median_seconds == pytest.approx(ENCODE, rel=0.01)
    assert sampler.device_interval == pytest.approx((GPU, ENCODE + GPU), rel=0.01)
    assert processes["throughput"].flags == ()


@pytest.mark.parametrize("every", [1, 3, 16])
def test_the_gpu_lies_within_the_interval_when_commands_are_committed_early(gpu: Gpu, every: int) -> None:
    gpu.commit_every = every
    processes, sampler = read(MpsOnPaper(gpu.clock), gpu.call)
    assert processes["dispatch"].median_seconds == pytest.approx(ENCODE, rel=0.01)
    assert sampler.device_interval is not None
    low, high = sampler.device_interval
    assert low <= GPU <= 1.01 * high
    assert max(ENCODE, GPU) <= 1.01 * processes["throughput"].median_seconds <= 1.02 * (ENCODE + GPU)


@pytest.mark.parametrize("calls_in_a_block", [1, 10, 1000])
def test_the_wait_at_the_end_of_a_block_does_not_lower_a_peak(
    gpu: Gpu, calls_in_a_block: int, known_machine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Throughput, which has no wait in it, would be called impossible."""
    factor = 2e-3 / calls_in_a_block / (ENCODE + GPU)  # a wait takes 4 ms
    monkeypatch.setattr("tests.devices.simulated_mps.ENCODE", factor * ENCODE)
    monkeypatch.setattr("tests.devices.simulated_mps.GPU", factor * GPU)
    rate = peaks._best_rate(MpsOnPaper(gpu.clock), gpu.call, 1.0)
    assert rate is not None
    assert rate * factor * (ENCODE + GPU) == pytest.approx(1.0, rel=0.01)


class NeverSynchronised(MpsOnPaper):
    def synchronize(self) -> None:
        pass


class SynchronisedBeforeOnly(MpsOnPaper):
    """Waits when a block begins, and not when it ends."""

    waits = False

    def synchronize(self) -> None:
        self.waits = not self.waits
        if self.waits:
            super().synchronize()


@pytest.mark.parametrize("kind", [NeverSynchronised, SynchronisedBeforeOnly])
def test_a_missing_synchronisation_changes_the_number(gpu: Gpu, kind: type[MpsOnPaper]) -> None:
    try:
        process = Sampler(kind(gpu.clock), gpu.call, BUDGET).read("throughput", 5)
    except Implausible:
        return
    assert process.median_seconds < 0.5 * (ENCODE + GPU)


def test_a_clock_that_is_stopped_after_the_synchronisation_changes_dispatch(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(self: Encoding, calls: int) -> float:
        device = self._device
        device.synchronize()
        start = device.now()
        for _ in range(calls):
            self._call()
        device.synchronize()
        return (device.now() - start) / calls

    monkeypatch.setattr(Encoding, "dispatch", late)
    processes, _ = read(MpsOnPaper(gpu.clock), gpu.call)
    assert processes["dispatch"].median_seconds > 1.5 * ENCODE


def test_a_single_block_would_carry_the_synchronisation(gpu: Gpu) -> None:
    sampler = Sampler(MpsOnPaper(gpu.clock), gpu.call, BUDGET)
    process = sampler.read("throughput", 5)
    alone = sampler._blocks.seconds_of(process.calls_per_block) / process.calls_per_block
    assert alone > 1.2 * (ENCODE + GPU)
    assert process.median_seconds == pytest.approx(ENCODE + GPU, rel=0.01)


def test_time_that_bends_is_flagged(gpu: Gpu) -> None:
    gpu.slowing = 0.02
    process = Sampler(MpsOnPaper(gpu.clock), gpu.call, BUDGET).read("throughput", 5)
    flag = next(flag for flag in process.flags if flag.name == "not linear")
    assert re.fullmatch(r"2n calls are -\d+ % off the line of n and 3n", flag.detail)


def test_a_line_through_two_points_is_their_slope_and_through_three_the_least_squares() -> None:
    assert line((1, 3), (5.0, 9.0)) == 2.0
    assert line((1, 2, 3), (5.0, 7.0, 9.0)) == 2.0
    assert line((1, 2, 3), (1.0, 1.0, 4.0)) == 1.5


def test_the_bend_is_signed_and_a_share_of_the_rise() -> None:
    assert bend((1, 2, 3), (5.0, 7.0, 9.0)) == 0.0
    assert bend((1, 2, 3), (1.0, 4.0, 9.0)) == -1 / 8
    assert bend((1, 2, 3), (1.0, 6.0, 9.0)) == 1 / 8
    assert bend((1, 2, 3), (1.0, 1.0, 1.0)) == math.inf


def test_a_slow_host_does_not_make_the_gpu_s_share_shorter(gpu: Gpu) -> None:
    fast = Sampler(MpsOnPaper(gpu.clock), gpu.call, BUDGET)
    fast.read("throughput", 5)  # leaves the full speed behind
    gpu.clock.speed = lambda seconds: 1 / 3
    slow = Sampler(MpsOnPaper(gpu.clock), gpu.call, BUDGET)
    processes, _ = slow.read_together(("throughput", "dispatch"), 5)
    assert processes["throughput"].raw_median_seconds == pytest.approx(3 * ENCODE + GPU, rel=0.01)
    assert processes["throughput"].median_seconds >= GPU


def test_encoded_results_are_limited_by_memory(gpu: Gpu) -> None:
    device = MpsOnPaper(gpu.clock)
    assert device.most_calls(torch.empty(1 << 18)) == (1 << 30) // 10 // (1 << 20)
    assert device.most_calls(None) is None
    assert device.free_memory_bytes() == (1 << 30) - (1 << 28)


def on_a_mac(monkeypatch: pytest.MonkeyPatch, version: str = "14.6.1", machine: str = "arm64") -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(platform, "mac_ver", lambda: (version, ("", "", ""), machine))
    monkeypatch.setattr(torch.backends.mps, "is_built", lambda: True)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.delenv(FALLBACK, raising=False)


def test_a_mac_has_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_mac(monkeypatch)
    assert devices.get("mps").unavailable() is None
    monkeypatch.setenv(FALLBACK, "0")
    assert devices.get("mps").unavailable() is None
    assert "without an index" in str(devices.get("mps:1").unavailable())


def test_why_there_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def reason() -> str:
        return str(devices.get("mps").unavailable())

    on_a_mac(monkeypatch, "12.2.1")
    assert reason() == "mps needs macOS 12.3 or newer, and this is 12.2.1"
    on_a_mac(monkeypatch, machine="x86_64")
    monkeypatch.setattr(apple, "is_translated", lambda: True)
    assert "Rosetta" in reason()
    monkeypatch.setattr(apple, "is_translated", lambda: False)
    assert "Apple silicon" in reason()
    on_a_mac(monkeypatch)
    monkeypatch.setenv(FALLBACK, "1")
    assert reason() == f"{FALLBACK} is set, so ops may run on the CPU unseen; unset it"
    on_a_mac(monkeypatch)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert "Metal" in reason()
    monkeypatch.setattr(torch.backends.mps, "is_built", lambda: False)
    assert "without mps" in reason()
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    assert reason() == "mps needs macOS on an Apple GPU"


def test_what_slows_a_mac_is_recorded(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apple, "power_source", lambda: "Battery Power")
    monkeypatch.setattr(apple, "low_power_mode", lambda: True)
    monkeypatch.setattr(apple, "thermal_pressure", lambda: None)
    modes = devices.get("mps").precision()
    assert modes["power_source"] == "Battery Power"
    assert modes["low_power_mode"] is True
    assert "thermal_pressure" not in modes
