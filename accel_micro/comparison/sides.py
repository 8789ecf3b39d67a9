"""What a comparison's two names mean: two builds, two devices, two dtypes or two machines, with results of both.

A name may be written `KIND:NAME` (`machine:cpu`) where it is several things.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from accel_micro import dtypes
from accel_micro.builds import CHANNELS, AmbiguousBuild, Build, UnknownBuild
from accel_micro.builds.ranges import find_end
from accel_micro.comparison.inventory import Inventory
from accel_micro.devices import DEVICE_KINDS

Kind = Literal["build", "device", "dtype", "machine"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

HEAD: Final = ("HEAD", "installed")
"""Names of the torch of the interpreter that runs."""

DTYPES: Final[dict[str, str]] = {
    **{name: name for name in dtypes.DTYPES},
    **{short: name for name, short in dtypes.SHORT.items()},
    "double": "float64",
    "float": "float32",
    "half": "float16",
}
"""Names of dtypes → as records have them."""


class WrongSides(LookupError):
    """The names cannot be compared, or are nobody's; the message says what there is."""


class NotMeasured(LookupError):
    """What was named has no results; the message says which have."""


@dataclass(frozen=True)
class Side:
    """One of the two things that are compared.

    Attributes:
        kind: what the two sides differ in.
        value: id of a build; name of a device, dtype or machine.
        title: for people.
    """

    kind: Kind
    value: str
    title: str


@dataclass(frozen=True)
class Scope:
    """Which trials each side has, baseline first; `None` for a device stands for each of them.

    Attributes:
        bench: regular expressions; a case is compared when one is found in its name, see `pairing.name_of`.
    """

    machines: tuple[str, str]
    builds: tuple[str, str]
    devices: tuple[str | None, str | None] = (None, None)
    dtypes: tuple[str | None, str | None] = (None, None)
    bench: tuple[str, ...] = field(default=())


def find_sides(
    baseline: str,
    contender: str,
    inventory: Inventory,
    *,
    machine: str | None = None,
    head: Callable[[], Build] | None = None,
) -> tuple[Side, Side]:
    """What the two names mean.

    Args:
        machine: whose newest build a channel's name means, else of all machines.
        head: the build that HEAD means.

    Raises:
        WrongSides: they are of different kinds, of several, the same, or unknown.
        NotMeasured: a build has no results.
        AmbiguousBuild: a name is several builds'.
        TorchNotInstalled: whatever `head` raises.
    """
    names = (baseline, contender)
    kinds = [_kinds(name, inventory) for name in names]
    for name, found in zip(names, kinds, strict=True):
        if not found:
            raise WrongSides(_unknown(name, inventory))
    shared = [kind for kind in KINDS if kind in kinds[0] and kind in kinds[1]]
    if not shared:
        what = " and ".join(f"{name!r} is a {' or '.join(k)}" for name, k in zip(names, kinds, strict=True))
        raise WrongSides(f"{what}; two of a kind can be compared")
    if len(shared) > 1:
        raise WrongSides(
            f"{baseline!r} and {contender!r} may be {_or(f'{kind}s' for kind in shared)}; "
            f"say {shared[0]}:{_bare(baseline)} {shared[0]}:{_bare(contender)}"
        )
    first, second = (_side(shared[0], _bare(name), inventory, machine, head) for name in names)
    if first.value == second.value:
        raise WrongSides(f"{baseline!r} and {contender!r} are both {first.title}")
    return first, second


def find_scope(
    sides: tuple[Side, Side],
    inventory: Inventory,
    *,
    machine: str | None = None,
    build: str | None = None,
    device: str | None = None,
    bench: Sequence[str] = (),
    head: Callable[[], Build] | None = None,
) -> Scope:
    """Where the trials of both sides are looked for.

    Without `machine` that is the only one with results of both sides. Without `build`, where builds are not
    what is compared, it is the newest that was measured there.

    Raises:
        WrongSides: an option contradicts the sides, names nothing, or is needed to choose one of several.
        NotMeasured: no machine has results of both.
    """
    kind = sides[0].kind
    for option, given in (("machine", machine), ("build", build), ("device", device)):
        if given is not None and option == kind:
            raise WrongSides(f"two {kind}s are compared, so --{option} has no meaning; leave it out")
    if device is not None and device not in DEVICE_KINDS:
        raise WrongSides(f"unknown device {device!r}; known: {', '.join(DEVICE_KINDS)}")
    if machine is not None and machine not in inventory.measured:
        raise WrongSides(
            f"no machine {machine!r} has results; those that have: {_listed(inventory.measured)}"
        )
    values = (sides[0].value, sides[1].value)
    devices = values if kind == "device" else (device, device)
    dtypes = values if kind == "dtype" else (None, None)
    chosen = _side("build", build, inventory, machine, head).value if build is not None else None
    if kind == "machine":
        common = set(inventory.measured[values[0]]) & set(inventory.measured[values[1]])
        if chosen is None and not common:
            both = "; ".join(f"{m} has {_versions(inventory, inventory.measured[m])}" for m in values)
            raise NotMeasured(f"no build was measured on both machines: {both}")
        one = chosen or inventory.newest(common)
        for place in values:
            _require(inventory, one, place)
        return Scope(values, (one, one), devices, dtypes, tuple(bench))
    named = values if kind == "build" else (chosen,) if chosen else ()
    place = machine or _machine(named, inventory)
    if kind == "build":
        builds = values
    else:
        newest = chosen or inventory.newest(inventory.measured[place])
        builds = (newest, newest)
    for one in builds:
        _require(inventory, one, place)
    return Scope((place, place), builds, devices, dtypes, tuple(bench))


