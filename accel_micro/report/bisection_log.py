"""The log of a bisection for people: a line a block, and what was decided."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from accel_micro.report.bisection import compared
from accel_micro.report.units import quantity
from accel_micro.report.words import clean
from accel_micro.results.questions import Question


def lines(events: Iterable[Mapping[str, Any]], question: Question) -> Iterator[str]:
    """What happened, in order. Builds are named by their versions, each with what it gave."""
    what = question.metric if question.case else compared(question)
    yield clean(f"{question.title}: {what}, for {question.regress}")
    yield clean(question.command)
    names: list[str] = []
    blocks: dict[int, Mapping[str, Any]] = {}
    for event in events:
        kind = event.get("event")
        if kind == "search":
            names = [question.version(build) for build in event["builds"]]
            yield f"search over {len(names)} builds, torch {names[0]} to {names[-1]}, seed {event['seed']}"
        elif kind == "block":
            blocks[event["number"]] = event
        elif kind == "withdrawn":
            block = blocks.get(event["number"], {})
            yield f"block {event['number']} was given up: {clean(str(block.get('worker', '')))}"
        elif kind == "values":
            block = blocks.get(event["number"], {"builds": [], "stage": "?"})
            values = zip(block["builds"], event["seconds"], strict=False)
            told = ", ".join(f"{_short(names[build])} {_value(value, question)}" for build, value in values)
            yield clean(f"{event.get('when', '')}  block {event['number']} ({block['stage']}): {told}")
        elif kind == "decided":
            builds = " and ".join(f"torch {names[build]}" for build in event["builds"])
            yield f"  {event['what']}: {builds}"
        elif kind == "note":
            yield clean(f"  torch {question.version(str(event.get('build')))}: {event.get('why')}")


def _short(version: str) -> str:
    """The date of a nightly, which is what tells it from its neighbours."""
    _, dev, date = version.partition(".dev")
    return date.partition("+")[0] if dev else version


def _value(value: float | None, question: Question) -> str:
    if value is None:
        return "nothing"
    if question.regress == "error":
        return "works" if value == 1.0 else "fails"
    if question.metric == "error" or (question.script is not None and not question.script.seconds):
        return f"{value:.4g}"
    return quantity(value, "B" if question.metric == "memory" else "s", 4)
