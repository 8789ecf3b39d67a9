"""Attempts run one after the other in a process of their own; one that dies or hangs costs its own row."""

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection
from time import perf_counter

from accel_micro.devices.base import DeviceUnavailable
from benchmarks.harness.reports.row import Attempt, DoesNotApply, Row

_IMPORTING_SECONDS = 120.0
_TRIES = 3
"""Where work runs on the host's cores, which other programs want too, as `accel-micro doctor --sync` does it."""

_THREADS = "OMP_NUM_THREADS"


def chosen(attempts: Iterable[Attempt], device: str, only: Sequence[int]) -> list[tuple[int, Attempt]]:
    """Those that need this kind of device, each with its place; of the reports in `only`, or of all."""
    return [
        (place, attempt)
        for place, attempt in enumerate(attempts)
        if attempt.needs == device and (not only or attempt.number in only)
    ]


def run(
    places: Sequence[tuple[int, Attempt]],
    device: str,
    tell: Callable[[Row], None],
    serve: Callable[..., None] | None = None,
) -> list[Row]:
    """A row for each, in order. A new process is started after one that died, hung or lost its device.

    Args:
        places: as `chosen` gives them. tell: is handed each row as soon as it is there.
        serve: what runs in the process, for tests.

    Raises:
        DeviceUnavailable: this machine does not have the device.
    """
    rows: list[Row] = []
    worker: _Worker | None = None
    try:
        for place, attempt in places:
            worker = worker or _Worker(device, serve or served)
            row, usable = worker.row_of(place, attempt)
            rows.append(row)
            tell(row)
            if not usable:
                worker.end()
                worker = None
    finally:
        if worker is not None:
            worker.end()
    return rows


class _Worker:
    def __init__(self, device: str, serve: Callable[..., None]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        # No daemon: attempts start processes too.
        self._process = context.Process(target=serve, args=(other, device))
        with _one_thread(device):
            self._process.start()
        other.close()
        self._model: str | None = None

    def row_of(self, place: int, attempt: Attempt) -> tuple[Row, bool]:
        """The row, and whether the process can go on. Raises DeviceUnavailable."""
        start = perf_counter()

        def lost(problem: str) -> tuple[Row, bool]:
            seconds = perf_counter() - start
            return Row(attempt.number, attempt.where, self._model or "", None, problem, seconds), False

        try:
            if self._model is None:
                if not self._pipe.poll(_IMPORTING_SECONDS):
                    return lost(f"not ready after {_IMPORTING_SECONDS:.0f} s")
                self._model, reason = self._pipe.recv()
                if reason is not None:
                    raise DeviceUnavailable(reason)
            start = perf_counter()
            self._pipe.send(place)
            if not self._pipe.poll(attempt.most_seconds):
                return lost(f"timed out after {attempt.most_seconds:.0f} s")
            row, usable = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(10)
            return lost(f"crashed: the process ended with {self._process.exitcode}")
        return row, usable

    def end(self) -> None:
        self._pipe.close()
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


@contextlib.contextmanager
def _one_thread(device: str) -> Iterator[None]:
    """Processes started meanwhile compute on one thread of the CPU: the reports are not about waiting for cores."""
    before = os.environ.get(_THREADS)
    if device == "cpu":
        os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        if before is not None:
            os.environ[_THREADS] = before
        else:
            os.environ.pop(_THREADS, None)


def served(pipe: Connection, device: str) -> None:
    """Runs in the process: receives places and sends rows, until the pipe is closed."""
    from benchmarks.harness.reports.attempts import ATTEMPTS

    serve(pipe, device, ATTEMPTS)


def serve(pipe: Connection, device: str, attempts: Sequence[Attempt]) -> None:
    """The same for any attempts."""
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        model, reason = _model(device)
        pipe.send((model, reason))
        while True:
            attempt = attempts[pipe.recv()]
            row = tried(attempt, model, 1 if device == "cuda" else _TRIES)
            pipe.send((row, not row.problem or _usable(device)))


def tried(attempt: Attempt, model: str, tries: int = 1) -> Row:
    """The row of an attempt, whatever it raises; one that is not as it should be is tried again, if time is left."""
    start = perf_counter()
    finding, problem, number = None, "", 0
    while number < tries and (finding is None or not finding.good):
        number += 1
        began = perf_counter()
        try:
            finding = attempt.find()
        except DoesNotApply as reason:
            problem = f"does not apply: {reason}"
            break
        except Exception as error:
            first = (str(error).strip() or "no message").splitlines()[0]
            problem = f"failed: {type(error).__name__}: {first[:200]}"
            break
        now = perf_counter()
        if now - start + 1.5 * (now - began) > attempt.most_seconds:
            break
    seconds = perf_counter() - start
    return Row(attempt.number, attempt.where, model, None if problem else finding, problem, seconds, number)


def _model(device: str) -> tuple[str, str | None]:
    """Model of the device, or why this machine does not have it."""
    from accel_micro import devices

    found = devices.get(device)
    reason = found.unavailable()
    return "" if reason is not None else str(found.describe().get("model", device)), reason


def _usable(device: str) -> bool:
    from benchmarks.harness.clocks import usable

    return usable(device)
