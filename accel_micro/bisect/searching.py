"""The search for the build that made an op slower, on a machine that cannot be trusted.

Three stages, told in docs/bisecting.md: a **gate** (do the ends differ at all?), the **search** proper (a posterior
over the builds, fed by blocks of four), and a **certificate** (fresh processes of the pair that it names). Whatever the
search believes, a pair is named only when the certificate says so, and that one holds its level on any machine.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic

import numpy as np

from accel_micro.bisect.hunt import Hunt, Levels, Measured, Pair
from accel_micro.bisect.likelihood import Floats, grid
from accel_micro.bisect.ratio import UNKNOWN, Ratio, broadened, exceeds, step_ratio
from accel_micro.bisect.result import Block, Build, Event, Kind, Progress, Result, Stage, Step

VERSION: Final = 3
"""Of the log. One of another version cannot be replayed: decisions would differ."""

MAX_RUNS: Final = 500
"""Enough for a step of twice the noise, whatever the machine does (docs/bisecting.md)."""

BLOCK: Final = 4
"""Processes of a block."""

_TAIL: Final = 0.0075
"""Of the posterior of a step beyond either end of its interval, for one that covers in 95 of 100.

A certificate stops as soon as it is sure, and so rather where chance made the step look large. Chosen by simulation.
"""

_ENDLESS: Final = 2**62

Direction = str
Measure = Callable[[Sequence[Build]], Sequence[float | None]]


class Search(Generic[Build]):
    """A search that is told what was measured, and says what to measure next.

    Several blocks may be in flight, each on a machine of its own. Given the seed, all that it asks for depends on its
    log alone: `replay` brings it back to where it was.
    """

    def __init__(
        self,
        builds: Sequence[Build],
        *,
        direction: Direction = "slower",
        error_rate: float = 0.05,
        max_runs: int = MAX_RUNS,
        seed: int = 0,
    ) -> None:
        """Prepare a search.

        Args:
            builds: from old to new, the first believed to be good and the last to be bad.
            direction: `slower`, `faster` or `either`: what is searched for.
            error_rate: how often a search may name a pair that does not differ.
            max_runs: processes that may be spent.
            seed: draws the order of builds within a block.

        Raises:
            ValueError: fewer than two builds, an error rate not between 0 and 0.5, or an unknown direction.
        """
        if len(builds) < 2:
            raise ValueError(f"a search needs two builds, not {len(builds)}")
        if not 0 < error_rate <= 0.5:
            raise ValueError(f"the error rate must lie between 0 and 0.5, not {error_rate!r}")
        self.builds, self.error_rate, self.max_runs, self.seed = tuple(builds), error_rate, max_runs, seed
        self._levels = Levels(error_rate)
        self._hunts = [Hunt(0, len(builds) - 1, grid(direction), self._levels)]
        self._current: Hunt | None = self._hunts[0]
        self._steps: list[Pair] = []
        self._measured: list[Measured] = []
        self._pending: dict[int, tuple[Stage, Pair, list[int]]] = {}
        self._slots: dict[int, int] = {}
        self._numbers = 0
        self._succeeded = np.zeros(len(builds), dtype=int)
        self._failed = np.zeros(len(builds), dtype=int)
        self._log: list[Event] = [
            {
                "event": "search",
                "version": VERSION,
                "builds": [str(build) for build in builds],
                "direction": direction,
                "error_rate": error_rate,
                "max_runs": max_runs,
                "seed": seed,
            }
        ]

    # What to run

    @property
    def log(self) -> tuple[Event, ...]:
        """All that happened, as records that JSON can hold."""
        return tuple(self._log)

    @property
    def runs(self) -> int:
        """Processes that were recorded, failed ones included."""
        return int(self._succeeded.sum() + self._failed.sum())

    @property
    def pending(self) -> tuple[int, ...]:
        """Numbers of the blocks in flight."""
        return tuple(self._pending)

    @property
    def done(self) -> bool:
        """Whether no further block will be asked for, unless one in flight is withdrawn."""
        flying = sum(len(builds) for _, _, builds in self._pending.values())
        return self._current is None or self.runs + flying + BLOCK > self.max_runs

    def next_block(self) -> Block[Build] | None:
        """The next block to run, or None when done.

        It may be called again before the block is recorded: the next one is for another machine.
        """
        if self.done or self._current is None:
            return None
        number = self._numbers
        self._numbers += 1
        # The lowest that is free: two that work side by side keep theirs, and one of them always asks for the middle.
        slot = next(slot for slot in range(len(self._slots) + 1) if slot not in self._slots.values())
        stage, pair, builds = self._current.propose(self._usable(self._current), slot)
        order = np.random.default_rng([self.seed, number]).permutation(len(builds))
        builds = [builds[i] for i in order]
        self._pending[number], self._slots[number] = (stage, pair, builds), slot
        self._note("block", number=number, stage=stage, builds=builds)
        return Block(number, tuple(self.builds[build] for build in builds))

    def likely(self) -> tuple[Build, ...]:
        """Builds that coming blocks may ask for, the likeliest first, so that they can be made ready meanwhile."""
        if self.done or self._current is None:
            return ()
        usable = self._usable(self._current)
        return tuple(self.builds[i] for i in self._current.likely(usable)) if len(usable) > 1 else ()

    def withdraw(self, block: Block[Build] | int) -> None:
        """Forget a block in flight: its machine is gone. Its order is not drawn again.

        Raises:
            ValueError: it is not in flight.
        """
        number = block if isinstance(block, int) else block.number
        self._take(number)
        self._note("withdrawn", number=number)

    def record(self, block: Block[Build] | int, seconds: Sequence[float | None]) -> None:
        """Tell what a block gave.

        Args:
            seconds: of each process of the block, in its order, the median; None where the build does not work.

        Raises:
            ValueError: the block is not in flight, or there is not one positive time or None for each process.
        """
        number = block if isinstance(block, int) else block.number
        if number in self._pending and len(self._pending[number][2]) != len(seconds):
            raise ValueError(f"{len(seconds)} values for a block of {len(self._pending[number][2])} builds")
        for value in seconds:
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"a time is not a positive number of seconds: {value!r}")
        stage, pair, builds = self._take(number)
        self._note("values", number=number, seconds=list(seconds))
        for build, value in zip(builds, seconds, strict=True):
            (self._failed if value is None else self._succeeded)[build] += 1
        values = [(build, value) for build, value in zip(builds, seconds, strict=True) if value is not None]
        if values:
            logs = np.log([value for _, value in values])
            measured = Measured(stage, pair, tuple(build for build, _ in values), logs)
            self._measured.append(measured)
            if self._current is not None:
                self._current.add(measured)
        self._advance()

    def follow(self, event: Event) -> None:
        """Do what another process with the same search did, told by its log.

        Raises:
            ValueError: this search would not have done that.
        """
        if event["event"] == "block":
            allowed, self.max_runs = self.max_runs, _ENDLESS  # it may have been allowed more
            block = self.next_block()
            self.max_runs = allowed
            if block is None or list(self._pending[block.number][2]) != list(event["builds"]):
                raise ValueError(f"the search would not have asked for block {event['number']} of its log")
        elif event["event"] == "values":
            self.record(event["number"], event["seconds"])
        elif event["event"] == "withdrawn":
            self.withdraw(event["number"])

    def _take(self, number: int) -> tuple[Stage, Pair, list[int]]:
        if number not in self._pending:
            raise ValueError(f"block {number} is not in flight")
        del self._slots[number]
        return self._pending.pop(number)

    def _note(self, event: str, **what: Any) -> None:
        self._log.append({"event": event, **what})

    # What is decided

    def _works(self, build: int) -> bool:
        """A build is broken once it failed more often than it worked, so at its first failure if that comes first."""
        return bool(self._failed[build] <= self._succeeded[build])

    def _usable(self, hunt: Hunt) -> list[int]:
        return [build for build in range(hunt.low, hunt.high + 1) if self._works(build)]

    def _advance(self) -> None:
        while self._current is not None:
            hunt = self._current
            usable = self._usable(hunt)
            if len(usable) < 2:
                self._note("decided", what="no usable build", builds=[hunt.low, hunt.high])
                self._next_hunt()
                continue
            before = hunt.stage
            if not hunt.advance(usable):
                return
            if hunt.outcome == "confirmed":
                self._note("decided", what="confirmed", builds=list(hunt.pair))
                self._steps.append(hunt.pair)
                self._divide(hunt)
            elif hunt.outcome == "not_reproduced":
                self._note("decided", what="not reproduced", builds=list(hunt.pair))
            elif hunt.stage != before:
                self._note("decided", what=f"{before} to {hunt.stage}", builds=list(hunt.pair))
            if hunt.outcome:
                self._next_hunt()

    def _divide(self, hunt: Hunt) -> None:
        """Hunt on both sides of a step that is smaller than the difference of the ends."""
        good, bad = hunt.pair
        whole, part = self._ends(hunt), self._expected(hunt.pair)
        if not exceeds(whole, [part]):
            return
        for low, high in ((hunt.low, good), (bad, hunt.high)):
            if low < high:
                self._hunts.append(Hunt(low, high, hunt.hypotheses, self._levels))

    def _next_hunt(self) -> None:
        """The next range; it begins with what is known of its builds already."""
        assert self._current is not None
        index = self._hunts.index(self._current) + 1
        self._current = self._hunts[index] if index < len(self._hunts) else None
        if self._current is not None:
            for measured in self._measured:
                self._current.know(measured)

    # What is known

    def result(self) -> Result[Build]:
        """The answer, or how it stands."""
        first = self._hunts[0]
        working = [build for build in range(len(self.builds)) if self._works(build)]
        steps = tuple(self._step(pair) for pair in self._steps)
        ends = self._ends(first)
        kind: Kind
        if steps:
            kind, suspects = "culprit", steps[0].suspects
        elif len(working) < 2:
            kind, suspects = "no_usable_build", ()
        elif first.stage == "gate":
            kind, suspects = "not_reproduced", ()
        else:
            low, high = first.suspects(1 - self.error_rate)
            kind, suspects = "undecided", self._after(*self._outwards(low, high))
        return Result(
            kind=kind,
            steps=steps,
            suspects=suspects,
            ratio=steps[0].ratio if steps else ends,
            ends=ends,
            unexplained=bool(steps) and exceeds(ends, [self._expected(pair) for pair in self._steps]),
            error_rate=self.error_rate,
            runs=self.runs,
            broken=tuple(self.builds[i] for i in range(len(self.builds)) if not self._works(i)),
            finished=self.done and not self._pending,
            log=self.log,
        )

    def progress(self) -> Progress[Build]:
        """How far it is."""
        hunt = self._current
        if hunt is None:
            return Progress("done", self.runs, 0, (0.0,) * len(self.builds), self.result().suspects)
        first_bad = np.zeros(len(self.builds))
        first_bad[hunt.low + 1 : hunt.high + 1] = hunt.dates.first_bad / hunt.dates.first_bad.sum()
        to_go = 0 if self.done else min(hunt.runs_to_go(self._usable(hunt)), self.max_runs - self.runs)
        suspects = self._after(*self._outwards(*hunt.suspects(0.95)))
        return Progress(hunt.stage, self.runs, to_go, tuple(map(float, first_bad)), suspects)

    def _step(self, pair: Pair) -> Step[Build]:
        good, bad = pair
        return Step(self.builds[good], self.builds[bad], self._after(good, bad), self._confirmed(pair))

    def _after(self, good: int, bad: int) -> tuple[Build, ...]:
        return self.builds[good + 1 : bad + 1]

    def _outwards(self, low: int, high: int) -> Pair:
        """The nearest builds that work on both sides."""
        while low > 0 and not self._works(low):
            low -= 1
        while high < len(self.builds) - 1 and not self._works(high):
            high += 1
        return low, high

    def _confirmed(self, pair: Pair) -> Ratio:
        """Of a pair, from its certificate alone: what chose it does not count again.

        It covers, whatever lies between the ends.
        """
        test = self._levels.tests["certificate", pair]
        prior = broadened(test.prior, test.hypotheses.steps)
        return self._ratio(pair, self._certificate(pair), prior, _TAIL)

    def _expected(self, pair: Pair) -> Ratio:
        """The same, if what the search says of the size of its step is true: what exceeds this is another step."""
        return self._ratio(pair, self._certificate(pair), self._levels.tests["certificate", pair].prior)

    def _certificate(self, pair: Pair) -> list[Measured]:
        return [m for m in self._measured if m.stage == "certificate" and m.pair == pair]

    def _ends(self, hunt: Hunt) -> Ratio:
        return self._ratio((hunt.low, hunt.high), self._measured)

    def _ratio(
        self, pair: Pair, blocks: Iterable[Measured], prior: Floats | None = None, tail: float = 0.025
    ) -> Ratio:
        chosen = []
        for measured in blocks:
            builds = np.array(measured.builds)
            inside = np.isin(builds, pair)
            chosen.append((measured.values[inside], builds[inside] == pair[1]))
        if not chosen:
            return UNKNOWN
        dates = self._hunts[0].dates
        return step_ratio(chosen, dates.machine.sum(axis=0), dates.hypotheses, prior, tail)


def search(
    builds: Sequence[Build],
    measure: Measure[Build],
    *,
    direction: Direction = "slower",
    error_rate: float = 0.05,
    max_runs: int = MAX_RUNS,
    seed: int = 0,
) -> Result[Build]:
    """Find the build that made an op slower.

    Args:
        measure: runs the builds that it is handed one after the other, each in a fresh process on the same machine,
            and returns for each the median of its samples in seconds, or None if the build does not work.
        builds, direction, error_rate, max_runs, seed: as for `Search`.

    Raises:
        ValueError: as for `Search`, or `measure` returned something else.
    """
    state = Search(builds, direction=direction, error_rate=error_rate, max_runs=max_runs, seed=seed)
    while (block := state.next_block()) is not None:
        state.record(block, measure(block.builds))
    return state.result()


def replay(
    log: Iterable[Mapping[str, Any]], builds: Sequence[Build] | None = None, *, max_runs: int | None = None
) -> "Search[Any]":
    """A search as it was when its log ended; blocks that were in flight still are.

    Args:
        log: the records of `Search.log`, such as they come back from JSON.
        builds: those that it began with; without them their names, as they are in the log.
        max_runs: processes that may be spent in all, if it is to be another number than before.

    Raises:
        ValueError: the log is of another version, of other builds, or does not fit together.
    """
    records = iter(log)
    head = next(records, {})
    if head.get("event") != "search" or head.get("version") != VERSION:
        raise ValueError(f"not the log of a search of version {VERSION}")
    names = head["builds"]
    if builds is not None and [str(build) for build in builds] != names:
        raise ValueError("the log is that of a search over other builds")
    state: Search[Any] = Search(
        names if builds is None else builds,
        direction=head["direction"],
        error_rate=head["error_rate"],
        max_runs=_ENDLESS,
        seed=head["seed"],
    )
    state._log[0] = {**state._log[0], "max_runs": head["max_runs"]}
    for record in records:
        state.follow(record)
    state.max_runs = head["max_runs"] if max_runs is None else max_runs
    return state
