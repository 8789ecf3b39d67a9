"""The base device, and the host's probe."""

import os

import pytest

from accel_micro.devices.base import Device, quiet_stderr
from accel_micro.devices.spin import SPINS, spin_rate


def test_the_probe_is_work_over_time() -> None:
    times = iter([10.0, 10.5])
    assert spin_rate(lambda: next(times)) == SPINS / 0.5


def test_a_device_without_a_queue_says_so() -> None:
    with pytest.raises(NotImplementedError, match="plain has no dispatch or device clock"):
        Device("plain").queue(lambda: None)


def test_stderr_is_silent_inside_and_back_outside(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet_stderr():
        os.write(2, b"native noise\n")
    os.write(2, b"heard\n")
    assert capfd.readouterr().err == "heard\n"
