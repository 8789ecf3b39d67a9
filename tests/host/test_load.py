"""Rates from two looks, and the parsers of what one look reads."""

import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.host import apple, load
from accel_micro.host.load import Moment
from tests.host.machines import CPU, plant

BEFORE = Moment(
    seconds=10.0,
    cpu={"user": 100.0, "system": 20.0, "idle": 500.0, "iowait": 5.0, "steal": 1.0, "guest": 50.0},
    own_seconds=3.0,
    processes={(7, 1.0): ("compile", 50.0), (8, 2.0): ("editor", 9.0), (9, 3.0): ("gone", 1.0)},
)
# Ten seconds on four cores: 40 CPU seconds, of which 12 user, 4 system, 2 stolen, 22 idle.
AFTER = Moment(
    seconds=20.0,
    cpu={"user": 112.0, "system": 24.0, "idle": 520.0, "iowait": 7.0, "steal": 3.0, "guest": 60.0},
    own_seconds=7.0,
    processes={(7, 1.0): ("compile", 60.5), (8, 2.0): ("editor", 9.1), (10, 4.0): ("new", 9.0)},
)


def test_busy_elsewhere_leaves_out_this_process_idling_and_stolen_time() -> None:
    assert load.busy_elsewhere(BEFORE, AFTER) == pytest.approx((12 + 4 - 4) / 40)


def test_steal_is_a_share_of_all_time() -> None:
    assert load.stolen(BEFORE, AFTER) == pytest.approx(2 / 40)
    assert load.stolen(Moment(0.0, {"idle": 1.0}), Moment(1.0, {"idle": 2.0})) is None


def test_the_busiest_are_named_and_those_seen_once_are_not() -> None:
    assert load.busiest(BEFORE, AFTER) == [{"name": "compile", "pid": 7, "cores": 1.05}]


def test_a_process_id_used_again_is_another_process() -> None:
    again = Moment(20.0, processes={(7, 11.0): ("shell", 60.0)})
    assert load.busiest(BEFORE, again) == []


def test_no_time_between_looks_tells_nothing() -> None:
    assert load.busy_elsewhere(BEFORE, BEFORE) is None
    assert load.stolen(BEFORE, BEFORE) is None
    assert load.busiest(BEFORE, BEFORE) == []


_TIMES = st.dictionaries(st.sampled_from(["user", "idle", "steal", "guest"]), st.floats(0, 1e9))


@given(_TIMES, _TIMES, st.floats(0, 1e9))
def test_shares_stay_between_nothing_and_all(
    before: dict[str, float], after: dict[str, float], own: float
) -> None:
    first, second = Moment(0.0, before), Moment(1.0, after, own_seconds=own)
    for share in (load.busy_elsewhere(first, second), load.stolen(first, second)):
        assert share is None or 0 <= share <= 1


def test_a_spinning_process_is_found() -> None:
    spin = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        facts = {}
        for _ in range(20):  # a crowded machine may not give it a core at once
            load.gather(lambda name, value, source: facts.update({name: value}), 0.3)
            if any(process["pid"] == spin.pid for process in facts["load.processes"]):
                break
        assert any(process["pid"] == spin.pid for process in facts["load.processes"])
        assert facts["load.busy_elsewhere"] > 0
    finally:
        spin.kill()
        spin.wait()


def test_throttle_events_are_summed(tmp_path: Path) -> None:
    counts = {
        f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "3\n",
        f"{CPU}/cpu0/thermal_throttle/package_throttle_count": "10\n",
        f"{CPU}/cpu11/thermal_throttle/core_throttle_count": "4\n",
    }
    assert load.throttle_events(plant(tmp_path / "hot", counts)) == 17
    assert load.throttle_events(tmp_path / "none") is None


def test_pressure() -> None:
    text = "some avg10=12.50 avg60=3.00 avg300=0.90 total=6793299\nfull avg10=1.00 avg60=0.00 total=0\n"
    assert load.parse_pressure(text) == pytest.approx(0.125)


def test_pmset() -> None:
    text = (
        "System-wide power settings:\nCurrently in use:\n standby              1\n lowpowermode         1\n"
    )
    assert apple.parse_low_power(text) is True
    assert apple.parse_low_power(text.replace("lowpowermode         1", "lowpowermode         0")) is False
    therm = "Note: No thermal warning level\n\tCPU_Scheduler_Limit\t= 100\n\tCPU_Speed_Limit \t= 71\n"
    assert load.parse_speed_limit(therm) == 71


def test_the_hottest_sensor_of_the_processor_counts() -> None:
    sensor = namedtuple("sensor", ["current"])
    sensors = {"nvme": [sensor(99.0)], "coretemp": [sensor(51.0), sensor(63.04)], "k10temp": []}
    assert load.hottest(sensors) == 63.0
    assert load.hottest({"nvme": [sensor(40.0)]}) is None


@given(st.text())
def test_garbage_never_raises(text: str) -> None:
    load.parse_pressure(text)
    apple.parse_low_power(text)
    load.parse_speed_limit(text)
