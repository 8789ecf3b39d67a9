"""`accel-micro bisect`: what is asked, on which builds, and the work on it until it is answered."""

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from accel_micro.commands.bisect_ahead import Prepared
from accel_micro.commands.bisect_measure import measuring
from accel_micro.commands.bisect_script import scripting
from accel_micro.results.bisections import Bisection
from accel_micro.results.questions import Named, Question, Regress, Script
from accel_micro.shell import joined

if TYPE_CHECKING:
    from accel_micro.bisect import Result, Search, Told
    from accel_micro.catalogue.choosing import Chosen
    from accel_micro.commands.common import Room
    from accel_micro.measure.records import Case

INTERRUPTED: Final = 130
USUAL_DTYPE: Final = "float32"
"""Of the case where several match that differ in nothing else, and none was asked for."""

EXIT_CODES: Final = {"culprit": 0, "not_reproduced": 4, "undecided": 4, "no_usable_build": 3}


class NoQuestion(LookupError):
    """Nothing can be searched for what was asked; the message says why."""


@dataclass(frozen=True)
class Request:
    """What the user asked for; see `Question`.

    Attributes:
        benchmark: what is timed, as `catalogue.choosing.choose` takes it.
        good, bad: names of builds; without `good` it is looked for, without `bad` it is the newest nightly.
        from_report: the ends are those of the change that stored results propose for the benchmark.
        metric: None: that of the benchmark's name. device, dtype: of cases that match.
    """

    benchmark: str | None = None
    script: Script | None = None
    good: str | None = None
    bad: str | None = None
    from_report: bool = False
    device: str | None = None
    dtype: str | None = None
    metric: str | None = None
    regress: Regress = "slower"
    error_rate: float = 0.05
    max_runs: int = 500
    seed: int = 0
    variant: str | None = None
    python: str | None = None
    index: tuple[str, ...] = ()


def ask(request: Request, room: "Room") -> Question:
    """The question, with the builds that the ledger knows.

    Raises:
        NoQuestion: no case, or not one alone, no range, or no change that was proposed.
        NotASuite, UnknownBuild, AmbiguousBuild, BadIndex, NoInterpreter: as they say.
    """
    from accel_micro import host
    from accel_micro.builds.candidates import NoRange, find_candidates, starts

    chosen = None if request.benchmark is None else _chosen(request, room)
    case = chosen.case if chosen else None
    metric = request.metric or (chosen.clock if chosen else "throughput")
    good, bad = request.good, request.bad or "nightly"
    if request.from_report:
        assert case is not None
        good, bad, metric = _proposed(request, room, case, metric)
    python = request.python or next(iter(room.conf.pythons), None) or "same"
    sources = room.sources(list(request.index), request.variant, [python])
    try:
        found = find_candidates(room.ledger, good, bad, sources.targets[0])
    except NoRange as error:
        raise NoQuestion(str(error)) from None
    if len(found.builds) < 2:
        raise NoQuestion("there are not two builds in this range that can be run here")
    ids = [build.id for build in found.builds]
    inside = [b for b in room.ledger.ordered(found.builds[-1].channel) if b.id in {*ids, *found.left_out}]
    return Question(
        builds=tuple(Named(build.id, build.version) for build in inside),
        starts=starts(found.builds, room.ledger) if good is None else (ids[0],),
        regress=request.regress,
        metric=metric,
        case=case,
        script=request.script,
        left_out=found.left_out,
        variant=found.variant,
        python=python,
        device=case.device if case else request.device or "cpu",
        error_rate=request.error_rate,
        max_runs=request.max_runs,
        seed=request.seed,
        machine={"python": sources.targets[0].python, **host.machine_facts()},
        command=joined(["accel-micro", *sys.argv[1:]]),
    )


def _chosen(request: Request, room: "Room") -> "Chosen":
    from accel_micro.catalogue import load
    from accel_micro.catalogue.choosing import NotOneCase, choose

    ops, text = load(Path(room.conf.benchmark_dir)), request.benchmark or ""
    devices = [request.device or "cpu"]
    try:
        return choose(ops, text, devices, dtypes=[request.dtype] if request.dtype else [])
    except NotOneCase as error:
        with contextlib.suppress(NotOneCase):
            if request.dtype is None:
                return choose(ops, text, devices, dtypes=[USUAL_DTYPE])
        raise NoQuestion(str(error)) from None


def _proposed(request: Request, room: "Room", case: "Case", metric: str) -> tuple[str, str, str]:
    """The ends and the clock of the largest change that stored results propose for a case."""
    import re

    from accel_micro.comparison.pairing import name_of
    from accel_micro.comparison.searching import HistoryRequest, NothingMeasured, find

    wanted = HistoryRequest(bench=(re.escape(name_of(case)),), clocks=(metric,))
    try:
        changes = find(wanted, Path(room.conf.results_dir), room.ledger)
    except NothingMeasured as error:
        raise NoQuestion(str(error)) from None
    whose = (proposal for proposal in changes.proposals if proposal.history.whose.case == case)
    proposals = [proposal for proposal in whose if proposal.history.whose.clock == metric]
    if request.regress != "either":
        proposals = [proposal for proposal in proposals if proposal.slower == (request.regress == "slower")]
    if not proposals:
        raise NoQuestion(
            f"stored results propose no such change of {case}; `accel-micro compare --history` lists all"
        )
    largest = max(proposals, key=lambda proposal: abs(math.log(proposal.change.ratio)))
    return largest.surely_before.id, largest.latest.id, metric


