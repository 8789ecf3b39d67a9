"""Ratios, days and names of files in words. Those of verdicts are `report.comparison_words`."""

import hashlib
import math
import re
from datetime import datetime, timezone

from accel_micro.builds import Build
from accel_micro.measure.records import Case
from accel_micro.report import units
from accel_micro.report.site.gather import Place


def change(ratio: float) -> str:
    """A ratio of times as a change: percent up to a factor of two.

    >>> change(1.234), change(0.95), change(1.001), change(2.5), change(0.25), change(math.inf)
    ('+23.4 %', '−5.0 %', '+0.1 %', '×2.5', '÷4.0', '∞')
    """
    if math.isnan(ratio):
        return "unknown"
    if ratio <= 0 or math.isinf(ratio):
        return "∞" if ratio > 0 else "−∞"
    if ratio >= 2:
        return f"×{units.factor(ratio)[:-1]}"
    if ratio <= 0.5:
        return f"÷{units.factor(1 / ratio)[:-1]}"
    return f"{100 * (ratio - 1):+.1f} %".replace("-", "−")


def day(build: Build) -> str:
    """ISO day of a build, UTC, empty when unknown."""
    if build.date_milliseconds is None:
        return ""
    return datetime.fromtimestamp(build.date_milliseconds / 1000, timezone.utc).date().isoformat()


def moment(started: str) -> str:
    """An ISO moment to the minute.

    >>> moment("2026-11-05T10:15:30.123+00:00")
    '2026-11-05 10:15 UTC'
    """
    short = started[:16].replace("T", " ")
    return f"{short} UTC" if started.endswith(("+00:00", "Z")) else short


def file_name(place: Place, case: Case) -> str:
    """Of a case's page: legible, and the same at every publishing.

    >>> file_name(Place("m", "e"), Case("matmul.mm", "forward", "cpu", "float32", "n=1"))
    'matmul.mm-forward-cpu-float32-0ced22d3cb.html'
    """
    identity = "\0".join(
        (place.machine, place.environment, case.op, case.direction, case.device, case.dtype, case.shape)
    )
    digest = hashlib.sha1(identity.encode(), usedforsecurity=False).hexdigest()[:10]
    words = (case.op, case.direction, case.device, case.dtype)
    legible = re.sub(r"[^A-Za-z0-9._-]", "_", "-".join(words)).strip(".")[:60]
    return f"{legible}-{digest}.html"
