import re
from datetime import date, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from accel_micro.builds.identity import from_id, identify, public_version

VARIANTS = st.sampled_from(["", "+cpu", "+cu126", "+cu130", "+rocm6.4", "+xpu", "+cpu.cxx11.abi"])
NUMBERS = st.tuples(st.integers(0, 9), st.integers(0, 99), st.integers(0, 9))
FINALS = NUMBERS.map(lambda n: "{}.{}.{}".format(*n))
CANDIDATES = st.builds(lambda v, n: f"{v}rc{n}", FINALS, st.integers(0, 29))
POSTS = st.builds(lambda v, n: f"{v}.post{n}", FINALS, st.integers(0, 9))
DAYS = st.dates(date(2017, 1, 1), date(2099, 12, 31))
NIGHTLIES = st.builds(lambda v, d: f"{v}.dev{d:%Y%m%d}", FINALS, DAYS)
GIT = st.text("0123456789abcdef", min_size=40, max_size=40)
PUBLISHED = st.one_of(FINALS, CANDIDATES, POSTS, NIGHTLIES)


@given(PUBLISHED, VARIANTS, VARIANTS, GIT)
def test_machines_agree_whatever_their_variant(version: str, here: str, there: str, git: str) -> None:
    assert identify(version + here, git).id == identify(version + there).id
    assert identify(version + here).version == version


@given(PUBLISHED, PUBLISHED)
def test_different_versions_have_different_ids(one: str, other: str) -> None:
    assume(one != other)
    assert identify(one).id != identify(other).id


@given(st.one_of(PUBLISHED, GIT.map(lambda g: f"2.14.0a0+git{g[:7]}"), st.text()))
def test_an_id_is_forty_hex_digits(version: str) -> None:
    assert re.fullmatch("[0-9a-f]{40}", identify(version).id)


@given(FINALS, DAYS)
def test_the_id_of_a_nightly_starts_with_its_date(version: str, day: date) -> None:
    build = identify(f"{version}.dev{day:%Y%m%d}+cu130")
    assert build.channel == "nightly"
    assert build.id.startswith(f"{day:%Y%m%d}")
    assert build.date_milliseconds == (day - date(1970, 1, 1)) // timedelta(milliseconds=1)
    assert from_id(build.id).date_milliseconds == build.date_milliseconds


@given(st.one_of(FINALS, CANDIDATES, POSTS))
def test_the_id_of_a_release_can_be_read_and_is_no_date(version: str) -> None:
    build = identify(version)
    assert build.channel == "release"
    assert build.id.startswith(re.split(r"rc|\.post", version)[0].replace(".", "a"))
    assert not build.id[:8].isdecimal()
    assert from_id(build.id) == build


@given(st.lists(st.one_of(FINALS, CANDIDATES), unique=True, min_size=2))
def test_eight_digits_tell_releases_apart(versions: list[str]) -> None:
    # asv names result files by eight digits.
    versions = [v for v in versions if len(v.split("rc")[0]) <= 6]
    assert len({identify(v).id[:8] for v in versions}) == len(versions)


@pytest.mark.parametrize(
    "version",
    [
        "2.14.0a0+git1234567",
        "2.6.0a0+ecf3bae40a.nv25.01",
        "2.13.0+git1234567",
        "2.13.0+mine",
        "2.13.0.dev5",
        "?",
    ],
)
def test_what_nobody_published_is_local_and_named_by_its_commit(version: str) -> None:
    git = "cf30153c4c131c8164ee7798e5022d810682e2cb"
    assert identify(version, git) == from_id_like(version, git)
    assert identify(version).channel == "local"
    assert identify(version).id != identify(version + "x").id


def from_id_like(version: str, git: str) -> object:
    build = identify(version, git)
    assert (build.channel, build.id, build.git_version) == ("local", git, git)
    return build


def test_a_git_version_that_is_no_hash_is_not_believed() -> None:
    assert identify("2.14.0a0", "Unknown").git_version is None


def test_a_local_build_of_which_only_the_id_is_left() -> None:
    build = from_id("cf30153c4c131c8164ee7798e5022d810682e2cb")
    assert (build.channel, build.version, build.date_milliseconds) == ("local", "cf30153c4c13", None)


def test_release_dates_are_used() -> None:
    assert identify("2.6.0+cu126").date_milliseconds == 1738108800000
    assert identify("2.6.0rc1").date_milliseconds is None


def test_public_version() -> None:
    assert public_version("2.13.0+cu130") == "2.13.0"
    assert public_version("no version") == "no version"
