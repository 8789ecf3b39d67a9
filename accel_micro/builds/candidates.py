"""Which builds a bisection searches: one channel, one variant of the wheel, one of several builds of a commit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from accel_micro.builds.commits import same_commit
from accel_micro.builds.identity import Build
from accel_micro.builds.ledger import Ledger, UnknownBuild
from accel_micro.builds.ranges import find_end
from accel_micro.builds.wheels import DEFAULT_VARIANT, Target, Wheel, choose_wheel

DAYS_BACK: Final = (2, 7, 14, 28, 56, 112, 224, 448)
"""How far a good build is looked for when none is named: 2, 7 and 14 days as cargo-bisect-rustc does, then doubled."""

_DAY_MILLISECONDS: Final = 24 * 60 * 60 * 1000


class NoRange(LookupError):
    """The ends make no range that could be searched; the message says why."""


@dataclass(frozen=True)
class Candidates:
    """What is searched.

    Attributes:
        builds: from old to new, each with a wheel of the same variant.
        variant: of all their wheels.
        left_out: id of a build of the range → why it is not run.
    """

    builds: tuple[Build, ...]
    variant: str
    left_out: dict[str, str]


def find_candidates(ledger: Ledger, good: str | None, bad: str, target: Target) -> Candidates:
    """The builds from `good` to `bad`, both included, that can be run and are worth it.

    A build without a wheel for this Python, platform and variant is left out, and so is one whose wheel is known to
    be broken. Of neighbours that are made from one commit the first is kept, and at the end the one that was named.

    Args:
        good: None for the first build of the channel.
        target: its variants are tried in order: the first that both ends have is that of all.

    Raises:
        UnknownBuild, AmbiguousBuild: a name is no build's.
        NoRange: they are of two channels, in the wrong order, an end cannot be run, or all are one commit.
    """
    last = _build(ledger, bad)
    of_channel = ledger.ordered(last.channel)
    first = of_channel[0] if good is None else _build(ledger, good)
    if first.channel != last.channel:
        raise NoRange(f"{first.version} is a {first.channel} and {last.version} a {last.channel} build")
    if first == last:
        raise NoRange(f"both ends are torch {first.version}")
    ids = [build.id for build in of_channel]
    if ids.index(first.id) > ids.index(last.id):
        raise NoRange(f"the good build {first.version} is newer than the bad one {last.version}")
    inside = of_channel[ids.index(first.id) : ids.index(last.id) + 1]
    if good is None:
        inside = inside[next(i for i, b in enumerate(inside) if ledger.wheels(b.id) or b == last) :]
    variant, wheels = _of_one_variant(ledger, inside, target)
    left_out = {build.id: why for build in inside if (why := _why_not(build, wheels))}
    kept = [build for build in inside if build.id not in left_out]
    for end in (first, last) if good is not None else (last,):
        if end.id in left_out:
            raise NoRange(f"torch {end.version} cannot be an end: {left_out[end.id]}")
    alike: list[list[Build]] = []
    for build in kept:
        if alike and same_commit(alike[-1][-1], build):
            alike[-1].append(build)
        else:
            alike.append([build])
    if len(alike) == 1 and len(kept) > 1:
        raise NoRange(f"torch {kept[0].version} to {last.version} are all made from one commit")
    for group in alike:
        one = last if group[-1] == last else group[0]
        why = f"made from the same commit as torch {one.version}"
        left_out |= {build.id: why for build in group if build != one}
    return Candidates(tuple(build for build in kept if build.id not in left_out), variant, left_out)


def starts(builds: Sequence[Build], ledger: Ledger) -> tuple[str, ...]:
    """Ids of the builds from which a search begins, one after the other, until an end turns out to be good.

    Each is the last build that is at least so many days older than the last one; the oldest closes the list.
    """
    end = ledger.date_milliseconds(builds[-1].id)
    found: dict[str, None] = {}
    for days in DAYS_BACK:
        limit = end - days * _DAY_MILLISECONDS
        older = [build for build in builds[:-1] if ledger.date_milliseconds(build.id) <= limit]
        if older:
            found[older[-1].id] = None
    if len(builds) > 1:
        found[builds[0].id] = None
    return tuple(found)


def _build(ledger: Ledger, name: str) -> Build:
    end = find_end(ledger, name)
    if end.build is None:
        days = ledger.ordered("nightly")
        near = sorted(days, key=lambda b: abs(ledger.date_milliseconds(b.id) - end.date_milliseconds))[:2]
        listed = " and ".join(b.version for b in sorted(near, key=lambda b: b.id))
        raise UnknownBuild(f"no nightly is known of {name}; the nearest are {listed}")
    return end.build


def _of_one_variant(
    ledger: Ledger, inside: Sequence[Build], target: Target
) -> tuple[str, dict[str, Wheel | None]]:
    found: tuple[str, dict[str, Wheel | None]] = ("", {})
    for variant in (*target.variants, DEFAULT_VARIANT):
        wheels = {
            build.id: choose_wheel((w for w in ledger.wheels(build.id) if w.variant == variant), target)
            for build in inside
        }
        if wheels[inside[0].id] and wheels[inside[-1].id]:
            return variant, wheels
        if not found[1] or sum(map(bool, wheels.values())) > sum(map(bool, found[1].values())):
            found = variant, wheels
    return found


def _why_not(build: Build, wheels: dict[str, Wheel | None]) -> str | None:
    wheel = wheels.get(build.id)
    if wheel is None:
        return "no wheel for this Python, platform and variant"
    return f"broken: {wheel.broken}" if wheel.broken else None
