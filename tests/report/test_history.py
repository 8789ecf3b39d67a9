"""The listing of proposed changes, as people and programs read it."""

import csv
import io
import json
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from accel_micro.builds import Build
from accel_micro.builds.identity import identify
from accel_micro.comparison.history import Changes, History, Outcome, Proposal, Settlement, Step, Whose
from accel_micro.measure.records import Case
from accel_micro.report.history import render
from accel_micro.stats.changes import Change, Point, Segment
from accel_micro.stats.verdict import Kind, Verdict

MM = Case("matmul.mm", "forward", "cuda", "bfloat16", "m=1024 k=1024 n=1024")
ADD = Case("pointwise.add", "backward", "cpu", "float32", "small: n=1|000")


def nightly(day: int) -> Build:
    return identify(f"2.14.0.dev202611{day:02d}")


BUILDS = tuple(nightly(day) for day in range(1, 21) if day not in (9, 10))


def proposal(case: Case, index: int, ratio: float, undone: int | None = None, spread: int = 0) -> Proposal:
    history = History(
        Whose("workshop", "env", case, "throughput", "nightly"),
        BUILDS,
        (Point((1e-5,)),) * len(BUILDS),
        (frozenset(),) * len(BUILDS),
    )
    change = Change(
        index, index - spread, index, ratio, ratio * 0.99, ratio * 1.01,
        Segment(0, index, 1.234e-5), Segment(index, len(BUILDS), 1.234e-5 * ratio), 2.5, 0.01, 0.3,
    )  # fmt: skip
    gone = None if undone is None else BUILDS[undone]
    return Proposal(history, change, "undone" if gone else "present", gone, True, 0.02)


def step(*proposals: Proposal, same_commit: bool = False) -> Step:
    first = proposals[0]
    between = tuple(nightly(d) for d in (9, 10) if first.before.id < nightly(d).id < first.after.id)
    return Step("workshop", "env", first.before, first.after, between, same_commit, proposals)


CHANGES = Changes(
    steps=(
        step(proposal(MM, 14, 1.062), proposal(ADD, 14, 0.8)),
        step(proposal(MM, 11, 1.05), same_commit=True),
        step(proposal(ADD, 8, 1.31, undone=14, spread=1)),
    ),
    histories=40,
    short=2,
    builds=BUILDS,
    problems=("results/x.jsonl:3: not a record, skipped (\x1b[2J)", "another"),
)


def settled(proposal: Proposal, kind: Kind, ratio: float, outcome: Outcome, reason: str = "") -> Proposal:
    verdict = Verdict(kind, ratio, ratio * 0.995, ratio * 1.005, 1e-6, 0, 1e-5, reason, 6, 6, 0.01, 0.01)
    found = Settlement(outcome, proposal.surely_before, proposal.latest, verdict, reason)
    return replace(proposal, settlement=found)


SETTLED = replace(
    CHANGES,
    steps=(
        step(
            settled(proposal(MM, 14, 1.062), "regression", 1.058, "confirmed"),
            settled(
                proposal(ADD, 14, 0.8),
                "inconclusive",
                0.9,
                "open",
                "too noisy to call it different or the same",
            ),
        ),
        step(
            replace(
                proposal(MM, 11, 1.05),
                settlement=Settlement(
                    "not measured", BUILDS[10], BUILDS[11], reason="both builds are of one commit"
                ),
            ),
            same_commit=True,
        ),
        step(
            settled(
                proposal(ADD, 8, 1.31, spread=1), "invariant", 1.001, "refuted", "equal within the tolerance"
            )
        ),
    ),
)
NOTHING = Changes(steps=(), histories=1, short=0, builds=BUILDS)


@pytest.mark.parametrize("format", ["table", "markdown", "json", "csv"])
def test_forms_of_what_was_measured_anew(format: str, snapshot: SnapshotAssertion) -> None:
    assert render(SETTLED, format) == snapshot  # type: ignore[arg-type]


@pytest.mark.parametrize("format", ["table", "markdown", "json", "csv"])
def test_forms(format: str, snapshot: SnapshotAssertion) -> None:
    text = render(CHANGES, format)  # type: ignore[arg-type]
    assert text == snapshot
    assert "\x1b" not in text


def test_nothing_found() -> None:
    assert render(NOTHING) == "No change proposed in 1 history over 18 builds.\n"
    assert json.loads(render(NOTHING, "json"))["proposals"] == []
    assert len(list(csv.reader(io.StringIO(render(NOTHING, "csv"))))) == 1


def test_many_cases_are_folded_unless_all_are_asked_for() -> None:
    many = Changes((step(*[proposal(MM, 14, 1.05)] * 30),), 30, 0, BUILDS)
    assert "and 18 more; --all lists them" in render(many)
    assert render(many, all_rows=True).count("▲") == 30
    assert len(json.loads(render(many, "json"))["proposals"]) == 30


def test_builds_of_one_commit_are_not_worth_a_measurement() -> None:
    text = render(Changes((step(proposal(MM, 11, 1.05), same_commit=True),), 1, 0, BUILDS))
    assert "torch cannot be why" in text
    assert "--measure" not in text