def begin(question: Question, results: Path) -> Bisection:
    """Write a question down, to be worked on.

    Raises:
        OSError: it cannot be written.
    """
    case, script = question.case, question.script
    name = script.title.partition(" (")[0] or Path(script.path).stem if script else ""
    title = case.op if case else name
    return Bisection.begin(results, title, question.to_json())


def _check(bisection: Bisection) -> None:
    with bisection.alone():
        if not bisection.events():
            return
        try:
            replayed(bisection)
        except ValueError as error:
            raise NoQuestion(
                f"{bisection.path.stem} cannot be gone on with: {error}; begin it anew"
            ) from None


def work(
    bisection: Bisection,
    question: Question,
    room: "Room",
    *,
    config: Path | None = None,
    results: Path | None = None,
    max_runs: int | None = None,
    tell: "Callable[[Told, Question], None]" = lambda told, question: None,
    say: Callable[[str], None] = lambda text: None,
) -> "Result[str]":
    """Work on a bisection until it is answered, alone or together with others.

    Where the good build is looked for, a search that does not show the ends to differ is followed by one that begins
    earlier.

    Args:
        max_runs: of each search, if it is to be another number than the question's.

    Raises:
        NoQuestion: its log is of another version of the search, or does not fit together.
        KeyboardInterrupt: somebody pressed Ctrl-C; the block in flight is given back.
        SessionError: nothing can be run now; what was measured is kept, and it can be gone on with.
    """
    from accel_micro.bisect import Worker

    _check(bisection)
    with bisection.at_work(), _runner(bisection, question, room, config, results, say) as runner:
        number = max(sum(event["event"] == "search" for event in bisection.events()), 1)
        while True:
            first = _search(question, number - 1)
            worker = Worker(bisection, first, number=number, max_runs=max_runs)
            result = worker.run(runner, ahead=runner.expected, tell=lambda told: tell(told, question))
            number = worker.number
            good_end = result.kind in ("not_reproduced", "no_usable_build")
            spent = result.runs + 4 > worker.search.max_runs
            if not good_end or number >= len(question.starts) or spent:
                return result
            say(
                f"no change since torch {question.version(question.starts[number - 1])}; looking further back"
            )
            number += 1


def _search(question: Question, index: int) -> "Search[str]":
    from accel_micro.bisect import Search

    return Search(
        question.ids(question.starts[index]),
        direction="slower" if question.regress == "error" else question.regress,
        error_rate=question.error_rate,
        max_runs=question.max_runs,
        seed=question.seed,
    )


@contextlib.contextmanager
def _runner(
    bisection: Bisection,
    question: Question,
    room: "Room",
    config: Path | None,
    results: Path | None,
    say: Callable[[str], None],
) -> Iterator[Prepared]:
    noted = {(note.get("build"), note.get("why")) for note in bisection.notes()}

    def note(build: str, why: str) -> None:
        if (build, why) not in noted:
            noted.add((build, why))
            bisection.note(build=build, why=why)

    if question.script is not None:
        with scripting(question, room.conf, room.ledger, note, say) as runner:
            yield runner
    else:
        with measuring(question, config, results, note, say) as runner:
            yield runner


def replayed(bisection: Bisection) -> "Search[str]":
    """The last search of a bisection as its log has it.

    Raises:
        ValueError: nothing was searched yet, or the log does not fit together.
    """
    from accel_micro.bisect import replay

    _, last = _parted(bisection)
    return replay(last)


def runs_before(bisection: Bisection) -> int:
    """How many runs the searches before the last one took."""
    earlier, _ = _parted(bisection)
    return sum(len(event["seconds"]) for event in earlier if event["event"] == "values")


def _parted(bisection: Bisection) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The events before the last search began, and its own."""
    events = bisection.events()
    begins = [index for index, event in enumerate(events) if event["event"] == "search"]
    if not begins:
        raise ValueError("nothing was searched yet")
    return events[: begins[-1]], events[begins[-1] :]


def with_script(request: Request, path: Path, arguments: Sequence[str], timeout_seconds: float) -> Request:
    """A request about a script; whether numbers are compared follows from what is searched for.

    Raises:
        NoQuestion: there is no such file.
    """
    if not path.is_file():
        raise NoQuestion(f"there is no script {path}")
    numbers = request.regress != "error"
    script = Script(str(path.absolute()), tuple(arguments), timeout_seconds, numbers)
    return replace(request, script=script)
