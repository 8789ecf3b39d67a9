"""Stopwatches of others, as they ship them, over a call of known length."""

import sys

import pytest

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
