"""Which torch an interpreter has, read from its files: importing it takes seconds and may start threads."""

import ast
import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from accel_micro.builds.identity import Build, identify

_FIND = (
    "import importlib.util, json\n"
    "spec = importlib.util.find_spec('torch')\n"
    "print(json.dumps(spec.origin if spec else None))"
)


class TorchNotInstalled(RuntimeError):
    """The interpreter has no torch, or none whose version can be read; the message names the interpreter."""


@dataclass(frozen=True)
class Installed:
    """The torch of one interpreter.

    Attributes:
        build: what it is.
        version: as torch itself says it, with its variant: `2.13.0+cu130`.
        cuda, hip: version of CUDA or HIP it was built for, None without.
    """

    build: Build
    version: str
    cuda: str | None = None
    hip: str | None = None


def installed_torch(python: str | Path | None = None) -> Installed:
    """The torch installed for an interpreter, by default the running one. Torch is not imported.

    Raises:
        TorchNotInstalled: there is none, or the interpreter cannot be run.
    """
    executable = str(python or sys.executable)
    origin = _origin_here() if python is None or executable == sys.executable else _origin_of(executable)
    if origin is None:
        raise TorchNotInstalled(f"{executable} has no torch; install it: {executable} -m pip install torch")
    path = Path(origin).parent / "version.py"
    try:
        constants = read_constants(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        raise TorchNotInstalled(f"{executable} has a torch without a readable version ({error})") from error
    version = constants.get("__version__")
    if version is None:
        raise TorchNotInstalled(f"{executable} has a torch whose {path} names no version")
    return Installed(
        build=identify(version, constants.get("git_version")),
        version=version,
        cuda=constants.get("cuda"),
        hip=constants.get("hip"),
    )


def read_constants(source: str) -> dict[str, str]:
    """The names that a module's text sets to a string. Nothing is run.

    Raises:
        SyntaxError, ValueError: the text is not Python.
    """
    found: dict[str, str] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.update({target.id: node.value.value for target in targets if isinstance(target, ast.Name)})
    return found


def _origin_here() -> str | None:
    try:
        spec = importlib.util.find_spec("torch")
    except ValueError:  # a stand-in for torch without a spec
        return None
    return spec.origin if spec else None


def _origin_of(executable: str) -> str | None:
    try:
        # Started where nothing called torch lies: `-c` looks in the current directory first.
        done = subprocess.run(
            [executable, "-c", _FIND],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=Path(executable).parent,
            check=True,
        )
        origin = json.loads(done.stdout.strip().splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise TorchNotInstalled(f"{executable} is not a Python interpreter that runs ({error})") from error
    return str(origin) if origin else None
