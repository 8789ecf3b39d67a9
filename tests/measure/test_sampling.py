"""What is measured, and in which order, on a device and a clock that exist on paper."""

import gc
from itertools import groupby

import pytest

from accel_micro.measure import SAMPLES, Implausible
from accel_micro.measure.gate import TYPICAL_FULL_SPEED
from accel_micro.measure.process import Process
from accel_micro.measure.sampling import BLOCK_SECONDS, Sampler
from tests.fake import Clock, FakeDevice


def sampler_of(device: FakeDevice, budget_seconds: float = 1.0) -> Sampler:
    return Sampler(device, device.call, budget_seconds)


def test_a_synchronous_call_reads_its_own_time() -> None:
    process = sampler_of(FakeDevice(Clock(), host_seconds=12e-6)).read("throughput")
    assert process.median_seconds == pytest.approx(12e-6, rel=1e-3)
    assert len(process.samples) == len(process.speeds) == len(process.raw_samples) == SAMPLES
    assert process.calls_per_block * process.median_seconds >= BLOCK_SECONDS
    assert process.flags == ()


@pytest.mark.parametrize(("host", "device", "slower"), [(10e-6, 4e-6, 10e-6), (10e-6, 50e-6, 50e-6)])
def test_throughput_is_the_slope_so_the_final_synchronisation_drops_out(
    host: float, device: float, slower: float
) -> None:
    fake = FakeDevice(Clock(), host_seconds=host, device_seconds=device, sync_seconds=5e-3, asynchronous=True)
    process = sampler_of(fake).read("throughput")
    assert process.median_seconds == pytest.approx(slower, rel=0.01)


def test_what_the_first_call_after_a_pause_takes_longer_drops_out() -> None:
    # Measured on an H100: about a millisecond for a backward, whose worker thread sleeps while the host is probed.
    fake = FakeDevice(Clock(), host_seconds=150e-6, asynchronous=True, waking_seconds=1e-3)
    assert sampler_of(fake).read("throughput").median_seconds == pytest.approx(150e-6, rel=0.005)


def test_latency_is_one_call_with_its_synchronisation() -> None:
    fake = FakeDevice(Clock(), host_seconds=10e-6, device_seconds=4e-6, sync_seconds=30e-6, asynchronous=True)
    process = sampler_of(fake).read("latency")
    assert process.median_seconds == pytest.approx(44e-6, rel=0.01)


def test_a_forgotten_synchronisation_changes_the_number() -> None:
    honest = FakeDevice(Clock(), host_seconds=10e-6, device_seconds=50e-6, asynchronous=True)
    hasty = FakeDevice(
        Clock(), host_seconds=10e-6, device_seconds=50e-6, asynchronous=True, forgets_to_wait=True
    )
    assert sampler_of(hasty).read("throughput").median_seconds == pytest.approx(10e-6, rel=0.01)
    assert sampler_of(honest).read("throughput").median_seconds == pytest.approx(50e-6, rel=0.01)


