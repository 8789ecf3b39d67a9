"""Why a process died without leaving a record."""

import contextlib
import signal
from pathlib import Path
from typing import Final

from asv.util import TIMEOUT_RETCODE

from accel_micro.measure.records import Failure
from accel_micro.shell import signal_name

_LAST_LINES: Final = 3


def kernel_kills() -> int:
    """How often the kernel has ended a process for want of memory since the machine started; 0 if unknown."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0


def of_exit(exit_code: int, output: str, timeout: float | None, kills: int) -> Failure:
    """The failure of a process that ended with this exit code (negative: a signal) and left no record.

    Args:
        output: all it printed. kills: processes that the kernel ended for want of memory meanwhile.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    last = " | ".join(lines[-_LAST_LINES:])
    if exit_code == TIMEOUT_RETCODE:
        return Failure("timed out", f"ended after {timeout:g} s" if timeout else "ended")
    if exit_code == -signal.SIGKILL and kills > 0:
        return Failure("out of memory", "the kernel ended the process: the machine's memory is used up")
    if "MemoryError" in last or "OutOfMemoryError" in last or "can't allocate memory" in last:
        return Failure("out of memory", last)
    if exit_code < 0:
        return Failure(
            "crashed", f"ended by {signal_name(exit_code)}" + (f"; last output: {last}" if last else "")
        )
    if exit_code > 0:
        return Failure("failed", lines[-1] if lines else f"exit code {exit_code}")
    return Failure("failed", "the process ended without a record" + (f": {last}" if last else ""))
