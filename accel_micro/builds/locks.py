"""A lock file that many may share or one may hold alone. The system lets go of it when its holders have died."""

import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path


class FileLock:
    """One holder's side of a lock file.

    A child process that is handed `fileno()` holds it too: while it lives, nobody else gets in.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def fileno(self) -> int:
        """The open file.

        Raises:
            RuntimeError: the lock is not held.
        """
        if self._handle is None:
            raise RuntimeError(f"{self.path} is not held")
        return self._handle

    def acquire(self, *, shared: bool, waiting: Callable[[], None] | None = None) -> None:
        """Hold it, or change how it is held, waiting for the others.

        Changing lets others in between: look again at what the lock guards.

        Args:
            waiting: called once if others hold it.
        """
        if self._take(shared, fcntl.LOCK_NB):
            return
        if waiting is not None:
            waiting()
        self._take(shared, 0)

    def try_acquire(self, *, shared: bool) -> bool:
        """Hold it if that takes no waiting."""
        return self._take(shared, fcntl.LOCK_NB)

    def release(self) -> None:
        """Let go of it; harmless when it is not held."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def touch(self) -> None:
        """Note the time of use on the file, see `used_at`."""
        os.utime(self.fileno())

    def _take(self, shared: bool, how: int) -> bool:
        new = self._handle is None
        if self._handle is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Close-on-exec, as Python opens files: a benchmark process that outlives its run holds nothing.
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | how)
        except BlockingIOError:
            if new:
                self.release()
            return False
        except BaseException:
            self.release()
            raise
        return True


def used_at(path: Path) -> float:
    """When a lock was last touched, seconds since 1970; 0 when there is none."""
    with contextlib.suppress(OSError):
        return path.stat().st_mtime
    return 0.0
