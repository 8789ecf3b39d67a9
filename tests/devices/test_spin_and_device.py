"""The base device, and the host's probe."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from accel_micro import devices, host
from accel_micro.devices.base import Device, quiet_stderr
from accel_micro.devices.spin import SPINS, spin_rate
from accel_micro.devices.waiting import parse, thread_waited_seconds, waited_seconds


def test_the_probe_is_work_over_time() -> None:
    times = iter([10.0, 10.5])
    waited = iter([0.0, 0.0])
    assert spin_rate(lambda: next(times), lambda: next(waited)) == SPINS / 0.5


def test_time_without_a_core_is_not_the_probes() -> None:
    times, waited = iter([10.0, 10.5]), iter([3.0, 3.2])
    assert spin_rate(lambda: next(times), lambda: next(waited)) == pytest.approx(SPINS / 0.3)


def test_a_probe_that_was_put_aside_for_most_of_its_time_reads_no_slow_core() -> None:
    times, waited = iter([10.0, 10.5]), iter([3.0, 3.4])
    assert spin_rate(lambda: next(times), lambda: next(waited)) == pytest.approx(SPINS / 0.1)


def test_a_probe_ran_for_a_twentieth_of_its_time_at_least() -> None:
    times, waited = iter([10.0, 10.5]), iter([3.0, 3.6])
    assert spin_rate(lambda: next(times), lambda: next(waited)) == pytest.approx(SPINS / 0.025)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(b"123 4000000000 7\n", 4.0), (b"0 0 0", 0.0), (b"", 0.0), (b"a b c", 0.0), (b"1 2", 0.0)],
)
def test_schedstat(text: bytes, seconds: float) -> None:
    assert parse(text) == seconds


@pytest.mark.skipif(
    not Path("/proc/thread-self/schedstat").exists(), reason="needs Linux's scheduler statistics"
)
def test_a_second_program_on_the_same_core_makes_this_one_wait() -> None:
    core = min(os.sched_getaffinity(0))
    before_affinity = os.sched_getaffinity(0)
    code = f"import os\nos.sched_setaffinity(0, [{core}])\nprint(flush=True)\nwhile True: pass"
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        other.stdout.readline()
        os.sched_setaffinity(0, [core])
        before = thread_waited_seconds()
        start = time.perf_counter()
        while time.perf_counter() - start < 0.5:
            pass
        assert thread_waited_seconds() - before > 0.05
        assert waited_seconds() >= thread_waited_seconds() - before
    finally:
        os.sched_setaffinity(0, before_affinity)
        other.kill()
        other.communicate()


def test_a_device_without_a_queue_says_so() -> None:
    with pytest.raises(NotImplementedError, match="plain has no dispatch or device clock"):
        Device("plain").queue(lambda: None)


def test_stderr_is_silent_inside_and_back_outside(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet_stderr():
        os.write(2, b"native noise\n")
    os.write(2, b"heard\n")
    assert capfd.readouterr().err == "heard\n"


def test_a_session_on_the_cpu_gives_the_caller_its_threads_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(host, "allowed_cores", lambda: before + 1)
    with pytest.raises(KeyError), devices.get("cpu").session():
        assert torch.get_num_threads() == before + 1
        raise KeyError
    assert torch.get_num_threads() == before
