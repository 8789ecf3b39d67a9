"""The driver: who does what, what is written when, and what survives."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from accel_micro.bisect import Search, Told, Worker

NAMES = [f"b{i:02}" for i in range(20)]
CULPRIT = 13


class Memory:
    """A journal that is not written anywhere, and notes the order of what happens."""

    def __init__(self) -> None:
        self.kept: list[dict[str, Any]] = []
        self.dead: list[int] = []
        self.order: list[str] = []
        self.held = False

    @contextmanager
    def alone(self) -> Iterator[None]:
        assert not self.held
        self.held = True
        yield
        self.held = False

    def events(self) -> list[dict[str, Any]]:
        assert self.held
        return [event for event in self.kept if event["event"] != "decided"]

    def write(self, events: Sequence[Mapping[str, Any]]) -> None:
        assert self.held
        self.kept += [dict(event) for event in events]
        self.order += [str(event["event"]) for event in events]

    def lost(self) -> list[int]:
        return self.dead


class Machine:
    """Runs blocks: builds from the culprit on take 1.3 times as long."""

    def __init__(self, journal: Memory) -> None:
        self.journal, self.blocks = journal, 0

    def __call__(self, builds: Sequence[str]) -> list[float | None]:
        assert not self.journal.held, "nobody waits for a block"
        self.blocks += 1
        self.journal.order.append("run")
        return [1.3 if NAMES.index(build) >= CULPRIT else 1.0 for build in builds]


def test_a_block_is_noted_before_it_is_run_and_its_values_after() -> None:
    journal = Memory()
    told: list[Told] = []
    result = Worker(journal, Search(NAMES)).run(Machine(journal), tell=told.append)
    assert result.culprit == ("b12", "b13")
    order = [event for event in journal.order if event != "decided"]
    assert order == ["search", *["block", "run", "values"] * (result.runs // 4)]
    assert [one.block.number for one in told if one.block] == list(range(result.runs // 4))
    assert told[-1].progress.stage == "done"


class Expecting:
    """What is told ahead, in the order of events."""

    def __init__(self, journal: Memory) -> None:
        self.journal, self.expected = journal, [()]

    def expect(self, builds: Sequence[str]) -> None:
        assert not self.journal.held
        self.expected.append(tuple(builds))
        self.journal.order.append("expect")

    def idle(self) -> None:
        assert not self.journal.held
        self.journal.order.append("idle")


def test_what_is_likely_is_told_before_each_block_and_is_often_asked_for() -> None:
    journal = Memory()
    ahead = Expecting(journal)
    Worker(journal, Search(NAMES)).run(Machine(journal), ahead=ahead)
    order = [event for event in journal.order if event in ("block", "expect", "run", "idle")]
    blocks = order.count("run")
    assert order == [*["block", "expect", "run"] * blocks, "expect"], "a worker that has work is never idle"
    assert ahead.expected[1] == (), "ends that may be alike need no other builds"
    assert ahead.expected[-1] == (), "it is done"
    asked = [[NAMES[i] for i in event["builds"]] for event in journal.kept if event["event"] == "block"]
    told: set[str] = set()
    hits = []
    for builds, likely in zip(asked, ahead.expected, strict=False):
        told |= set(likely)
        hits += [build in told for build in set(builds) - {NAMES[0], NAMES[-1]}]
    assert sum(hits) > len(hits) / 2


def test_who_waits_for_others_is_idle_before_every_look() -> None:
    journal = Memory()
    first, second = Worker(journal, Search(NAMES, max_runs=8)), Worker(journal)
    ahead = Expecting(journal)

    def look(seconds: float) -> None:
        journal.order.append("look")
        if journal.order.count("look") == 3:
            raise StopIteration

    def slow(builds: Sequence[str]) -> Sequence[float | None]:
        if machine.blocks == 1:  # the last block that is allowed: the other one has nothing to do
            with pytest.raises(StopIteration):
                second.run(machine, ahead=ahead, sleep=look)
        return machine(builds)

    machine = Machine(journal)
    first.run(slow)
    order = [event for event in journal.order if event in ("expect", "idle", "look")]
    assert order == ["expect", "idle", "look"] * 3


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_block_that_was_broken_off_is_given_back(error: type[BaseException]) -> None:
    journal = Memory()
    machine = Machine(journal)

    def broken(builds: Sequence[str]) -> Sequence[float | None]:
        if machine.blocks == 5:
            raise error
        return machine(builds)

    with pytest.raises(error):
        Worker(journal, Search(NAMES)).run(broken)
    assert journal.order[-2:] == ["block", "withdrawn"]
    again = Worker(journal).run(Machine(journal))
    assert again.culprit == ("b12", "b13")
    assert journal.order.count("withdrawn") == 1


def test_a_crash_loses_the_block_in_flight_alone() -> None:
    journal = Memory()
    machine = Machine(journal)
    kept: list[dict[str, Any]] = []

    def crashing(builds: Sequence[str]) -> Sequence[float | None]:
        if machine.blocks == 6:
            kept.extend(journal.kept)  # what is on the disk when the power goes
            raise SystemExit
        return machine(builds)

    with pytest.raises(SystemExit):
        Worker(journal, Search(NAMES)).run(crashing)
    journal.kept = kept
    journal.dead = [6]
    result = Worker(journal).run(Machine(journal))
    assert result.culprit == ("b12", "b13")
    assert result.runs == 4 * journal.order.count("values")


def test_one_worker_follows_what_others_did() -> None:
    journal = Memory()
    first = Worker(journal, Search(NAMES))
    second = Worker(journal)
    machine = Machine(journal)
    blocks = 0

    class Stuck(Exception):
        pass

    def stuck(seconds: float) -> None:
        raise Stuck

    def one_block(builds: Sequence[str]) -> Sequence[float | None]:
        nonlocal blocks
        blocks += 1
        if blocks == 3:  # the other works meanwhile, to the end of what it can do alone
            second.run(machine, sleep=stuck)
        return machine(builds)

    with pytest.raises(Stuck):
        first.run(one_block)
    result = Worker(journal).run(Machine(journal))
    assert result.culprit == ("b12", "b13")


def test_values_of_a_block_that_others_took_for_lost_are_dropped() -> None:
    journal = Memory()
    worker = Worker(journal, Search(NAMES))
    machine = Machine(journal)

    def slow(builds: Sequence[str]) -> Sequence[float | None]:
        if machine.blocks == 2:
            journal.dead = [2]
            other = Worker(journal)
            with journal.alone():
                other.search.withdraw(2)
                journal.write([other.search.log[-1]])
            journal.dead = []
        return machine(builds)

    result = worker.run(slow)
    assert result.culprit == ("b12", "b13")
    assert 2 not in [event["number"] for event in journal.kept if event["event"] == "values"]


def test_a_later_search_takes_over_once() -> None:
    journal = Memory()
    Worker(journal, Search(NAMES[15:])).run(Machine(journal))
    first = Worker(journal, Search(NAMES), number=2)
    second = Worker(journal, Search(NAMES), number=2)
    assert first.number == second.number == 2
    assert journal.order.count("search") == 2
    assert second.run(Machine(journal)).culprit == ("b12", "b13")


def test_an_empty_journal_needs_a_search() -> None:
    with pytest.raises(ValueError, match="nothing was searched yet"):
        Worker(Memory())


def test_more_runs_may_be_allowed() -> None:
    journal = Memory()
    result = Worker(journal, Search(NAMES, max_runs=24)).run(Machine(journal))
    assert result.kind == "undecided" and result.finished
    assert Worker(journal, max_runs=500).run(Machine(journal)).culprit == ("b12", "b13")
    assert Worker(journal).search.result().culprit == ("b12", "b13"), (
        "whoever reads it follows what was allowed"
    )