def _bare(name: str) -> str:
    kind, colon, rest = name.partition(":")
    return rest if colon and kind in KINDS else name


def _kinds(name: str, inventory: Inventory) -> list[Kind]:
    kind, colon, rest = name.partition(":")
    if colon and kind in KINDS:
        return [found for found in _kinds(rest, inventory) if found == kind]
    tests: dict[Kind, bool] = {
        "build": _is_build(name, inventory),
        "device": name in DEVICE_KINDS,
        "dtype": name.removeprefix("torch.") in DTYPES,
        "machine": name in inventory.measured,
    }
    return [kind for kind in KINDS if tests[kind]]


def _is_build(name: str, inventory: Inventory) -> bool:
    if name in HEAD or name in CHANNELS:
        return True
    try:
        find_end(inventory.ledger, name)
    except AmbiguousBuild:
        return True
    except UnknownBuild:
        return False
    return True


def _side(
    kind: Kind, name: str, inventory: Inventory, machine: str | None, head: Callable[[], Build] | None
) -> Side:
    if kind == "dtype":
        dtype = DTYPES[name.removeprefix("torch.")]
        return Side(kind, dtype, dtype)
    if kind != "build":
        return Side(kind, name, name)
    on = [machine] if machine in inventory.measured else list(inventory.measured)
    measured = {build for place in on for build in inventory.measured[str(place)]}
    where = f" on {machine}" if machine in inventory.measured else ""
    if name in CHANNELS:
        of_channel = [one for one in measured if inventory.ledger[one].channel == name]
        if not of_channel:
            raise NotMeasured(
                f"no {name} build has results{where}; measured are {_versions(inventory, measured)}"
            )
        build = inventory.ledger[inventory.newest(of_channel)]
        return Side(kind, build.id, f"torch {build.version}")
    if name in HEAD and head is not None:
        build = head()
        inventory.ledger.add(build)
    else:
        try:
            end = find_end(inventory.ledger, name)
        except AmbiguousBuild:
            raise
        except UnknownBuild as error:
            raise WrongSides(str(error)) from None
        if end.build is None:
            nearest = inventory.nearest(end.date_milliseconds, "nightly", measured)
            raise NotMeasured(f"no nightly of {name} is known; {_nearest(inventory, nearest)}")
        build = end.build
    if build.id not in measured:
        date = inventory.ledger.date_milliseconds(build.id)
        nearest = inventory.nearest(date, build.channel, measured)
        raise NotMeasured(f"torch {build.version} has no results{where}; {_nearest(inventory, nearest)}")
    return Side(kind, build.id, f"torch {build.version}")


def _machine(builds: Sequence[str], inventory: Inventory) -> str:
    """The one machine that has results of all these builds."""
    found = [name for name, measured in inventory.measured.items() if set(builds) <= set(measured)]
    if len(found) == 1:
        return found[0]
    if found:
        raise WrongSides(f"several machines have such results; choose with --machine: {', '.join(found)}")
    told = "; ".join(
        f"torch {inventory.ledger[one].version} was measured on "
        + ", ".join(name for name, measured in inventory.measured.items() if one in measured)
        for one in dict.fromkeys(builds)
    )
    raise NotMeasured(f"no machine has results of both: {told}")


def _require(inventory: Inventory, build: str, machine: str) -> None:
    if build in inventory.measured[machine]:
        return
    known = inventory.ledger[build]
    measured = inventory.measured[machine]
    nearest = inventory.nearest(inventory.ledger.date_milliseconds(build), known.channel, measured)
    raise NotMeasured(f"torch {known.version} has no results on {machine}; {_nearest(inventory, nearest)}")


def _unknown(name: str, inventory: Inventory) -> str:
    measured = {build for builds in inventory.measured.values() for build in builds}
    kinds = f"devices: {', '.join(DEVICE_KINDS)}; dtypes: {', '.join(dict.fromkeys(DTYPES.values()))}"
    if not measured:  # as where sides are to be measured, and stored results were not looked at
        return f"nothing is called {name!r}; {kinds}"
    return (
        f"nothing is called {name!r}; measured builds: {_versions(inventory, measured)}; {kinds}; "
        f"machines: {_listed(inventory.measured)}; `asv run BUILD` measures another build"
    )


def _nearest(inventory: Inventory, builds: Sequence[str]) -> str:
    versions = [inventory.ledger[one].version for one in builds]
    return f"measured nearest: {' and '.join(versions)}" if versions else "nothing was measured there"


def _versions(inventory: Inventory, builds: Iterable[str], most: int = 6) -> str:
    """The newest of them, old to new."""
    chosen = inventory.in_order(builds)
    more = f" and {len(chosen) - most} older" if len(chosen) > most else ""
    return (", ".join(inventory.ledger[one].version for one in chosen[-most:]) or "none") + more


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _or(names: Iterable[str]) -> str:
    return " or ".join(names)
