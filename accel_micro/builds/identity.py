"""What a torch build is called: a channel, a version, and an id that every machine computes alike.

asv takes a build for a commit, so its id is forty hex digits, and asv shows and names files by the first
eight. Those are made legible: a nightly's are its date, a release's are its version with `a` for the dot.

>>> identify("2.14.0.dev20261105+cpu").id[:8]
'20261105'
>>> identify("2.13.0+cu130").id[:8]
'2a13a0f4'
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from typing import Final

from packaging.version import InvalidVersion, Version

from accel_micro.builds.release_dates import RELEASE_DATES

CHANNELS: Final = ("release", "nightly", "local")
"""Where builds come from: published releases, nightly wheels, and builds from source."""

ID_LENGTH: Final = 40

# The part after `+` that a published wheel may carry; anything else was built by someone for themselves.
_VARIANT: Final = re.compile(r"(cpu|cu\d+|rocm[\d.]+|xpu)(\.cxx11\.abi)?")
_GIT_HASH: Final = re.compile(r"[0-9a-f]{40}")
# Tens of a release candidate's number. Two letters more than 'c' keep rc1 and rc10 apart in eight digits.
_CANDIDATE_TENS: Final = "cde"
_RELEASE_ID: Final = re.compile(r"(\d+(?:a\d+)*)(?:([cde])(\d)|b(\d+))?f")


@dataclass(frozen=True)
class Build:
    """One torch build.

    Attributes:
        id: forty hex digits. A release's and a nightly's depend on channel and version alone; a local build's
            is its own commit, so rebuilding the same commit with other changes is the same build.
        channel: one of `CHANNELS`.
        version: the public version, without a variant such as `+cu130`; a local build's is kept whole.
        date_milliseconds: when it appeared, in milliseconds since 1970, or None when nothing tells.
        git_version: the PyTorch commit it was made from, when known. A nightly says a commit of the nightly
            branch, which holds that day's main in one piece.
        main_commit: the commit of main that a nightly was made from, when known.
    """

    id: str
    channel: str
    version: str
    date_milliseconds: int | None = None
    git_version: str | None = None
    main_commit: str | None = None

    def __str__(self) -> str:
        return self.version


@lru_cache(maxsize=4096)
def identify(version: str, git_version: str | None = None) -> Build:
    """The build that calls itself `version` (`torch.__version__`) and was made from `git_version`."""
    git_version = git_version if git_version and _GIT_HASH.fullmatch(git_version) else None
    try:
        parsed = Version(version)
    except InvalidVersion:
        return _local(version, git_version)
    if parsed.local is not None and not _VARIANT.fullmatch(parsed.local):
        return _local(version, git_version)
    if parsed.dev is not None:
        date = day_milliseconds(str(parsed.dev))
        if date is None:
            return _local(version, git_version)
        return Build(_id(str(parsed.dev), "nightly", parsed), "nightly", parsed.public, date, git_version)
    if parsed.pre is not None and parsed.pre[0] != "rc":
        return _local(version, git_version)
    date = day_milliseconds(RELEASE_DATES.get(parsed.public, "").replace("-", ""))
    return Build(_id(_legible(parsed), "release", parsed), "release", parsed.public, date, git_version)


def from_id(build_id: str) -> Build:
    """What an id alone tells: date of a nightly, version of a release. Any other id is a local build."""
    date = day_milliseconds(build_id[:8])
    if date is not None:
        return Build(build_id, "nightly", f"nightly {build_id[:8]}", date)
    match = _RELEASE_ID.match(build_id)
    if match is not None:
        numbers, tens, ones, post = match.groups()
        version = numbers.replace("a", ".")
        if tens is not None:
            version += f"rc{_CANDIDATE_TENS.index(tens) * 10 + int(ones)}"
        if post is not None:
            version += f".post{post}"
        release = identify(version)
        if release.id == build_id:
            return release
    return Build(build_id, "local", build_id[:12], None, build_id)


def public_version(text: str) -> str:
    """A version without its variant: `2.13.0+cu130` is `2.13.0`. Other text is returned as it is."""
    try:
        return Version(text).public
    except InvalidVersion:
        return text


def _local(version: str, git_version: str | None) -> Build:
    build_id = git_version or hashlib.sha1(f"local {version}".encode(), usedforsecurity=False).hexdigest()
    return Build(build_id, "local", version, None, git_version)


def _id(prefix: str, channel: str, version: Version) -> str:
    fill = hashlib.sha1(f"{channel} {version.public}".encode(), usedforsecurity=False).hexdigest()
    return (prefix + fill)[:ID_LENGTH]


def _legible(version: Version) -> str:
    # Always holds a letter within eight digits, so it cannot be taken for a date.
    text = "a".join(str(number) for number in version.release)
    if version.pre is not None:
        number = version.pre[1]
        text += f"{_CANDIDATE_TENS[min(number // 10, 2)]}{number % 10}"
    if version.post is not None:
        text += f"b{version.post}"
    return text + "f"


def day_milliseconds(digits: str) -> int | None:
    """Midnight UTC of a day such as `20261105`, or None when the digits are no day that torch existed on."""
    if not re.fullmatch(r"20[1-9]\d{5}", digits):
        return None
    try:
        day = datetime.strptime(digits, "%Y%m%d").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    return int(day.timestamp() * 1000)
