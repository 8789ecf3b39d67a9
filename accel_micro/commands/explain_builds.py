"""`explain --baseline build=20261101`: builds by name. Of each an environment is made, whose Python runs that side."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from accel_micro.explain.setting import Setting

if TYPE_CHECKING:
    from accel_micro.asv_plugin.sources import Sources
    from accel_micro.builds import Build, Wheel
    from accel_micro.builds.environments import Environments, Lease
    from accel_micro.builds.interpreters import Interpreter
    from accel_micro.commands.common import Room

BUILD: Final = "build"


class NoBuild(RuntimeError):
    """A build has no wheel that runs here, or cannot be installed; the message says why."""


@contextlib.contextmanager
def with_builds(settings: Sequence[Setting], say: Callable[[str], None]) -> Iterator[list[Setting]]:
    """The settings, each that names a build with the Python of its environment, which stays until the end.

    Raises:
        NoBuild: as it says. UnknownBuild, AmbiguousBuild, NoConfiguration, NoInterpreter: as they say.
    """
    if not any(BUILD in setting.switches for setting in settings):
        yield list(settings)
        return
    from accel_micro.builds.environments import Environments
    from accel_micro.builds.interpreters import find_interpreter
    from accel_micro.commands.common import Room

    room = Room.of(None, None)
    python = next(iter(room.conf.pythons), None) or "same"
    sources = room.sources((), None, [python])
    store = Environments.below(Path(room.conf.env_dir), say=say)
    interpreter = find_interpreter(python)
    names = [setting.switches.get(BUILD) for setting in settings]
    wheels = _wheels([name for name in dict.fromkeys(names) if name is not None], room, sources, say)
    with contextlib.ExitStack() as leases:
        found = []
        for setting, name in zip(settings, names, strict=True):
            if name is not None:
                lease = _lease(wheels[name], store, interpreter)
                leases.callback(lease.release)
                setting = setting.changed(python=str(lease.environment.python))
            found.append(setting)
        yield found


def _wheels(
    names: Sequence[str], room: "Room", sources: "Sources", say: Callable[[str], None]
) -> "dict[str, Wheel]":
    """The wheel of each build, all of the first variant that all of them have: else two variants are compared."""
    from accel_micro.builds import choose_wheel
    from accel_micro.builds.wheels import DEFAULT_VARIANT

    target = sources.targets[0]
    builds = [_build(name, room, sources, say) for name in names]
    chosen: list[Wheel | None] = []
    for variant in (*target.variants, DEFAULT_VARIANT, None):
        known = [
            [wheel for wheel in room.ledger.wheels(build.id) if variant in (None, wheel.variant)]
            for build in builds
        ]
        chosen = [choose_wheel(wheels, target) for wheels in known]
        if all(wheel is not None and wheel.broken is None for wheel in chosen):
            break
    found = {}
    for name, build, wheel in zip(names, builds, chosen, strict=True):
        if wheel is None:
            raise NoBuild(
                f"no wheel of torch {build.version} is known that runs here (`accel-micro builds show {name}`)"
            )
        found[name] = wheel
    if len({wheel.variant for wheel in found.values()}) > 1:
        listed = ", ".join(f"torch {wheel.version} is for {wheel.variant}" for wheel in found.values())
        say(f"no variant has all of these builds, so a difference may be the variant's: {listed}")
    return found


def _build(name: str, room: "Room", sources: "Sources", say: Callable[[str], None]) -> "Build":
    """The build of that name; the indexes are asked where none is known."""
    from accel_micro.builds import UnknownBuild
    from accel_micro.builds.ledger import AmbiguousBuild

    try:
        return room.ledger.resolve(name)
    except AmbiguousBuild:
        raise
    except UnknownBuild:
        say(f"looking for torch {name} in the indexes")
        for text in sources.sync(room.ledger, commits=False).notes:
            say(text)
        return room.ledger.resolve(name)


def _lease(wheel: "Wheel", store: "Environments", interpreter: "Interpreter") -> "Lease":
    from accel_micro.builds.installing import NotInstalled

    try:
        return store.acquire(wheel, interpreter)
    except NotInstalled as error:
        raise NoBuild(f"torch {wheel.version} could not be installed: {error}") from None
