from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.builds import Ledger, UnknownBuild, identify
from accel_micro.builds.ranges import missing_days, select

FIRST = date(2026, 11, 1)
DAYS = st.integers(0, 60).map(lambda n: FIRST + timedelta(n))


def nightly(day: date) -> str:
    return f"2.14.0.dev{day:%Y%m%d}"


def ledger_of(*versions: str) -> Ledger:
    ledger = Ledger(Path("nowhere.jsonl"))
    for version in versions:
        ledger.add(identify(version))
    return ledger


def versions(ledger: Ledger, text: str) -> list[str]:
    return [build.version for build in select(ledger, text)]


@given(st.sets(DAYS, min_size=1), DAYS, DAYS)
def test_days_bound_a_range_whether_they_had_a_nightly_or_not(
    days: set[date], start: date, end: date
) -> None:
    ledger = ledger_of(*map(nightly, days), "2.12.0")
    expected = [nightly(day) for day in sorted(days) if start < day <= end]
    assert versions(ledger, f"{start:%Y%m%d}..{end:%Y%m%d}") == expected
    assert versions(ledger, f"{start}..{end}") == expected


@given(st.sets(DAYS, min_size=3))
def test_ranges_that_touch_make_one_range(days: set[date]) -> None:
    ledger = ledger_of(*map(nightly, days))
    first, *_, last = names = [build.id for build in ledger]
    whole = [build for one, other in pairwise(names) for build in select(ledger, f"{one}..{other}")]
    assert whole == select(ledger, f"{first}..{last}") == ledger.ordered()[1:]
    assert select(ledger, "nightly") == select(ledger, f"..{last}") == ledger.ordered()
    assert select(ledger, f"{first}..") == ledger.ordered()[1:]
    assert select(ledger, f"{last}..{first}") == []


@given(st.sets(DAYS, min_size=1))
def test_missing_days_fill_the_gaps(days: set[date]) -> None:
    builds = ledger_of(*map(nightly, days)).ordered()
    missing = {date(1970, 1, 1) + timedelta(milliseconds=day) for day in missing_days(builds)}
    assert missing | days == {min(days) + timedelta(n) for n in range((max(days) - min(days)).days + 1)}
    assert not missing & days


def test_versions_channels_and_single_builds() -> None:
    ledger = ledger_of("2.7.0", "2.7.1", "2.8.0", nightly(FIRST))
    assert versions(ledger, "2.7.0..2.8.0") == ["2.7.1", "2.8.0"]
    assert versions(ledger, "2.7.0..release") == ["2.7.1", "2.8.0"]
    assert versions(ledger, "2.8.0..nightly") == [nightly(FIRST)]
    assert versions(ledger, "2.7.1^!") == versions(ledger, "2.7.1") == ["2.7.1"]


def test_head_stands_for_an_end_left_out() -> None:
    ledger = ledger_of("2.7.0", "2.7.1", "2.8.0", "2.9.0")
    found = [b.version for b in select(ledger, "2.7.0..", head=lambda: identify("2.8.0"))]
    assert found == ["2.7.1", "2.8.0"]
    assert [b.version for b in select(ledger, "HEAD", head=lambda: identify("2.8.0"))] == ["2.8.0"]


@pytest.mark.parametrize("text", ["1.0..2.8.0", "2.8.0..1.0", "20261331..nightly", "1.0", "20261101"])
def test_unknown_names_are_said(text: str) -> None:
    with pytest.raises(UnknownBuild, match=r"no (build is called|nightly build)"):
        select(ledger_of("2.7.0", "2.8.0"), text)
