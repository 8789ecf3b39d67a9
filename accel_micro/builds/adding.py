"""Builds that no index lists: a wheel of one's own, or the torch that an environment already has."""

import sys
from dataclasses import replace
from pathlib import Path

from accel_micro.builds.contents import inspect, read_file
from accel_micro.builds.identity import Build, identify
from accel_micro.builds.installed import Installed, TorchNotInstalled, installed_torch
from accel_micro.builds.ledger import Ledger
from accel_micro.builds.lines import Installation
from accel_micro.builds.wheels import Place, Wheel, named

_INTERPRETERS = ("bin/python", "Scripts/python.exe")


def add_wheel(
    ledger: Ledger, path: Path, *, accept: bool = False, dry_run: bool = False
) -> tuple[Build, Wheel]:
    """Know a wheel on this disk and its build. The file is read whole, since its hash is noted.

    Args:
        accept: take it although another file is known by its name.

    Raises:
        NotAWheel, BrokenWheel: it is no whole wheel of torch.
        ChangedFile: another file is known by its name.
    """
    path = path.absolute()
    version, variant, _ = named(path.name)
    contents = read_file(path)
    build = identify(contents.version, contents.git_version)
    known = None if accept else ledger.wheel(path.name)
    place = Place(path.as_uri(), path.parent.as_uri() + "/")
    wheel = known or Wheel(build.id, version, path.name, variant)
    wheel = replace(inspect(path, wheel), places=(place,), build_id=build.id)
    if dry_run:
        return ledger.add(build), wheel
    if accept and ledger.conflict(wheel):
        ledger.accept(wheel)
    ledger.remember_all([build, wheel])
    return ledger[build.id], ledger.wheel(path.name) or wheel


def add_interpreter(ledger: Ledger, python: Path, *, dry_run: bool = False) -> tuple[Build, Installed]:
    """Know the torch of an interpreter, or of an environment's folder, on this machine.

    Raises:
        TorchNotInstalled: it is no interpreter, or has no torch.
    """
    found = find_python(python)
    installed = installed_torch(found)
    build = installed.build
    if dry_run:
        return ledger.add(build), installed
    ledger.remember_all([build, Installation(build.id, str(found))])
    return ledger[build.id], installed


def find_python(path: Path) -> Path:
    """The interpreter that a path means: itself, or that of an environment's folder.

    Raises:
        TorchNotInstalled: there is none.
    """
    # A link is not followed: the interpreter of a virtual environment is one, and knows its own packages.
    path = path.absolute()
    if path.is_dir():
        found = next((path / name for name in _INTERPRETERS if (path / name).is_file()), None)
        if found is None:
            raise TorchNotInstalled(
                f"{path} is no environment: it has no {_INTERPRETERS[sys.platform == 'win32']}"
            )
        return found
    if not path.is_file():
        raise TorchNotInstalled(f"{path} is no file: give a wheel, an interpreter or an environment's folder")
    return path
