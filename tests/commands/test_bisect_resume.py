"""Going on with a bisection that another version of the program began."""

import dataclasses
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from accel_micro.bisect import Search
from accel_micro.commands import bisect as bisecting
from accel_micro.measure.records import Case
from accel_micro.results.bisections import Bisection
from accel_micro.results.questions import Named, Question

IDS = ("a" * 40, "b" * 40)
QUESTION = Question(
    builds=(Named(IDS[0], "2.15.0.dev20261101"), Named(IDS[1], "2.15.0.dev20261102")),
    starts=(IDS[0],),
    case=Case("matmul.mm", "forward", "cpu", "float32", "n=64"),
)


class Runner:
    expected = None

    def __call__(self, builds: Any) -> list[float]:
        return [1e-3] * len(builds)


def begun(results: Path, **changed: object) -> Bisection:
    bisection = Bisection.begin(results, "x", QUESTION.to_json())
    bisection.write([{**event, **changed} for event in Search(IDS).log])
    return bisection


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Bisection]:
    found: list[Bisection] = []

    @contextmanager
    def runner(bisection: Bisection, *_: object) -> Any:
        found.append(bisection)
        yield Runner()

    monkeypatch.setattr(bisecting, "_runner", runner)
    return found


def test_one_of_another_version_is_refused_in_a_sentence(tmp_path: Path, ran: list[Bisection]) -> None:
    with pytest.raises(
        bisecting.NoQuestion, match=r"cannot be gone on with: not the log of a search of version"
    ):
        bisecting.work(begun(tmp_path, version=2), QUESTION, None)  # type: ignore[arg-type]
    assert ran == [], "no build was made ready for it"


def test_one_of_this_version_goes_on(tmp_path: Path, ran: list[Bisection]) -> None:
    question = dataclasses.replace(QUESTION, max_runs=8)
    result = bisecting.work(begun(tmp_path), question, None, max_runs=8)  # type: ignore[arg-type]
    assert result.kind == "not_reproduced" and result.runs == 8 and len(ran) == 1
