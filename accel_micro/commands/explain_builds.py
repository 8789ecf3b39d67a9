"""`explain --baseline build=20261101`: builds by name. Of each an environment is made, whose Python runs that side."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from accel_micro.explain.setting import Setting

if TYPE_CHECKING:
    from accel_micro.builds import Target
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
    target = room.sources((), None, [python]).targets[0]
    store = Environments.below(Path(room.conf.env_dir), say=say)
    interpreter = find_interpreter(python)
    with contextlib.ExitStack() as leases:
        found = []
        for setting in settings:
            name = setting.switches.get(BUILD)
            if name is not None:
                lease = _lease(name, room, store, interpreter, target)
                leases.callback(lease.release)
                setting = setting.changed(python=str(lease.environment.python))
            found.append(setting)
        yield found


def _lease(
    name: str, room: "Room", store: "Environments", interpreter: "Interpreter", target: "Target"
) -> "Lease":
    from accel_micro.builds import choose_wheel
    from accel_micro.builds.installing import NotInstalled

    build = room.ledger.resolve(name)
    wheel = choose_wheel(room.ledger.wheels(build.id), target)
    if wheel is None:
        raise NoBuild(
            f"no wheel of torch {build.version} is known that runs here (`accel-micro builds show {name}`)"
        )
    try:
        return store.acquire(wheel, interpreter)
    except NotInstalled as error:
        raise NoBuild(f"torch {wheel.version} could not be installed: {error}") from None
