"""What a run shows meanwhile: the case that is running, how far it is, and how long it will still take."""

import sys
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Final, Protocol

from accel_micro.measure.records import Case, Record
from accel_micro.report.words import clean, count, first_line

if TYPE_CHECKING:
    from rich.console import Console

SECONDS_BETWEEN_LINES: Final = 5.0
"""Where there is no terminal a run prints at most one line in this time, so that logs stay short."""


class Listener(Protocol):
    """Who is told how a run goes. Cases are announced in order; a case may leave any number of records."""

    def case_started(self, case: Case, index: int, total: int) -> None:
        """The `index`-th of `total` processes begins, counted from 1; a case may have several."""

    def case_finished(self, record: Record) -> None:
        """A process of the case that runs has left a record."""

    def finished(self) -> None:
        """The run is over, or was broken off."""


def listener(console: "Console | None" = None) -> Listener:
    """A live bar on a terminal, plain lines elsewhere; on standard error, so that results can be piped.

    Args:
        console: where to; None is standard error.
    """
    from rich.console import Console

    console = console or Console(stderr=True)
    if console.is_terminal and not console.is_dumb_terminal:
        return Bar(console)
    return Lines(console.file)


class Tally:
    """Counts of a run, and how long the rest of it will take.

    The estimate is the mean time of the cases that are done times the number of those that are not.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._begin = now()
        self._begin_case = self._begin
        self.index = 0
        self.total = 0
        self.failures = 0
        self.running: Case | None = None
        self.last_failure = ""
        self._failed: set[Case] = set()
        self._left_a_record = False

    def start(self, case: Case, index: int, total: int) -> None:
        """Note that a case begins."""
        self.running, self.index, self.total = case, index, total
        self._begin_case = self._now()
        self._left_a_record = False

    def finish(self, record: Record) -> None:
        """Note a record. Several failures of one case count once."""
        self._left_a_record = True
        if record.failure is None or record.case in self._failed:
            return
        self._failed.add(record.case)
        self.failures += 1
        self.last_failure = f"{record.failure.kind}: {clean(str(record.case))}"
        if detail := first_line(record.failure.detail):
            self.last_failure += f" ({detail})"

    @property
    def done(self) -> int:
        """Processes that left a record: the last one did not where it was broken off."""
        return self.index if self._left_a_record else max(0, self.index - 1)

    @property
    def elapsed_seconds(self) -> float:
        """Since the run began."""
        return self._now() - self._begin

    @property
    def rest_seconds(self) -> float | None:
        """What the cases after those that are done will take; None before the first is done."""
        done = self.index - 1
        if done < 1:
            return None
        spent = self._begin_case - self._begin
        running = self._now() - self._begin_case
        return max(0.0, spent / done * (self.total - done) - running)

    def times(self) -> str:
        """`12 s, about 1 min 05 s left`."""
        rest = self.rest_seconds
        left = f", about {duration(rest)} left" if rest is not None and rest >= 1 else ""
        return duration(self.elapsed_seconds) + left


def duration(seconds: float) -> str:
    """A duration for people.

    >>> duration(7.4), duration(95), duration(3700)
    ('7 s', '1 min 35 s', '1 h 01 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Lines:
    """A listener for logs: one line at once, then at most one (two after a failure) every few seconds, and
    one at the end.

    Args:
        stream: where to; None is standard error.
        seconds: least time between two lines.
        now: the clock, seconds.
    """

    def __init__(
        self,
        stream: IO[str] | None = None,
        seconds: float = SECONDS_BETWEEN_LINES,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream or sys.stderr
        self._seconds = seconds
        self._now = now
        self._last: float | None = None
        self._told_failure = ""
        self.tally = Tally(now)

    def case_started(self, case: Case, index: int, total: int) -> None:
        """See `Listener`."""
        self.tally.start(case, index, total)
        if self._last is None or self._now() - self._last >= self._seconds:
            self._last = self._now()
            self._print(f"{self._where()}  {clean(str(case))}")
            if self.tally.last_failure != self._told_failure:
                self._told_failure = self.tally.last_failure
                self._print(f"  last failure: {self._told_failure}")

    def case_finished(self, record: Record) -> None:
        """See `Listener`."""
        self.tally.finish(record)

    def finished(self) -> None:
        """See `Listener`."""
        tally = self.tally
        if tally.total:
            processes = f"{tally.done} of {count(tally.total, 'process', 'processes')}"
            failures = f", {count(tally.failures, 'case')} failed" if tally.failures else ""
            self._print(f"{processes} in {duration(tally.elapsed_seconds)}{failures}")

    def _where(self) -> str:
        tally = self.tally
        failures = f", {tally.failures} failed" if tally.failures else ""
        return f"[{tally.index}/{tally.total}] {tally.times()}{failures}"

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class Bar:
    """A listener for terminals: a bar on the last line while a run lasts; failures are kept above it.

    It is drawn when something is told and not in between: a thread that draws would disturb the samples.
    """

    def __init__(self, console: "Console") -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.table import Column

        self.tally = Tally()
        self._progress = Progress(
            BarColumn(bar_width=16, table_column=Column(width=16)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[times]}", style="dim", markup=False),
            TextColumn("{task.fields[failures]}", style="red", markup=False),
            # The name of the case is the one that gives way when the line is too long.
            TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
            console=console,
            expand=True,
            transient=True,
            auto_refresh=False,
        )
        self._task = self._progress.add_task("", total=None, times="", failures="", start=True)
        self._told_failure = ""

    def case_started(self, case: Case, index: int, total: int) -> None:
        """See `Listener`."""
        self.tally.start(case, index, total)
        self._progress.start()
        self._update()

    def case_finished(self, record: Record) -> None:
        """See `Listener`."""
        from rich.text import Text

        self.tally.finish(record)
        if self.tally.last_failure != self._told_failure:
            self._told_failure = self.tally.last_failure
            self._progress.console.print(Text(f"✗ {self._told_failure}", "red"))
        self._update()

    def finished(self) -> None:
        """See `Listener`."""
        self._progress.stop()

    def _update(self) -> None:
        tally = self.tally
        times = tally.times()
        self._progress.update(
            self._task,
            description=clean(str(tally.running)),
            completed=max(0, tally.index - 1),
            total=tally.total,
            times=times,
            failures=f"{tally.failures} failed" if tally.failures else "",
            refresh=True,
        )
