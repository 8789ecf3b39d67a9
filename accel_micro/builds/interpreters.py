"""Which Python an environment is made of."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from accel_micro.builds.uv import Uv, UvError
from accel_micro.builds.wheels import running_python

SAME: Final = "same"
"""asv's word for the running interpreter."""

_ASK: Final = (
    "import json, sys, sysconfig\n"
    "threaded = 't' if sysconfig.get_config_var('Py_GIL_DISABLED') else ''\n"
    "print(json.dumps([sys.implementation.name, sysconfig.get_python_version() + threaded]))"
)
_PATIENCE_SECONDS: Final = 60


class NoInterpreter(LookupError):
    """There is no such Python here; the message names it."""


@dataclass(frozen=True)
class Interpreter:
    """A Python on this machine.

    Attributes:
        path: its executable.
        python: its version, `3.11`, or `3.13t` for a free-threaded one.
    """

    path: Path
    python: str

    @property
    def tag(self) -> str:
        """As wheels name it: `cp311`, `cp313t`."""
        return "cp" + self.python.replace(".", "")


def find_interpreter(name: str = SAME) -> Interpreter:
    """The running interpreter, that at a path, or the one that uv finds for a version such as `3.12`.

    The running one is taken where it has that version: uv may find another first, which may be a broken one.

    Raises:
        NoInterpreter: there is none, or it is not CPython, for which alone there are wheels of torch.
    """
    if name in (SAME, running_python()):
        return Interpreter(Path(sys.executable), running_python())
    path = Path(name)
    if not path.is_file():
        try:
            path = Path(Uv().run("python", "find", "--no-project", name, cwd=Path("/")).strip())
        except UvError as error:
            raise NoInterpreter(f"no Python {name} was found: {error}") from None
    try:
        done = subprocess.run(
            [path, "-I", "-c", _ASK], capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=True
        )
        implementation, python = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise NoInterpreter(f"{path} is not a Python interpreter that runs ({error})") from None
    if implementation != "cpython":
        raise NoInterpreter(f"{path} is {implementation}; there are wheels of torch for CPython only")
    return Interpreter(path, python)