def test_order_of_execution() -> None:
    fake = FakeDevice(Clock(), host_seconds=2e-3, asynchronous=True)
    sampler = sampler_of(fake, budget_seconds=0.1)
    sampler.first_call()
    assert fake.clock.log == ["synchronise", "call", "synchronise"]
    assert sampler.first_call_seconds == pytest.approx(2e-3, rel=0.01)

    sampler.warm_up()
    fake.clock.log.clear()
    sampler.read("throughput")
    steps = [(word, len(list(run))) for word, run in groupby(fake.clock.log)]
    words = [word for word, _ in steps]
    growth = words.index("probe")  # before the turns, growth is tried once
    assert words[:growth] == ["synchronise", "call"] * (growth // 2) + ["synchronise"] * (growth % 2)
    # Each turn: probe, some calls to wake up, then n and 3n calls, each between two synchronisations, then probe.
    blocks = "".join(word[0] for word in words[growth:])
    assert blocks.startswith("pscscscsp")
    assert blocks.replace("pscscscs", "").strip("p") == ""
    waking, n, three_n = [count for word, count in steps[growth:] if word == "call"][:3]
    assert waking == max(1, n // 2)
    assert three_n == 3 * n


def test_the_garbage_collector_rests_during_blocks_and_wakes_again() -> None:
    fake = FakeDevice(Clock(), host_seconds=1e-3)
    seen: list[bool] = []
    sampler = Sampler(fake, lambda: (seen.append(gc.isenabled()), fake.call()), 0.1)
    sampler.warm_up()
    seen.clear()
    sampler.read("throughput")
    assert seen
    assert not any(seen)
    assert gc.isenabled()


def test_time_that_does_not_grow_is_rejected() -> None:
    clock = Clock()
    fake = FakeDevice(clock, asynchronous=True)

    def answered_from_a_cache() -> None:
        fake.calls += 1

    fake.sync_seconds = 1e-3
    with pytest.raises(Implausible, match="three times as many calls"):
        Sampler(fake, answered_from_a_cache, 0.2).read("throughput")


def test_blocks_in_the_slow_mode_are_left_out() -> None:
    clock = Clock(speed=lambda seconds: 1.0 if int(seconds / 0.3) % 2 == 0 else 1 / 1.8)
    process = sampler_of(FakeDevice(clock, host_seconds=20e-6), budget_seconds=3.0).read("throughput")
    assert process.median_seconds == pytest.approx(20e-6, rel=0.02)
    assert process.blocks_taken > SAMPLES
    assert "speed-corrected" not in {flag.name for flag in process.flags}


def test_a_process_that_only_sees_the_slow_mode_is_corrected_and_says_so() -> None:
    fast = FakeDevice(Clock(), host_seconds=20e-6)
    sampler_of(fast).read("throughput")  # leaves the full speed behind
    slow_clock = Clock(speed=lambda seconds: 1 / 1.8)
    process = sampler_of(FakeDevice(slow_clock, host_seconds=20e-6)).read("throughput")
    assert process.raw_median_seconds == pytest.approx(36e-6, rel=0.01)
    assert (
        20e-6 < process.median_seconds < 28e-6
    )  # drawn to the prior, since this process never saw the speed change
    flag = next(flag for flag in process.flags if flag.name == "speed-corrected")
    assert "20 of 20 samples, down to 56 % speed" in flag.detail


def test_a_process_that_sees_both_speeds_learns_how_the_call_follows_them() -> None:
    fast = FakeDevice(Clock(), host_seconds=20e-6)
    sampler_of(fast).read("throughput")
    modes = Clock(speed=lambda seconds: (1 / 1.3, 1 / 1.8)[int(seconds / 0.1) % 2])
    process = sampler_of(FakeDevice(modes, host_seconds=20e-6), budget_seconds=2.0).read("throughput")
    assert process.sensitivity > 0.85
    assert process.median_seconds == pytest.approx(20e-6 / TYPICAL_FULL_SPEED, rel=0.02)


def test_the_warm_up_lasts_until_times_are_stable() -> None:
    clock = Clock()
    fake = FakeDevice(clock)
    sampler_of(fake).read("throughput")  # the full speed is known, so the warm-up begins at once
    start = clock.seconds

    def warming() -> None:
        share = min(1.0, (clock.seconds - start) / 0.35)
        clock.work(50e-6 * (3 - 2 * share))

    sampler = Sampler(fake, warming, 3.0)
    process = sampler.read("throughput")
    assert sampler.warmup_seconds > 0.3
    assert process.median_seconds == pytest.approx(50e-6, rel=0.02)
    assert "warm-up capped" not in {flag.name for flag in process.flags}


def test_a_call_that_never_settles_is_flagged_at_the_cap() -> None:
    clock = Clock()
    fake = FakeDevice(clock)
    sampler_of(fake).read("throughput")
    start = clock.seconds
    sampler = Sampler(fake, lambda: clock.work(50e-6 * 4.0 ** (start - clock.seconds)), 2.0)
    process = sampler.read("throughput")
    assert "warm-up capped" in {flag.name for flag in process.flags}
    assert sampler.warmup_seconds < 2.0


def test_twenty_samples_even_when_the_budget_is_too_small() -> None:
    process = sampler_of(FakeDevice(Clock(), host_seconds=0.05), budget_seconds=0.1).read("throughput")
    assert len(process.samples) == SAMPLES
    assert "over budget" in {flag.name for flag in process.flags}


def test_a_clock_that_is_not_offered_or_not_known_is_refused_in_words() -> None:
    sampler = sampler_of(FakeDevice(Clock()))
    with pytest.raises(ValueError, match="fake has no device clock; it has throughput, latency"):
        sampler.read("device")
    with pytest.raises(
        ValueError, match="unknown clock 'wall'; known: throughput, latency, dispatch, device"
    ):
        sampler.read("wall")


class Behind:
    """The queue of a device on paper, of which only the upper bound is asked."""

    device_flags = ()

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def device_at_most(self) -> float:
        return self._seconds


class WithQueue(FakeDevice):
    clocks = ("throughput", "latency", "dispatch", "device")

    def queue(self, call: object, period: int = 1) -> Behind:  # type: ignore[override]
        return Behind(self.device_seconds)


def _on_a_slow_host(kind: type[FakeDevice], host: float, device: float) -> Process:
    sampler_of(FakeDevice(Clock(), host_seconds=20e-6)).read("throughput")  # leaves the full speed behind
    slow = Clock(speed=lambda seconds: 1 / 1.8)
    fake = kind(slow, host_seconds=host, device_seconds=device, asynchronous=True)
    return sampler_of(fake).read("throughput")


def test_a_time_that_the_device_sets_is_not_corrected_for_a_slow_host() -> None:
    process = _on_a_slow_host(WithQueue, 10e-6, 50e-6)
    assert process.median_seconds == pytest.approx(50e-6, rel=0.01)
    assert process.flags == ()


def test_a_time_that_the_host_sets_is_corrected_down_to_that_of_the_device() -> None:
    free = _on_a_slow_host(WithQueue, 20e-6, 1e-6)
    assert 20e-6 < free.median_seconds < 28e-6
    held = _on_a_slow_host(WithQueue, 20e-6, 28e-6)
    assert held.raw_median_seconds == pytest.approx(36e-6, rel=0.01)
    assert held.median_seconds == pytest.approx(28e-6, rel=0.01)


@pytest.mark.parametrize(("host", "device", "read"), [(10e-6, 50e-6, 50e-6), (20e-6, 1e-6, 36e-6)])
def test_where_nothing_tells_how_long_the_device_takes_nothing_is_corrected(
    host: float, device: float, read: float
) -> None:
    process = _on_a_slow_host(FakeDevice, host, device)
    assert process.median_seconds == pytest.approx(read, rel=0.01)
    assert [str(flag) for flag in process.flags] == ["slow host (20 of 20 samples, down to 56 % speed)"]
