"""Wheels: the files that install a build, and which of them suits an interpreter, a platform and a variant.

A build is asv's commit and has one id everywhere; it comes as many wheels, one for each Python, platform and
variant. A wheel is known by its file name. The same name with other bytes is another file: see `changed`.
"""

import re
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from packaging import tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

DEFAULT_VARIANT: Final = "default"
"""Variant of a wheel whose name and index tell none: whatever its maker takes for the usual one."""

PROJECT: Final = "torch"

_FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+!-]{0,250}\.whl")
_VARIANT: Final = re.compile(r"(cpu|cu\d+|rocm[\d.]+|xpu)\b")
_PYTHON: Final = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?(t?)")


class NotAWheel(ValueError):
    """A file name that no wheel of torch may have; the message says why."""


class ChangedFile(ValueError):
    """A known file name with other bytes than those known; the message says what differs."""


@dataclass(frozen=True)
class Place:
    """Where a wheel was seen.

    Attributes:
        url: of the file, `https://`, `http://` or `file://`; never with a password.
        index: the page or folder that listed it.
        listed: whether it was there when that page was last read. The file often outlives its link.
    """

    url: str
    index: str
    listed: bool = True

    @property
    def key(self) -> tuple[str, str]:
        """What tells places apart: several pages may list one URL."""
        return self.url, self.index


@dataclass(frozen=True)
class Wheel:
    """One file that installs a build.

    Attributes:
        build_id: of the `Build`.
        version: as its name says it, `2.14.0.dev20261105+cu130`. Where that has no variant, the installed torch
            may still say one.
        file_name: its identity.
        variant: cpu, cu130, rocm6.4, xpu …, or `DEFAULT_VARIANT`.
        places: where it was seen, the latest first.
        size_bytes, sha256, metadata_sha256, git_version: of the file, its METADATA and its `torch/version.py`,
            once known. A nightly's git_version is a commit of the nightly branch.
        uploaded_milliseconds: as the index says.
        first_seen_milliseconds: when it was first seen, 0 when nobody noted it.
        changed_milliseconds: when `places` or `broken` last changed; of two records the later one is right.
        broken: why it cannot be installed, or None.
        replaced: how often another file of this name was knowingly accepted.
    """

    build_id: str
    version: str
    file_name: str
    variant: str = DEFAULT_VARIANT
    places: tuple[Place, ...] = ()
    size_bytes: int | None = None
    sha256: str | None = None
    metadata_sha256: str | None = None
    git_version: str | None = None
    uploaded_milliseconds: int | None = None
    first_seen_milliseconds: int = 0
    changed_milliseconds: int = 0
    broken: str | None = None
    replaced: int = 0

    @property
    def listed(self) -> bool:
        """Whether an index still lists it."""
        return any(place.listed for place in self.places)

    @property
    def urls(self) -> list[str]:
        """Where to get it, in the order to try: files that are here, then what is listed, then what once was."""
        local = [place.url for place in self.places if (path := local_path(place.url)) and path.is_file()]
        remote = [place for place in self.places if local_path(place.url) is None]
        listed = [place.url for place in remote if place.listed]
        hidden = [place.url for place in remote if not place.listed]
        return list(dict.fromkeys([*local, *listed, *hidden]))


@dataclass(frozen=True)
class Target:
    """What a wheel must suit.

    Attributes:
        python: `3.11`, or `3.13t` for a free-threaded one.
        tags: compatibility tags such as `cp311-cp311-manylinux_2_28_x86_64`, the best first.
        variants: acceptable variants, the best first. A wheel of `DEFAULT_VARIANT` is taken after all of them.
    """

    python: str
    tags: tuple[str, ...]
    variants: tuple[str, ...]

    @classmethod
    def here(cls, variants: Iterable[str] = ("cpu",), python: str | None = None) -> "Target":
        """This platform, with a Python of the version given, by default the running one.

        Raises:
            ValueError: `python` is no version such as `3.11` or `3.13t`.
        """
        python = python or running_python()
        match = _PYTHON.fullmatch(python)
        if match is None:
            raise ValueError(f"{python!r} is no Python version such as 3.11 or 3.13t")
        version, threaded = (int(match[1]), int(match[2])), match[3]
        name, platforms = f"cp{match[1]}{match[2]}", list(tags.platform_tags())
        found = [*tags.cpython_tags(version, [name + threaded], platforms)]
        found += tags.compatible_tags(version, name, platforms)
        return cls(f"{match[1]}.{match[2]}{threaded}", tuple(map(str, found)), tuple(variants))

    @cached_property
    def _ranks(self) -> dict[str, int]:
        ranks: dict[str, int] = {}
        for rank, tag in enumerate(self.tags):
            ranks.setdefault(tag, rank)
        return ranks

    def rank(self, file_name: str) -> int | None:
        """Position of the best tag of a wheel among ours, 0 being best, or None when it suits none."""
        found = (self._ranks.get(tag) for tag in _tags_of(file_name))
        return min((rank for rank in found if rank is not None), default=None)

    def suits(self, wheel: Wheel) -> bool:
        """Whether interpreter, platform and variant can take the wheel."""
        return wheel.variant in (*self.variants, DEFAULT_VARIANT) and self.rank(wheel.file_name) is not None


