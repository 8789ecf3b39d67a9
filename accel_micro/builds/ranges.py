"""Ranges of builds, as asv and our commands take them: `20261101..20261127`, `2.12.0..2.13.0`, `nightly`.

A day on which no nightly appeared is a fine end of a range: it bounds by its date.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from accel_micro.builds.identity import CHANNELS, Build, day_milliseconds
from accel_micro.builds.ledger import Ledger, UnknownBuild

_DAY_MILLISECONDS = 24 * 60 * 60 * 1000


@dataclass(frozen=True)
class End:
    """One end of a range: a build, or a day without one.

    Attributes:
        name: as it was given.
        build: None for a day on which no nightly is known.
        date_milliseconds: of the build; of a day without one, its midnight UTC.
    """

    name: str
    build: Build | None
    date_milliseconds: int

    @property
    def channel(self) -> str:
        """Of the build; days are days of nightlies."""
        return self.build.channel if self.build else "nightly"


def find_end(ledger: Ledger, name: str) -> End:
    """The build of that name, or the day.

    Raises:
        UnknownBuild, AmbiguousBuild: it is neither.
    """
    try:
        build = ledger.resolve(name)
    except UnknownBuild:
        day = day_milliseconds(name.replace("-", ""))
        if day is None or not any(build.channel == "nightly" for build in ledger):
            raise
        return End(name, None, day)
    return End(name, build, ledger.date_milliseconds(build.id))


def select(ledger: Ledger, text: str, head: Callable[[], Build] | None = None) -> list[Build]:
    """The builds that `text` means, from old to new.

    `A..B` is what came after A up to B, in B's channel; a channel is all of it; any other name is one build,
    with or without `^!`.

    Args:
        head: the build that an end left out or called HEAD means. Without it `A..` ends with the newest build
            of A's channel, and `..B` begins with the first.

    Raises:
        UnknownBuild, AmbiguousBuild: a name is unknown, or no one build's.
    """
    first, dots, last = text.partition("..")
    if not dots:
        name = re.sub(r"\^!$", "", text)
        if name in CHANNELS:
            return ledger.ordered(name)
        return [head() if head and name in ("", "HEAD") else ledger.resolve(name)]
    start, end = _end(ledger, first, head), _end(ledger, last, head)
    channel = (end or start or End("", None, 0)).channel
    after = start.date_milliseconds if start else -1
    until = end.date_milliseconds if end else None
    if end and end.build is None:
        until = end.date_milliseconds + _DAY_MILLISECONDS - 1
    return [
        build
        for build in ledger.ordered(channel)
        if after < (date := ledger.date_milliseconds(build.id))
        and (until is None or date <= until)
        and not (start and start.build == build)
    ]


def missing_days(builds: list[Build]) -> list[int]:
    """Midnights UTC, milliseconds since 1970, of the days without a nightly between the first and the last."""
    days = {build.date_milliseconds for build in builds if build.channel == "nightly"}
    known = sorted(day for day in days if day is not None)
    if not known:
        return []
    return [day for day in range(known[0], known[-1], _DAY_MILLISECONDS) if day not in days]


def _end(ledger: Ledger, name: str, head: Callable[[], Build] | None) -> End | None:
    if head and name in ("", "HEAD"):
        build = ledger.add(head())
        return End(name, build, ledger.date_milliseconds(build.id))
    return find_end(ledger, name) if name else None
