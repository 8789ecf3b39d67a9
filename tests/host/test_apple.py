"""What programs of macOS print, in the form that public reports quote it, and texts that are none of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.host import apple

BATTERY = """\
Now drawing from 'Battery Power'
 -InternalBattery-0 (id=4522083)\t87%; discharging; 6:12 remaining present: true
"""
DESKTOP = "Now drawing from 'AC Power'\n"
SETTINGS = """\
System-wide power settings:
Currently in use:
 standby              1
 Sleep On Power Button 1
 hibernatemode        3
 powernap             1
 networkoversleep     0
 disksleep            10
 sleep                1 (sleep prevented by powerd)
 ttyskeepawake        1
 displaysleep         2
 tcpkeepalive         1
 lowpowermode         1
 womp                 0
"""


def test_power_source() -> None:
    assert apple.parse_power_source(BATTERY) == "Battery Power"
    assert apple.parse_power_source(DESKTOP) == "AC Power"
    assert apple.parse_power_source("No batteries") is None


def test_low_power_mode() -> None:
    assert apple.parse_low_power(SETTINGS) is True
    assert (
        apple.parse_low_power(SETTINGS.replace("lowpowermode         1", "lowpowermode         0")) is False
    )
    assert apple.parse_low_power(SETTINGS.replace("lowpowermode", "powermode")) is None


@pytest.mark.parametrize(
    ("level", "name"), [(0, "nominal"), (1, "moderate"), (2, "heavy"), (4, "sleeping"), (9, "level 9")]
)
def test_thermal_pressure(level: int, name: str) -> None:
    assert apple.parse_thermal_pressure(f"com.apple.system.thermalpressurelevel {level}\n") == name
    assert apple.parse_thermal_pressure("com.apple.system.thermalpressurelevel: Failed\n") is None


@given(st.text(max_size=300))
def test_foreign_text_is_no_answer_and_no_error(text: str) -> None:
    for parse in (apple.parse_power_source, apple.parse_low_power, apple.parse_thermal_pressure):
        parse(text)
