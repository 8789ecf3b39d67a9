"""The page of builds, where asv's page looks a commit up: what each build is, where it was measured, what failed.

What it shows comes from ledgers, wheels and results that others made, so all of it is escaped, and an address is a
link only where it leads to a web server.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from accel_micro.builds import Build, Ledger, Wheel
from accel_micro.builds.commits import commit_url, compare_url, same_commit
from accel_micro.builds.disk import human_bytes
from accel_micro.report.site.gather import Gathered
from accel_micro.report.site.text import day
from accel_micro.results import installs

MOST_FAILURES: Final = 50


@dataclass
class Found:
    """What results say about one build.

    Attributes:
        measured: machine → cases with a time.
        failed: (machine, what, why) of cases without one, and of installations.
        without: machine → dependencies that were to be had nowhere when it was installed there.
    """

    measured: dict[str, int] = field(default_factory=dict)
    failed: list[tuple[str, str, str]] = field(default_factory=list)
    without: dict[str, str] = field(default_factory=dict)


def rows(ledger: Ledger, outcomes: Mapping[str, Found]) -> list[dict[str, Any]]:
    """What the page shows of each build, newest first."""
    before: dict[str, Build] = {}
    found = []
    for build in ledger:
        found.append(_row(ledger, build, before.get(build.channel), outcomes.get(build.id, Found())))
        before[build.channel] = build
    return found[::-1]


def find_outcomes(gathered: Gathered) -> dict[str, Found]:
    """Id of a build → what the results say about it."""
    found: dict[str, Found] = defaultdict(Found)
    for history in gathered.histories:
        machine = history.place.machine
        for build in {build for points in history.points.values() for build in points}:
            found[build].measured[machine] = found[build].measured.get(machine, 0) + 1
        for build, failure in history.failures.items():
            why = f"{failure.kind}: {failure.detail}".removesuffix(": ")
            found[build].failed.append((machine, str(history.case), why))
    latest = {
        (machine, line["build"], line.get("environment")): line
        for machine, line in installs.read(gathered.results)
    }
    for (machine, build, _), line in latest.items():
        if line.get("failure"):
            found[build].failed.append((machine, "installation", str(line["failure"])))
        elif isinstance(line.get("without"), list) and line["without"]:
            found[build].without[machine] = ", ".join(map(str, line["without"]))
    return dict(found)


def _row(ledger: Ledger, build: Build, before: Build | None, outcome: Found) -> dict[str, Any]:
    commit = build.main_commit or build.git_version
    return {
        "id": build.id,
        "version": build.version,
        "channel": build.channel,
        "date": day(build),
        "commit": commit,
        "commit_url": commit_url(build),
        "before": before.version if before else None,
        "compare_url": compare_url(before, build) if before else None,
        "same": before is not None and same_commit(before, build),
        "wheels": [_wheel(wheel) for wheel in ledger.wheels(build.id)],
        "measured": sorted(outcome.measured.items()),
        "failed": sorted(outcome.failed),
        "without": sorted(outcome.without.items()),
    }


def _wheel(wheel: Wheel) -> dict[str, Any]:
    return {
        "name": wheel.file_name,
        "url": next(_web(wheel.urls), None),
        "size": None if wheel.size_bytes is None else human_bytes(wheel.size_bytes),
        "sha256": wheel.sha256,
        "listed": wheel.listed,
        "broken": wheel.broken,
    }


def _web(urls: Iterable[str]) -> Iterator[str]:
    return (url for url in urls if urlsplit(url).scheme in ("http", "https"))