def choose_wheel(wheels: Iterable[Wheel], target: Target) -> Wheel | None:
    """The wheel to install, or None when none suits.

    A broken one is returned only where no other suits, so that its reason can be told. Then the variant
    decides, then the tags, then the wheel's own build number.
    """
    candidates = {wheel.file_name: wheel for wheel in wheels}
    order = {variant: rank for rank, variant in enumerate((*target.variants, DEFAULT_VARIANT))}
    suiting = [
        (wheel.broken is not None, order[wheel.variant], rank, _later_first(wheel.file_name), wheel.file_name)
        for wheel in candidates.values()
        if wheel.variant in order and (rank := target.rank(wheel.file_name)) is not None
    ]
    return candidates[min(suiting)[-1]] if suiting else None


@lru_cache(maxsize=1 << 14)
def named(file_name: str) -> tuple[str, str, bool]:
    """(version, variant, made for macOS) of a wheel of torch, told by its name alone.

    Raises:
        NotAWheel: it is no name of a wheel of torch, or one that could lead out of a folder.
    """
    if not _FILE_NAME.fullmatch(file_name) or ".." in file_name:
        raise NotAWheel(f"{file_name[:200]!r} is no plain name of a wheel")
    try:
        project, version, _, found = parse_wheel_filename(file_name)
    except (InvalidWheelFilename, ValueError) as error:
        raise NotAWheel(str(error)) from None
    if project != PROJECT:
        raise NotAWheel(f"{file_name!r} is a wheel of {project}, not of {PROJECT}")
    macos = all(tag.platform.startswith("macosx") for tag in found)
    match = _VARIANT.match(version.local or "")
    return str(version), match[1] if match else DEFAULT_VARIANT, macos


def changed(known: Wheel, seen: Wheel) -> str | None:
    """What tells that two records of one name are of different files, or None."""
    for name in ("sha256", "size_bytes", "metadata_sha256", "git_version"):
        before, now = getattr(known, name), getattr(seen, name)
        if before is not None and now is not None and before != now:
            return f"its {name} was {before} and is now {now}"
    return None


def merged(one: Wheel, other: Wheel) -> Wheel:
    """What two records of one name tell together, whichever comes first.

    Of different files (see `changed`) the one accepted last counts, else the one seen first.
    """
    if one.replaced != other.replaced:
        return max(one, other, key=lambda wheel: wheel.replaced)
    if changed(one, other):
        return min(one, other, key=lambda w: (w.first_seen_milliseconds, w.sha256 or "~", repr(w)))
    older, newer = sorted((one, other), key=lambda wheel: (wheel.changed_milliseconds, repr(wheel)))
    known = {f.name: value for f in fields(Wheel) if (value := getattr(older, f.name)) is not None}
    known |= {f.name: value for f in fields(Wheel) if (value := getattr(newer, f.name)) is not None}
    places = {place.key for place in newer.places}
    known["places"] = newer.places + tuple(place for place in older.places if place.key not in places)
    known["broken"] = newer.broken
    seen = [w.first_seen_milliseconds for w in (one, other) if w.first_seen_milliseconds]
    known["first_seen_milliseconds"] = min(seen, default=0)
    if newer.variant == DEFAULT_VARIANT:
        known["variant"] = older.variant
    return replace(newer, **known)


def completed(known: Wheel | None, seen: Wheel, now_milliseconds: int) -> Wheel:
    """What is known of a wheel after it was seen again at a time; `known` itself when that told nothing.

    Raises:
        ChangedFile: it is another file than the known one.
    """
    if known is None:
        return replace(
            seen,
            first_seen_milliseconds=seen.first_seen_milliseconds or now_milliseconds,
            changed_milliseconds=seen.changed_milliseconds or now_milliseconds,
        )
    difference = changed(known, seen)
    if difference:
        raise ChangedFile(f"{seen.file_name} is not the file it was: {difference}")
    now = {place.key: place for place in seen.places}
    places = tuple(now.pop(place.key, place) for place in known.places)
    places = (*now.values(), *places)
    facts = {
        name: getattr(known, name) or getattr(seen, name)
        for name in ("size_bytes", "sha256", "metadata_sha256", "git_version", "uploaded_milliseconds")
    }
    later = max(now_milliseconds, known.changed_milliseconds + 1)
    return replace(
        known,
        **facts,
        places=places,
        variant=seen.variant if known.variant == DEFAULT_VARIANT else known.variant,
        changed_milliseconds=known.changed_milliseconds if places == known.places else later,
    )


def local_path(url: str) -> Path | None:
    """The path of a `file://` URL, None of any other."""
    parts = urlsplit(url)
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


def running_python() -> str:
    """Version of the running interpreter, `3.11` or `3.13t`."""
    threaded = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return sysconfig.get_python_version() + threaded


def _tags_of(file_name: str) -> Iterator[str]:
    pythons, abis, platforms = file_name.removesuffix(".whl").lower().split("-")[-3:]
    for python in pythons.split("."):
        for abi in abis.split("."):
            for platform in platforms.split("."):
                yield f"{python}-{abi}-{platform}"


def _later_first(file_name: str) -> int:
    parts = file_name.split("-")
    number = re.match(r"\d+", parts[2]) if len(parts) == 6 else None
    return -int(number[0]) if number else 0
