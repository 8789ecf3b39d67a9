"""Stopwatches of others, as they ship them, over a call of known length."""

import sys
from types import SimpleNamespace

import pytest

from accel_micro.devices.base import QueueTooShort
from accel_micro.measure import sampling
from accel_micro.measure.sampling import opened
from accel_micro.selfcheck.peers import stopwatches
from accel_micro.selfcheck.peers.witnesses import KnownSpin


@pytest.mark.parametrize("watch", stopwatches.stopwatches("cpu"), ids=lambda watch: watch.name)
def test_they_read_what_a_spin_notes_of_itself(watch: stopwatches.Stopwatch) -> None:
    spin = KnownSpin.of(2e-3)
    spin.lengths.clear()
    seconds = watch.read(spin)
    # whatever the machine did meanwhile, what is read lies among the calls
    assert 0.9 * min(spin.lengths) < seconds < 1.1 * max(spin.lengths) + 1e-4


def test_asv_makes_one_call_a_sample_where_there_is_a_setup() -> None:
    samples, number = stopwatches.asv_process(KnownSpin(10))
    assert number == 1
    assert 1 <= len(samples) <= 10


def test_ours_reads_all_clocks_at_once_and_anew_when_asked_again() -> None:
    with opened("cpu") as device:
        mine = stopwatches.Ours(device, 0.05, brief=True)
        (watch,) = mine.stopwatches
        assert watch.name == "ours, throughput"
        spin = KnownSpin.of(1e-4)
        spin.lengths.clear()
        first = watch.read(spin)
        made = len(spin.lengths)
        assert min(spin.lengths) * 0.5 < first < 1.1 * max(spin.lengths) + 1e-5
        watch.read(spin)
        assert len(spin.lengths) > made
        other = KnownSpin.of(1e-3)
        assert watch.read(other) > 3 * first


def test_a_clock_that_cannot_be_read_says_why_and_the_others_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    class Sampler:
        throughput_over_larger = 1.02

        def __init__(self, *given: object) -> None:
            asked.append(given)

        def read_together(self, clocks: list[str], samples: int) -> object:
            seconds = {"dispatch": 5e-6, "throughput": 6e-6}
            return {name: SimpleNamespace(median_seconds=value) for name, value in seconds.items()}, {
                "device": "it launches nothing"
            }

    monkeypatch.setattr(sampling, "Sampler", Sampler)
    mine = stopwatches.Ours(SimpleNamespace(clocks=("throughput", "latency", "dispatch", "device")))
    device, throughput = mine.stopwatches
    call = object()
    with pytest.raises(QueueTooShort, match="it launches nothing"):
        device.read(call)
    assert throughput.read(call) == 6e-6
    assert mine.facts == {"dispatch": 5e-6, "over_larger": 1.02}
    assert len(asked) == 1
    throughput.read(call)
    assert len(asked) == 2


def test_what_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(stopwatches.Absent, match="triton is not installed"):
        stopwatches.by_do_bench(lambda: None)


def test_on_cuda_those_of_triton_come_too_each_with_the_state_it_calls_in() -> None:
    states = {watch.name: watch.regime for watch in stopwatches.stopwatches("cuda")}
    assert states[stopwatches.DO_BENCH] == "cold"
    assert states[stopwatches.DO_BENCH_GRAPH] == "queued"
    assert states[stopwatches.TIMEIT] == ""
    assert set(stopwatches.named("cpu")) < set(states)
