"""Errors that asv prints as one line, with the exit code that accel_micro's own commands give them."""

from typing import Final

from asv.util import ProcessError, UserError

WRONG_USE: Final = 2
ENVIRONMENT: Final = 3


class WrongUse(UserError):  # type: ignore[misc]
    """What was asked for does not exist."""

    exit_code = WRONG_USE


class EnvironmentLacks(UserError):  # type: ignore[misc]
    """This machine or environment cannot do what was asked for."""

    exit_code = ENVIRONMENT


class BuildBroken(EnvironmentLacks):
    """A build can never be run here, whoever tries again."""


class DeviceBusy(EnvironmentLacks):
    """Another run is measuring on the device; the message names its process."""


class NoEnvironment(ProcessError):  # type: ignore[misc]
    """A build cannot be run here; the message says why. asv takes it for a build that failed, and goes on.

    Attributes:
        for_good: it is the build's fault, and not that of a network or a disk: trying again would not help.
    """

    def __init__(self, message: str, *, for_good: bool = True) -> None:
        super().__init__([message], 1, "", message)
        self.for_good = for_good

    def __str__(self) -> str:
        return str(self.stderr)
