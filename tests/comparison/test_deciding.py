"""The order of processes, the budget and the looks, with processes that exist on paper."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_micro.comparison.deciding import Decision, Event, Looked, Pair, Turn, decide
from accel_micro.measure import Process
from accel_micro.measure.records import Case, Failure, Record
from accel_micro.stats.looks import PLAN, Plan

Subject = tuple[str, str]
CLOCKS = ("throughput",)


def pair(name: str, clocks: tuple[str, ...] = CLOCKS) -> Pair[Subject]:
    return Pair((name, "A"), (name, "B"), clocks)


def case_of(subject: Subject) -> Case:
    return Case(op=f"ops.{subject[0]}", direction="forward", device="cpu", dtype="float32", shape="n=1")


@dataclass
class Machine:
    """Measures on paper: each process takes `process_seconds` and reads what `seconds` says.

    `fails` says of a process, by its subject and number, why it has no time.
    """

    seconds: Callable[[Subject, int], float]
    process_seconds: float = 1.0
    clocks: tuple[str, ...] = CLOCKS
    fails: Callable[[Subject, int], str | None] = lambda subject, number: None
    interrupts_at: int | None = None
    time: float = 100.0
    measured: list[Subject] = field(default_factory=list)
    events: list[Event[Subject]] = field(default_factory=list)
    renewed: list[tuple[int, list[Subject]]] = field(default_factory=list)

    def now(self) -> float:
        return self.time

    def __call__(self, subject: Subject) -> Record:
        if len(self.measured) == self.interrupts_at:
            raise KeyboardInterrupt
        number = self.measured.count(subject)
        self.measured.append(subject)
        self.time += self.process_seconds
        why = self.fails(subject, number)
        if why is not None:
            return Record(case_of(subject), failure=Failure("crashed", why))
        value = self.seconds(subject, number)
        read = {
            clock: Process("cpu", clock, (value,) * 3, (value,) * 3, (1.0,) * 3, 7) for clock in self.clocks
        }
        return Record(case_of(subject), clocks=read)

    def decide(
        self, pairs: Sequence[Pair[Subject]], budget_seconds: float = 1e9, plan: Plan = PLAN, at_once: int = 8
    ) -> list[Decision[Subject]]:
        return decide(
            pairs,
            self,
            budget_seconds=budget_seconds,
            plan=plan,
            at_once=at_once,
            now=self.now,
            tell=self.events.append,
            renew=lambda subjects: self.renewed.append((len(self.measured), list(subjects))),
        )


def noisy(ratios: dict[str, float], sd: float = 0.01, seed: int = 0) -> Callable[[Subject, int], float]:
    rng = np.random.default_rng(seed)

    def seconds(subject: Subject, number: int) -> float:
        ratio = ratios[subject[0]] if subject[1] == "B" else 1.0
        return float(1e-3 * ratio * np.exp(rng.normal(0, sd)))

    return seconds


def test_what_is_slower_is_a_regression_and_what_is_not_is_invariant() -> None:
    machine = Machine(noisy({"slow": 1.1, "same": 1.0, "fast": 0.9}, sd=0.002))
    slow, same, fast = machine.decide([pair("slow"), pair("same"), pair("fast")])
    assert (slow.verdict.kind, same.verdict.kind, fast.verdict.kind) == (
        "regression",
        "invariant",
        "improvement",
    )
    assert {d.stopped for d in (slow, same, fast)} == {"decided"}
    assert slow.verdict.q_value is not None
    assert slow.verdict.q_value <= 0.01
    assert slow.looks == 1
    assert len(slow.baseline) == len(slow.contender) == PLAN.processes[0]
    assert slow.baseline[0] == pytest.approx([1e-3] * 3, rel=0.02)


def abba(name: str, processes: int) -> list[Subject]:
    turns = [("A", "B") if i % 2 == 0 else ("B", "A") for i in range(processes)]
    return [(name, side) for turn in turns for side in turn]


@settings(deadline=None, max_examples=60)
@given(
    ratios=st.lists(st.sampled_from([0.5, 0.98, 1.0, 1.02, 1.05, 2.0]), min_size=1, max_size=6),
    sd=st.sampled_from([1e-4, 0.01, 0.05]),
    budget=st.integers(0, 200),
    at_once=st.integers(1, 4),
    seed=st.integers(0, 10_000),
)
def test_order_budget_and_ends(ratios: list[float], sd: float, budget: int, at_once: int, seed: int) -> None:
    names = [f"op{i}" for i in range(len(ratios))]
    machine = Machine(noisy(dict(zip(names, ratios, strict=True)), sd, seed))
    decisions = machine.decide([pair(name) for name in names], budget_seconds=budget, at_once=at_once)
    for name, decision in zip(names, decisions, strict=True):
        own = [subject for subject in machine.measured if subject[0] == name]
        assert own == abba(name, len(own))[: len(own)], "ABBA, whatever else is measured between"
        assert len(own) // 2 == len(decision.contender) == len(decision.baseline)
        if decision.stopped == "decided":
            assert decision.verdict.decided
        else:
            assert decision.verdict.kind == "inconclusive"
            assert decision.stopped == "budget" or len(decision.contender) == PLAN.processes[-1]
        assert decision.verdict.q_value is not None
    assert machine.time - 100 <= max(0, budget), (
        "no process is started after the end, and each takes a second"
    )
    if any(decision.stopped == "budget" for decision in decisions):
        assert machine.time - 100 == budget


def test_a_budget_is_exceeded_by_the_process_in_flight_only() -> None:
    machine = Machine(noisy({"same": 1.0}, sd=0.1), process_seconds=7)
    (decision,) = machine.decide([pair("same")], budget_seconds=100)
    assert decision.stopped == "budget"
    assert 100 <= machine.time - 100 < 107


def test_what_is_decided_is_not_measured_again() -> None:
    machine = Machine(noisy({"slow": 20.0, "open": 1.02}, sd=0.1))
    machine.decide([pair("slow"), pair("open")])
    assert machine.measured.count(("slow", "A")) == PLAN.processes[0]
    assert machine.measured.count(("open", "A")) == PLAN.processes[-1]
    told = [event for event in machine.events if isinstance(event, Looked)]
    assert [d.pair.baseline[0] for event in told for d in event.decided] == ["slow"]


def test_pairs_take_turns() -> None:
    machine = Machine(noisy({"x": 1.0, "y": 1.0, "z": 1.0}, sd=0.1))
    machine.decide([pair(name) for name in "xyz"], at_once=2, plan=Plan.even(2, 4))
    first = [name for name, _ in machine.measured[::2]]
    assert first == list("xyxyzzxyxyzz"), "two at once until a look, and all until the next one"


def test_what_a_turn_measures_is_told_before_it_and_each_side_is_measured_once_in_it() -> None:
    machine = Machine(noisy({"x": 1.0, "y": 1.0, "z": 1.0}, sd=0.1))
    machine.decide([pair(name) for name in "xyz"], at_once=2, plan=Plan.even(2, 4))
    starts = [start for start, _ in machine.renewed] + [len(machine.measured)]
    turns = [machine.measured[a:b] for a, b in itertools.pairwise(starts)]
    assert starts[0] == 0
    assert [sorted(turn) for turn in turns] == [sorted(told) for _, told in machine.renewed]
    assert all(len(set(turn)) == len(turn) for turn in turns)


def test_a_failure_ends_its_own_pair_only() -> None:
    machine = Machine(
        noisy({"dies": 1.5, "lives": 1.5}, sd=0.001),
        fails=lambda subject, number: "signal 11" if subject == ("dies", "B") and number == 1 else None,
    )
    dies, lives = machine.decide([pair("dies"), pair("lives")])
    assert dies.stopped == "failed"
    assert dies.verdict.kind == "inconclusive"
    assert dies.verdict.reason == "contender: crashed: signal 11"
    assert len(dies.contender) == 1, "of complete processes on both sides"
    assert machine.measured.count(("dies", "A")) == 1, "the second turn began with the contender"
    assert lives.verdict.kind == "regression"


def test_a_case_that_does_not_exist_on_one_side_says_so() -> None:
    def measure(subject: Subject) -> Record:
        return Record(case_of(subject), skipped="no such kernel")

    (decision,) = decide([pair("gone")], measure, budget_seconds=10)
    assert decision.stopped == "failed"
    assert decision.verdict.reason == "baseline: no such kernel"


def test_a_clock_that_is_missing_ends_its_own_line() -> None:
    machine = Machine(noisy({"slow": 1.5}, sd=0.001))
    read, missing = machine.decide([pair("slow", ("throughput", "device"))])
    assert read.verdict.kind == "regression"
    assert missing.verdict.reason == "baseline: no time by the device clock"


def test_clocks_of_a_pair_share_its_processes_and_keep_their_verdicts() -> None:
    calm, noisy_ = noisy({"op": 1.0}, sd=0.001), noisy({"op": 1.0}, sd=0.3)

    def measure(subject: Subject) -> Record:
        values = {"throughput": calm(subject, 0), "device": noisy_(subject, 0)}
        read = {c: Process("cpu", c, (value,), (value,), (1.0,), 7) for c, value in values.items()}
        return Record(case_of(subject), clocks=read)

    clocks = ("throughput", "device")
    same, open_ = decide([pair("op", clocks)], measure, budget_seconds=1e9, plan=Plan.even(4, 8))
    assert same.verdict.kind == "invariant"
    assert same.looks == 1
    assert len(same.contender) == 4, "the verdict is of the processes it was made from"
    assert open_.stopped == "looks"
    assert len(open_.contender) == 8


def test_ctrl_c_judges_what_is_there() -> None:
    machine = Machine(noisy({"slow": 1.5, "late": 1.5}, sd=0.001), interrupts_at=14)
    slow, late = machine.decide([pair("slow"), pair("late")], plan=Plan.even(10), at_once=1)
    assert slow.stopped == "decided", "seven processes a side are enough for half as much again"
    assert len(slow.contender) == 7
    assert late.stopped == "interrupted"
    assert late.contender == ()
    assert late.verdict.kind == "inconclusive"


def test_turns_tell_where_it_is() -> None:
    machine = Machine(noisy({"slow": 2.0}, sd=0.001))
    machine.decide([pair("slow")], budget_seconds=60)
    turns = [event for event in machine.events if isinstance(event, Turn)]
    assert [(t.subject[1], t.number, t.of, t.seconds_left) for t in turns[:3]] == [
        ("A", 1, 4, 60),
        ("B", 1, 4, 59),
        ("B", 2, 4, 58),
    ]
    assert machine.events[-1] == Looked((), 0, 1)


def test_no_pairs_take_no_time() -> None:
    machine = Machine(noisy({}))
    assert machine.decide([]) == []
    assert machine.time == 100


@pytest.mark.parametrize("family", [1, 25])
def test_noise_is_called_different_no_more_often_than_the_level_says(family: int) -> None:
    """2,000 pairs that do not differ, alone and in families; in a family any wrong call counts."""
    called = families = 0
    for seed in range(2000 // family):
        names = [str(i) for i in range(family)]
        machine = Machine(noisy(dict.fromkeys(names, 1.0), sd=0.01, seed=seed))
        kinds = {d.verdict.kind for d in machine.decide([pair(name) for name in names])}
        called += bool(kinds & {"regression", "improvement"})
        families += 1
    # The mean plus three standard deviations of a binomial with p = 0.01.
    assert called <= 0.01 * families + 3 * (0.01 * families) ** 0.5
