"""Bring what the indexes list into the ledger. Nothing is forgotten, and nothing known is silently replaced."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlsplit

from accel_micro.builds.commits import Nightlies
from accel_micro.builds.contents import BrokenWheel, Contents, read_contents
from accel_micro.builds.identity import Build, identify
from accel_micro.builds.index import Link, Listing, read_all
from accel_micro.builds.ledger import Ledger
from accel_micro.builds.lines import Record
from accel_micro.builds.web import Absent, Unreachable, Web
from accel_micro.builds.wheels import (
    DEFAULT_VARIANT,
    ChangedFile,
    Place,
    Target,
    Wheel,
    choose_wheel,
    completed,
)

_AT_ONCE: Final = 8
_INCOMPLETE: Final = "incomplete: "


@dataclass
class Synced:
    """What a sync found.

    Attributes:
        listings: the pages, read or not.
        builds, wheels: that are new to the ledger; wheels are noted for this platform, Python and variant alone.
        gone: known wheels that their page no longer lists. They are kept, and often still there.
        changed: sentences on files that are not those known by their names. They are not taken.
        problems: sentences on what was skipped.
        commits: how many wheels were asked for their PyTorch commit.
        instead: a sentence on the index that was read where others could not be, else "".
    """

    listings: list[Listing]
    builds: list[Build] = field(default_factory=list)
    wheels: list[Wheel] = field(default_factory=list)
    gone: list[Wheel] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    commits: int = 0
    instead: str = ""

    @property
    def read(self) -> list[Listing]:
        """The pages that could be read."""
        return [listing for listing in self.listings if listing.failure is None]

    @property
    def failures(self) -> list[str]:
        """Why pages could not be read. A variant that a server does not offer is none, unless it is all."""
        failed = [listing for listing in self.listings if listing.failure is not None]
        if self.read:
            failed = [listing for listing in failed if not listing.absent]
        return list(dict.fromkeys(str(listing.failure) for listing in failed))

    @property
    def notes(self) -> list[str]:
        """Sentences for who asked for builds: what was not taken, could not be read, or was read instead."""
        return [*self.changed, *self.failures, *filter(None, [self.instead])]


def sync(
    ledger: Ledger,
    indexes: Iterable[str],
    targets: Sequence[Target],
    web: Web,
    *,
    otherwise: str | None = None,
    commits: bool = True,
    nightlies: Nightlies | None = None,
    accept: Iterable[str] = (),
    dry_run: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Synced:
    """Read indexes and note what they list.

    Args:
        targets: Pythons whose wheels are noted; their variants are looked for.
        otherwise: an index that is read too where one of the others is out of reach, or where `DEFAULT_VARIANT` is
            looked for, which PyTorch's own index does not have.
        commits: whether wheels are asked for their PyTorch commit, one a build of which it is not known.
        nightlies: what a clone of PyTorch knows of them.
        accept: names of files that are taken although they are not those known by their names.
        dry_run: nothing is written, and no wheel is asked.
        progress: told how many wheels of how many have been asked.

    Raises:
        BadIndex: an address is no index.
        OSError: the ledger cannot be written.
    """
    variants = dict.fromkeys(variant for target in targets for variant in target.variants)
    found = Synced(read_all(indexes, variants, web))
    if otherwise is not None and (DEFAULT_VARIANT in variants or found.failures):
        added = read_all([otherwise], variants, web)
        found.listings += added
        if not any(listing.failure for listing in added):
            found.instead = f"releases are read from {added[0].index}"
    builds, wheels = _noted(found, ledger, targets)
    if not dry_run:
        _ask_local(ledger, builds, wheels, web, found)
    accepted = _part_changed(ledger, wheels, frozenset(accept), found)
    gone = _gone(ledger, found)
    found.builds = [build for build in builds.values() if build.id not in ledger]
    found.wheels = [wheel for wheel in wheels.values() if ledger.wheel(wheel.file_name) is None]
    found.gone = [wheel for wheel in gone if not wheel.listed]
    if dry_run:
        return found
    records: list[Record] = [*builds.values(), *wheels.values(), *gone]
    ledger.remember_all(filter(ledger.is_news, records))
    for wheel in accepted:
        ledger.accept(wheel)
    if commits:
        _ask_commits(ledger, targets, web, found, progress)
    if nightlies is not None:
        ledger.remember_all([nightlies.complete(build) for build in ledger.ordered("nightly")])
    return found


def _noted(
    found: Synced, ledger: Ledger, targets: Sequence[Target]
) -> tuple[dict[str, Build], dict[str, Wheel]]:
    """Builds by id and wheels by file name, as the pages tell them."""
    builds: dict[str, Build] = {}
    wheels: dict[str, Wheel] = {}
    for listing in found.read:
        found.problems += [f"{listing.index}: {problem}" for problem in listing.problems]
        for link in listing.links:
            build = _build(link)
            wheel = _wheel(link, build, listing.index)
            suits = any(target.suits(wheel) for target in targets)
            if build.channel == "local":
                known = ledger.wheel(link.file_name)
                if known is not None and known.build_id in ledger:  # its commit was asked for before
                    build, wheel = ledger[known.build_id], replace(wheel, build_id=known.build_id)
                elif not suits:
                    continue
            before = builds.setdefault(build.id, build)
            if _earlier(build, before):
                builds[build.id] = build
            if suits:
                _add(wheel, wheels, found)
    return builds, wheels


def _build(link: Link) -> Build:
    build = identify(link.version)
    if build.date_milliseconds is None:
        build = replace(build, date_milliseconds=link.uploaded_milliseconds)
    return build


def _wheel(link: Link, build: Build, index: str) -> Wheel:
    return Wheel(
        build_id=build.id,
        version=link.version,
        file_name=link.file_name,
        variant=link.variant,
        places=(Place(link.url, index),),
        size_bytes=link.size_bytes,
        sha256=link.sha256,
        metadata_sha256=link.metadata_sha256,
        uploaded_milliseconds=link.uploaded_milliseconds,
    )


def _earlier(build: Build, other: Build) -> bool:
    if build.date_milliseconds is None:
        return False
    return other.date_milliseconds is None or build.date_milliseconds < other.date_milliseconds


def _add(wheel: Wheel, wheels: dict[str, Wheel], found: Synced) -> None:
    known = wheels.get(wheel.file_name)
    if known is None:
        wheels[wheel.file_name] = wheel
        return
    try:
        wheels[wheel.file_name] = completed(known, wheel, known.changed_milliseconds)
    except ChangedFile as error:
        here, there = known.places[0].index, wheel.places[0].index
        found.changed.append(
            f"{error}: the first is that of {here}, the second of {there}, which is left out"
        )


def _ask_local(
    ledger: Ledger, builds: dict[str, Build], wheels: dict[str, Wheel], web: Web, found: Synced
) -> None:
    """A build from source is named by its commit, which only the wheel knows."""
    for wheel in [wheel for wheel in wheels.values() if ledger.wheel(wheel.file_name) is None]:
        build = builds.get(wheel.build_id)
        if build is None or build.channel != "local":
            continue
        try:
            contents = read_contents(wheel.places[0].url, web)
        except (BrokenWheel, Unreachable) as error:
            found.problems.append(f"{error}; it is named by its version alone")
            continue
        del builds[build.id]
        build = replace(
            identify(contents.version, contents.git_version), date_milliseconds=build.date_milliseconds
        )
        builds[build.id] = build
        wheels[wheel.file_name] = replace(
            wheel, build_id=build.id, version=contents.version, git_version=contents.git_version
        )


def _part_changed(
    ledger: Ledger, wheels: dict[str, Wheel], accept: frozenset[str], found: Synced
) -> list[Wheel]:
    """Take out the wheels that are not those known; returned are those to accept all the same."""
    accepted = []
    for wheel in list(wheels.values()):
        difference = ledger.conflict(wheel)
        if difference is None:
            continue
        del wheels[wheel.file_name]
        if wheel.file_name in accept:
            accepted.append(wheel)
        else:
            found.changed.append(
                f"{wheel.file_name} of {wheel.places[0].index} is not the file it was: {difference}"
            )
    return accepted


def _gone(ledger: Ledger, found: Synced) -> list[Wheel]:
    """Known wheels with the places noted that no longer list them."""
    names = {listing.index: {link.file_name for link in listing.links} for listing in found.read}
    # A page that is not there has nothing, where its server showed that it is in order.
    servers = {urlsplit(index).netloc for index in names}
    for listing in found.listings:
        if listing.absent and urlsplit(listing.index).netloc in servers:
            names[listing.index] = set()
    gone = []
    for wheel in ledger.wheels():
        places = tuple(
            replace(
                place, listed=place.listed and wheel.file_name in names.get(place.index, {wheel.file_name})
            )
            for place in wheel.places
        )
        if places != wheel.places:
            gone.append(replace(wheel, places=places))
    return gone


def _ask_commits(
    ledger: Ledger, targets: Sequence[Target], web: Web, found: Synced, progress: Callable[[int, int], None]
) -> None:
    """Ask one wheel of each build whose commit is not known. A server that cannot answer is asked once."""
    asked = []
    for build in ledger:
        if build.git_version is None:
            wheels = ledger.wheels(build.id)
            wheel = next((w for target in targets if (w := choose_wheel(wheels, target))), None)
            if wheel is None or not wheel.listed or wheel.git_version is not None or not wheel.urls:
                continue
            if wheel.broken is None or wheel.broken.startswith(_INCOMPLETE):  # it may be whole by now
                asked.append(wheel)
    failed: dict[str, str] = {}
    done = 0

    def ask(wheel: Wheel) -> Contents | BrokenWheel | None:
        nonlocal done
        url = wheel.urls[0]
        host = urlsplit(url).netloc
        try:
            return None if host in failed else read_contents(url, web)
        except BrokenWheel as error:
            return error
        except Unreachable as error:
            if not isinstance(error, Absent):
                failed[host] = str(error)
            return None
        finally:
            done += 1
            progress(done, len(asked))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(ask, asked))
    found.problems += [f"{reason}; their commits stay unknown for now" for reason in failed.values()]
    told = []
    for wheel, answer in zip(asked, answers, strict=True):
        if isinstance(answer, BrokenWheel):
            ledger.mark_broken(wheel.file_name, _INCOMPLETE + str(answer))
            found.problems.append(str(answer))
        elif answer is not None:
            seen = replace(wheel, git_version=answer.git_version, size_bytes=answer.size_bytes)
            difference = ledger.conflict(seen)
            if difference:
                found.changed.append(f"{wheel.file_name} is not the file it was: {difference}")
                continue
            if wheel.broken is not None:
                ledger.mark_broken(wheel.file_name, None)
            told.append(seen)
    found.commits = len(told)
    ledger.remember_all(told)
