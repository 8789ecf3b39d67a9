"""The answer of a bisection, as people, programs and issues read it."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from accel_micro.bisect import Search
from accel_micro.bisect.ratio import Ratio
from accel_micro.bisect.result import Progress, Result
from accel_micro.builds import Build, identify
from accel_micro.measure.records import Case
from accel_micro.report.bisection import Answer, plan, render, to_json, to_markdown
from accel_micro.report.bisection import asked as begun
from accel_micro.report.bisection_log import lines
from accel_micro.report.bisection_progress import bars, status
from accel_micro.results.questions import Named, Question, Script

DAYS = [day for day in range(1, 13) if day != 4]
BUILDS = [identify(f"2.15.0.dev202611{day:02}", f"{day:040x}") for day in DAYS]
IDS = [build.id for build in BUILDS]
LEFT_OUT = {IDS[2]: "made from the same commit as torch 2.15.0.dev20261102", IDS[6]: "broken: half `a` |file"}


def question(**changes: object) -> Question:
    asked = {
        "builds": tuple(Named(build.id, build.version) for build in BUILDS),
        "starts": (IDS[0],),
        "case": Case("matmul.mm", "backward", "cuda", "float32", "m=1024 k=1024 n=1024"),
        "left_out": LEFT_OUT,
        "variant": "cu130",
        "machine": {"python": "3.12", "cpu": "AMD EPYC 9654", "gpu": "NVIDIA H100 80GB HBM3"},
        "command": "accel-micro bisect 'matmul.mm ' --good 20261101 --bad 20261112",
    }
    return Question(**{**asked, **changes})  # type: ignore[arg-type]


def search(
    asked: Question, first_bad: str | None, *, broken: Sequence[str] = (), factor: float = 1.3
) -> Search[str]:
    state = Search(asked.ids(asked.starts[0]))
    while (block := state.next_block()) is not None:
        values: list[float | None] = []
        for place, build in enumerate(block.builds):
            bad = first_bad is not None and IDS.index(build) >= IDS.index(first_bad)
            noise = 1 + 0.002 * ((block.number * 7 + place * 3) % 5)
            values.append(None if build in broken else 35e-6 * noise * (factor if bad else 1.0))
        state.record(block, values)
    return state


def answer(asked: Question, state: Search[str], **changes: object) -> Answer:
    known: dict[str, Build] = {build.id: build for build in BUILDS}
    told = {"builds": known, "notes": {IDS[5]: ["crashed: \x1b[2Jsignal 11"]}, "runs_before": 16}
    result: Result[str] = state.result()
    return Answer("20261128-104500-matmul.mm", asked, result, **{**told, **changes})  # type: ignore[arg-type]


@pytest.fixture
def found() -> Answer:
    asked = question()
    return answer(asked, search(asked, IDS[7], broken=[IDS[5]]), reproducer="import torch\nprint(1)\n")


def test_a_culprit_in_words(golden: Any, found: Answer) -> None:
    assert render(found) == golden("txt")


def test_a_culprit_as_an_issue(golden: Any, found: Answer) -> None:
    text = to_markdown(found)
    assert text == golden("txt")
    assert "\x1b" not in text


def test_a_culprit_as_data(found: Answer) -> None:
    data = json.loads(json.dumps(to_json(found)))
    (step,) = data["steps"]
    assert [one["version"] for one in step["suspects"]] == [build.version for build in BUILDS[5:8]]
    assert step["ratio"]["low"] < 1.3 < step["ratio"]["high"]
    assert data["runs"] == 16 + found.result.runs
    assert data["question"]["case"]["op"] == "matmul.mm"


def test_other_answers_in_words(golden: Any) -> None:
    asked = question(left_out={})
    texts = [render(answer(asked, search(asked, None)))]
    few = Search(asked.ids(IDS[0]), max_runs=24)
    while (block := few.next_block()) is not None:
        few.record(block, [35e-6 * (1.3 if IDS.index(b) > 6 else 1.0) for b in block.builds])
    texts.append(render(answer(asked, few)))
    texts.append(render(answer(asked, search(asked, None, broken=IDS))))
    texts.append(render(answer(asked, Search(IDS))))
    stopped = question(regress="error", case=None, script=Script("/home/me/check.py"), left_out={})
    texts.append(render(answer(stopped, search(stopped, IDS[8], factor=2.0))))
    memory = question(metric="memory", left_out={})
    texts.append(render(answer(memory, search(memory, IDS[8], factor=2.5))))
    assert "\n-----\n".join(texts) == golden("txt")


def test_a_ratio_of_one_block_has_no_interval_and_says_so(found: Answer) -> None:
    """What a pair has that a generous error rate confirms with its first block."""
    (step,) = found.result.steps
    alone = replace(step, ratio=Ratio(4.41, 0.0, math.inf))
    told = replace(found, result=replace(found.result, steps=(alone,)))
    for text in (render(told), to_markdown(told)):
        assert "4.410, of too few blocks for an interval" in text
        assert "to inf" not in text and "95 % interval" not in text


def test_a_change_the_other_way_is_told_and_how_to_search_for_it() -> None:
    asked = question(left_out={})
    faster = render(answer(asked, search(asked, IDS[5], factor=0.7)))
    assert "Not reproduced" in faster
    assert "They differ the other way: --regress faster finds the build that brought it." in faster
    assert "the other way" not in render(answer(asked, search(asked, None)))


def test_the_plan(golden: Any) -> None:
    asked = question(starts=(IDS[8], IDS[3], IDS[0]))
    assert plan(asked, dict.fromkeys(IDS, 900_000_000)) == golden("txt")


def test_the_log(golden: Any) -> None:
    asked = question()
    state = search(asked, IDS[7], broken=[IDS[5]])
    events = [dict(event, when="2026-11-28T10:45:00+00:00", worker="host.1") for event in state.log]
    events.insert(5, {"event": "note", "build": IDS[5], "why": "crashed: signal 11"})
    events.insert(6, {"event": "withdrawn", "number": 1})
    assert "\n".join(lines(events, asked)) == golden("txt")


def test_an_operator_of_a_step_is_told_in_seconds(golden: Any) -> None:
    title = "forward _softmax in mine:net (cpu batch=4 threads=1)"
    script = Script("/here/one_op.py", ("mine:net",), numbers=True, title=title, seconds=True)
    asked = question(
        case=None, script=script, left_out={}, command="accel-micro bisect --from-explain mine.json"
    )
    state = search(asked, IDS[7], factor=4.8)
    told = answer(
        asked, state, notes={}, reproducer="# with the Python of each build\npython one_op.py mine:net\n"
    )
    texts = [
        begun(asked),
        render(told),
        plan(asked, {}),
        "\n".join([*lines(state.log, asked)][:4]),
        to_markdown(told),
    ]
    texts.append(render(answer(asked, search(asked, None), notes={})))
    text = "\n-----\n".join(texts)
    assert text == golden("txt")
    assert "what the script prints" not in text


def test_progress_shows_where_the_change_may_be(golden: Any) -> None:
    asked = question(left_out={})
    shares = [0.0, 0.02, 0.03, 0.05, 0.1, 0.5, 0.2, 0.07, 0.02, 0.01, 0.0]
    text = status(Progress("search", 24, 40, tuple(shares), ()), asked, 72.0, 80)
    gate = status(Progress("gate", 0, 44, (0.1,) * 11, ()), asked, 0.0, 80)
    assert "\n".join([*text, *gate]) == golden("txt")


def test_bars_have_room_for_every_build() -> None:
    assert len(bars([1 / 365] * 365, 100)) == 100
    assert bars([0.0, 1.0], 2) == " █"
    assert bars([0.001, 1.0], 2) == " █"
    assert bars([0.02, 1.0], 2) == "▁█", "what is not nothing is seen"
    assert bars([0.0, 0.0], 2) == "  "
