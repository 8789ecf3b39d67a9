"""What runs the blocks of a bisection by somebody's own script: with each build's interpreter, a process each."""

import contextlib
import math
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from accel_micro.commands.bisect_ahead import Expected, Prepared
from accel_micro.commands.bisect_measure import FAILS, WORKS, Note
from accel_micro.results.questions import Question, Script
from accel_micro.shell import signal_name

if TYPE_CHECKING:
    from accel_micro.builds import Ledger, Wheel
    from accel_micro.builds.ahead import Ahead, Job
    from accel_micro.builds.environments import Environments, Lease
    from accel_micro.builds.interpreters import Interpreter

SKIP: Final = 125
"""With which a script says that it cannot tell, as with `git bisect run`."""

BUILD_VARIABLE: Final = "ACCEL_MICRO_BUILD"
"""Tells a script the version of the build that it runs with."""


@contextlib.contextmanager
def scripting(
    question: Question, conf: Any, ledger: "Ledger", note: Note, say: Callable[[str], None]
) -> Iterator[Prepared]:
    """What runs the blocks of a question about a script.

    Raises:
        SessionError: the device is in use, or a build cannot be had now. Raised inside the block too.
        NoInterpreter: there is no such Python here.
    """
    from accel_micro.asv_plugin.embedding import SessionError
    from accel_micro.asv_plugin.errors import DeviceBusy
    from accel_micro.asv_plugin.locking import DeviceLocks
    from accel_micro.builds.ahead import Ahead
    from accel_micro.builds.environments import Environments
    from accel_micro.builds.interpreters import find_interpreter

    locks = DeviceLocks()
    try:
        locks.acquire([question.device])
    except DeviceBusy as error:
        raise SessionError(str(error), error.exit_code) from None
    with contextlib.ExitStack() as stack, contextlib.closing(Ahead(say)) as ahead:
        stack.callback(locks.release)
        store = Environments.below(Path(conf.env_dir), say=say)
        yield _Scripts(question, ledger, store, find_interpreter(question.python), note, stack, ahead)


class _Scripts:
    def __init__(
        self,
        question: Question,
        ledger: "Ledger",
        store: "Environments",
        interpreter: "Interpreter",
        note: Note,
        stack: contextlib.ExitStack,
        ahead: "Ahead",
    ) -> None:
        self._question, self._ledger, self._store = question, ledger, store
        self._interpreter, self._note, self._stack = interpreter, note, stack
        self._pythons: dict[str, Path | None] = {}
        self._ahead = ahead
        self.expected = Expected(ahead, self._job)

    def __call__(self, builds: Sequence[str]) -> list[float | None]:
        """See `bisect.Runner`."""
        needed = [build for build in dict.fromkeys(builds) if build not in self._pythons]
        self.expected.needed(needed)
        for build in needed:
            self.expected.finish(build)
            self._pythons[build] = self._made(build)
            self._value(build)  # what its first process finds cold would follow the build
        self.expected.pause()
        return [self._value(build) for build in builds]

    def _made(self, build: str) -> Path | None:
        from accel_micro.asv_plugin.embedding import ENVIRONMENT, SessionError
        from accel_micro.builds.installing import NotInstalled

        wheel = self._wheel(build)
        if wheel is None:
            self._note(build, "no wheel for this Python, platform and variant")
            return None
        try:
            lease: Lease = self._store.acquire(wheel, self._interpreter)
        except NotInstalled as error:
            why = f"torch {wheel.version} could not be installed: {error}"
            if not error.lasting:
                raise SessionError(why, ENVIRONMENT) from None
            self._note(build, why)
            return None
        self._stack.callback(lease.release)
        self._ahead.taken(lease.environment.name)
        return lease.environment.python

    def _wheel(self, build: str) -> "Wheel | None":
        from accel_micro.builds import Target, choose_wheel

        target = Target.here((self._question.variant,), self._interpreter.python)
        wheels = [w for w in self._ledger.wheels(build) if w.variant == self._question.variant]
        return choose_wheel(wheels, target)

    def _job(self, build: str) -> "Job | None":
        from accel_micro.builds.ahead import Job

        wheel = self._wheel(build)
        return None if wheel is None else Job(self._store, wheel, self._interpreter)

    def _value(self, build: str) -> float | None:
        python = self._pythons[build]
        if python is None:
            return None
        assert self._question.script is not None
        value, why = run_script(python, self._question.script, self._question.version(build))
        if why:
            self._note(build, why)
        return value


def run_script(python: Path, script: Script, version: str) -> tuple[float | None, str]:
    """What one run of a script says, and where it says nothing or failed, why.

    Where numbers are compared: the last line of its output. Else `WORKS` when it ends with 0, and `FAILS` with anything
    else, a crash and a timeout included. With 125 it says nothing.
    """
    environment = {**os.environ, BUILD_VARIABLE: version}
    environment["PATH"] = os.pathsep.join([str(python.parent), environment.get("PATH", "")])
    for name in ("VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH"):
        environment.pop(name, None)
    try:
        done = subprocess.run(
            [python, script.path, *script.arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            env=environment,
            timeout=script.timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        why = f"took more than {script.timeout_seconds:g} s"
        return (None if script.numbers else FAILS), why
    if done.returncode == SKIP:
        return None, "the script skipped it (125)"
    last = _last_line(done.stdout)
    if script.numbers:
        number = number_of(last)
        if done.returncode == 0 and number is not None:
            return number, ""
        told = _last_line(done.stderr) or last or "nothing was printed"
        return None, f"no positive number on the last line (exit code {done.returncode}): {told}"[:300]
    if done.returncode == 0:
        return WORKS, ""
    how = signal_name(done.returncode) if done.returncode < 0 else f"exit code {done.returncode}"
    return FAILS, f"{how}: {_last_line(done.stderr) or last}"[:300].rstrip(": ")


def number_of(line: str) -> float | None:
    """A positive number that stands alone, or None.

    >>> number_of(" 1.5e-3\\n"), number_of("nan"), number_of("12 ms")
    (0.0015, None, None)
    """
    try:
        number = float(line)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
