"""The driver around a search: hands its blocks to what runs them, and its log to a journal that outlives it.

All that work on one bisection are equals: each brings its own search up to what the journal says, asks it for a block,
and notes that before it runs the block. So going on after a crash, and several machines at once, are the same thing.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from accel_micro.bisect.result import Block, Event, Progress, Result
from accel_micro.bisect.searching import Search, replay

SECONDS_TO_WAIT: Final = 2.0
"""Between two looks whether others are done with their blocks."""


class Journal(Protocol):
    """Keeps the events of a bisection, and who does what; see `results.bisections`."""

    def alone(self) -> AbstractContextManager[None]:
        """Nobody else reads or writes meanwhile."""

    def events(self) -> Sequence[Mapping[str, Any]]:
        """All of them, in order, without those that only tell what was decided."""

    def write(self, events: Sequence[Event]) -> None:
        """Add some, for good, in the name of this worker."""

    def lost(self) -> Sequence[int]:
        """Numbers of the blocks in flight whose worker is no more."""


class Runner(Protocol):
    """Runs a block: builds by their names, one after the other, each in a fresh process."""

    def __call__(self, builds: Sequence[str]) -> Sequence[float | None]:
        """What each process gave; None where a build does not work. Raises what is no build's fault."""


class Ahead(Protocol):
    """Makes builds ready before they are asked for."""

    def expect(self, builds: Sequence[str]) -> None:
        """Coming blocks may ask for these, the likeliest first. Nothing is to be done about it now."""

    def idle(self) -> None:
        """This worker waits for others: now it may be done. Called again and again."""


@dataclass(frozen=True)
class Told:
    """A block is done, or this worker waits for those of others.

    Attributes:
        block: None while it waits. values: as `Runner` returned them.
    """

    progress: Progress[str]
    block: Block[str] | None = None
    values: tuple[float | None, ...] = ()


class Worker:
    """One that works on a bisection.

    Args:
        journal: that it shares with the others.
        search: a new one, which is the journal's `number`-th unless that has begun; None goes on with the last.
        number: counted from 1.
        max_runs: processes that may be spent in all, if it is to be another number than the journal's.

    Raises:
        ValueError: the journal is empty and there is no search, or it does not fit together.
    """

    def __init__(
        self,
        journal: Journal,
        search: "Search[str] | None" = None,
        *,
        number: int = 1,
        max_runs: int | None = None,
    ) -> None:
        self._journal, self._max_runs = journal, max_runs
        self._begun = self._followed = 0
        with journal.alone():
            events = journal.events()
            if search is not None and sum(event["event"] == "search" for event in events) < number:
                journal.write(search.log)
                events = journal.events()
            self._read(events)

    @property
    def search(self) -> "Search[str]":
        """The search, as far as this worker has followed it."""
        return self._search

    @property
    def number(self) -> int:
        """Which search of the journal that is, counted from 1."""
        return self._begun

    def run(
        self,
        runner: Runner,
        *,
        ahead: Ahead | None = None,
        tell: Callable[[Told], None] = lambda told: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Result[str]:
        """Run blocks until there is nothing left to do, and no other worker may change that.

        What `runner` raises ends it, KeyboardInterrupt too; its block is given back before.
        """
        while True:
            with self._journal.alone():
                self._catch_up()
                for number in set(self._journal.lost()).intersection(self._search.pending):
                    self._do(self._search.withdraw, number)
                block = self._do(self._search.next_block)
            if ahead is not None:
                ahead.expect(self._search.likely())
            if block is None:
                if not self._search.pending:
                    return self._search.result()
                tell(Told(self._search.progress()))
                if ahead is not None:
                    ahead.idle()
                sleep(SECONDS_TO_WAIT)
                continue
            try:
                values = tuple(runner(block.builds))
            except BaseException:
                with self._journal.alone():
                    self._give_back(block)
                raise
            with self._journal.alone():
                if self._is_mine(block):
                    self._do(self._search.record, block, values)
            tell(Told(self._search.progress(), block, values))

    def _give_back(self, block: Block[str]) -> None:
        if self._is_mine(block):
            self._do(self._search.withdraw, block)

    def _is_mine(self, block: Block[str]) -> bool:
        """Not if somebody took this worker for dead, or the search was begun anew."""
        before = self._begun
        self._catch_up()
        return self._begun == before and block.number in self._search.pending

    def _do(self, action: Callable[..., Any], *arguments: Any) -> Any:
        before = len(self._search.log)
        answer = action(*arguments)
        new = self._search.log[before:]
        if new:
            self._journal.write(new)
            self._followed += sum(event["event"] != "decided" for event in new)
        return answer

    def _catch_up(self) -> None:
        events = self._journal.events()
        if sum(event["event"] == "search" for event in events) != self._begun:
            self._read(events)
            return
        for event in events[self._followed :]:
            self._search.follow(event)
        self._followed = len(events)

    def _read(self, events: Sequence[Mapping[str, Any]]) -> None:
        begins = [index for index, event in enumerate(events) if event["event"] == "search"]
        if not begins:
            raise ValueError("nothing was searched yet")
        self._search: Search[str] = replay(events[begins[-1] :], max_runs=self._max_runs)
        self._begun, self._followed = len(begins), len(events)
