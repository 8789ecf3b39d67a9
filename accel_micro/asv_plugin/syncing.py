"""Asking the indexes for new builds: what asv calls to pull."""

from collections.abc import Sequence
from typing import Any

from asv.console import log

from accel_micro.asv_plugin.errors import EnvironmentLacks, WrongUse
from accel_micro.asv_plugin.sources import NoInterpreter, find_sources
from accel_micro.builds import Ledger
from accel_micro.builds.index import BadIndex


def sync(conf: Any, ledger: Ledger, pythons: Sequence[str] = ()) -> None:
    """Note what the indexes list. What cannot be reached is named, and the ledger goes on.

    Args:
        pythons: whose wheels are noted, else those of the configuration.

    Raises:
        WrongUse: what is configured is no index. EnvironmentLacks: the ledger cannot be written.
    """
    log.info("Looking for new builds of torch")
    with log.indent():
        try:
            found = find_sources(conf, pythons=pythons).sync(ledger, commits=False)
        except BadIndex as error:
            raise WrongUse(str(error)) from None
        except (NoInterpreter, OSError) as error:
            raise EnvironmentLacks(str(error)) from None
        for text in (*found.changed, *found.failures):
            log.warning(text)
        if found.instead:
            log.info(found.instead)
        if found.failures:
            log.warning("Going on with what the ledger knows")
