"""Errors that asv prints as one line, with the exit code that accel_micro's own commands give them."""

from typing import Final

from asv.util import UserError

WRONG_USE: Final = 2
ENVIRONMENT: Final = 3


class WrongUse(UserError):  # type: ignore[misc]
    """What was asked for does not exist."""

    exit_code = WRONG_USE


class EnvironmentLacks(UserError):  # type: ignore[misc]
    """This machine or environment cannot do what was asked for."""

    exit_code = ENVIRONMENT


class DeviceBusy(EnvironmentLacks):
    """Another run is measuring on the device; the message names its process."""
