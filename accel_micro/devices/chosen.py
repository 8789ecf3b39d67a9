"""Which device of a kind this run uses: `ACCEL_MICRO_DEVICES=cpu,cuda:1`.

Cases name the kind alone (`cuda`), so that results of several machines line up. Which of several cards a process takes
is told by this variable, which the processes of a run inherit.
"""

import os
from typing import Final

from accel_micro.device_names import kind_of
from accel_micro.devices.registry import wrong_name

VARIABLE: Final = "ACCEL_MICRO_DEVICES"
"""Devices that are run, separated by commas; all that the machine has when it is empty."""


def asked(text: str | None = None) -> dict[str, str]:
    """Kind → name of each device that is asked for, in order; empty when all are.

    Args:
        text: in place of the variable.

    Raises:
        ValueError: a device is unknown, or two of one kind are asked for; the message is one sentence.
    """
    text = os.environ.get(VARIABLE, "") if text is None else text
    found: dict[str, str] = {}
    for name in text.replace(",", " ").split():
        kind = kind_of(name)
        if sentence := wrong_name(name):
            raise ValueError(sentence)
        if found.get(kind, name) != name:
            raise ValueError(
                f"a run takes one {kind} device, not {found[kind]} and {name}; start a run for each, "
                "they may run at the same time"
            )
        found[kind] = name
    return found


def name_of(device: str) -> str:
    """The name of the device that a kind stands for in this process; a name with an index stays what it is."""
    if ":" in device or not os.environ.get(VARIABLE):
        return device
    try:
        return asked().get(device, device)
    except ValueError:  # of a variable that a run would refuse
        return device
