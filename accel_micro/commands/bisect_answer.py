"""`accel-micro bisect`: what is known of a bisection, written in each form."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from accel_micro.commands.common import Room, say_note

if TYPE_CHECKING:
    from accel_micro.bisect import Result
    from accel_micro.report.bisection import Answer
    from accel_micro.results.bisections import Bisection
    from accel_micro.results.questions import Question


def answer_of(bisection: "Bisection", question: "Question", result: "Result[str]", room: Room) -> "Answer":
    """What is known of a bisection, with what was noted of its builds."""
    from accel_micro.commands.bisect import runs_before
    from accel_micro.report.bisection import Answer

    notes: dict[str, list[str]] = {}
    for note in bisection.notes():
        notes.setdefault(str(note.get("build")), []).append(str(note.get("why")))
    builds = {build.id: room.ledger[build.id] for build in question.builds if build.id in room.ledger}
    return Answer(bisection.name, question, result, builds, notes, runs_before(bisection))


def _reproducer(answer: "Answer", room: Room) -> str | None:
    """A script that shows what was found, where something was and a script can."""
    from accel_micro.catalogue import NotASuite, load
    from accel_micro.catalogue.standalone import NotStandalone
    from accel_micro.measure import CLOCKS
    from accel_micro.report.bisection import headline
    from accel_micro.report.reproducer import reproducer

    question = answer.question
    if question.script is not None:
        if question.script.seconds:  # ours needs this package: how it is run says more than what it says
            from accel_micro.commands.bisect_explained import command

            what = "# with the Python of each build, in the folder of the model: seconds of a step"
            return f"{what}\n{command(question.script)}\n"
        try:
            return Path(question.script.path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None
    if answer.result.kind != "culprit" or question.case is None:
        return None
    clock = question.metric if question.metric in CLOCKS else "throughput"
    try:
        for benchmark in load(Path(room.conf.benchmark_dir)):
            if benchmark.op.name == question.case.op:
                return reproducer(benchmark.op, question.case, clock=clock, note=headline(answer))
    except (NotASuite, NotStandalone) as error:
        say_note(f"no reproducer: {error}")
    return None


def write(answer: "Answer", form: str, room: Room) -> None:
    """Write an answer to standard output, as "text", "json" or "markdown"."""
    import json

    from accel_micro.report import bisection

    if form != "text":  # which has no room for a script
        answer = replace(answer, reproducer=_reproducer(answer, room))
    if form == "json":
        typer.echo(json.dumps(bisection.to_json(answer), indent=2))
    elif form == "markdown":
        typer.echo(bisection.to_markdown(answer), nl=False)
    else:
        typer.echo(bisection.render(answer), nl=False)
