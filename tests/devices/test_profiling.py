from types import SimpleNamespace

from accel_micro.devices.profiling import interval


def test_events_of_torch_before_2_4_are_in_microseconds() -> None:
    event = SimpleNamespace(start_us=lambda: 3, duration_us=lambda: 2)
    assert interval(event) == (3_000, 5_000)
