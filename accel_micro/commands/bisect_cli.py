"""`accel-micro bisect`: its options. Thin; imports happen when a command runs."""

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from accel_micro.commands.bisect_answer import answer_of, write
from accel_micro.commands.common import (
    ENVIRONMENT,
    WRONG_USE,
    Config,
    Room,
    StoredResults,
    reported,
    say_error,
    say_note,
    stderr,
)
from accel_micro.commands.help import Command, Group, write_parameters

if TYPE_CHECKING:
    from accel_micro.commands.bisect import Request
    from accel_micro.results.bisections import Bisection
    from accel_micro.results.questions import Question

RUN: Final = "run"
_EXITS: Final = (
    "Exits with 0 when a pair was confirmed; with 4 when the ends were not shown to differ, or it stayed undecided; "
    "with 3 when builds cannot be run; with 130 when interrupted, and --resume goes on."
)
_EXAMPLES: Final = """\
accel-micro bisect 'attention.sdpa forward float32 gpt2' --good 20261101 --bad 20261127
accel-micro bisect 'matmul.mm .* m=1024' --device cuda
accel-micro bisect --script ./check.py --good 2.12.0 --bad 2.13.0
accel-micro bisect --resume"""


class _RunByDefault(Group):
    """`accel-micro bisect BENCHMARK` is `accel-micro bisect run BENCHMARK`, and its help has the options of that."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Those of `run`: nobody needs to write the word."""
        return self.commands[RUN].collect_usage_pieces(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Those of `run`, then what else can be done with a bisection."""
        write_parameters(self.commands[RUN], ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The examples of `run`."""
        self.commands[RUN].format_epilog(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `run` before what is not a command's name or a plea for help."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = [RUN, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="bisect",
    help="Find the build that made an op slower, or made it fail: builds run by turns until fresh processes confirm it."
    f"\n\n{_EXITS}",
    no_args_is_help=True,
    cls=_RunByDefault,
)


class Format(str, Enum):
    """How an answer is written."""

    text = "text"
    json = "json"
    markdown = "markdown"


class LogFormat(str, Enum):
    """How the log of a bisection is written."""

    text = "text"
    json = "json"


class Metric(str, Enum):
    """What is compared."""

    throughput = "throughput"
    latency = "latency"
    dispatch = "dispatch"
    device = "device"
    memory = "memory"
    error = "error"


class Regress(str, Enum):
    """What the bad builds do."""

    slower = "slower"
    faster = "faster"
    either = "either"
    error = "error"


OutputFormat = Annotated[Format, typer.Option(help="Form of the answer on standard output.")]
Name = Annotated[str | None, typer.Argument(help="A bisection, or how its name begins; else the last one.")]
MaxRuns = Annotated[
    int | None, typer.Option(min=8, metavar="RUNS", help="Most processes of a search. [default: 500]")
]


@app.command(RUN, cls=Command, hidden=True, epilog=_EXAMPLES)
def run(
    benchmark: Annotated[
        str | None,
        typer.Argument(
            help="One case: a name from a page or a table, or a regular expression. With --resume a bisection.",
            show_default=False,
        ),
    ] = None,
    good: Annotated[
        str | None,
        typer.Option(
            metavar="BUILD",
            help="A build that was good; without it, one is looked for further and further back.",
        ),
    ] = None,
    bad: Annotated[
        str | None, typer.Option(metavar="BUILD", help="A build that is bad, else the newest nightly.")
    ] = None,
    from_report: Annotated[
        bool,
        typer.Option(
            "--from-report", help="Between the builds of the change that `compare --history` proposes."
        ),
    ] = False,
    device: Annotated[str | None, typer.Option(help="Device of the case, else the CPU.")] = None,
    dtype: Annotated[
        str | None, typer.Option(help="Dtype of the case, else float32 where several match.")
    ] = None,
    metric: Annotated[Metric | None, typer.Option(help="What is compared. [default: throughput]")] = None,
    regress: Annotated[
        Regress | None,
        typer.Option(help="What the bad builds do. [default: slower; of a script without a number: error]"),
    ] = None,
    script: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A check of your own, run by each build's Python: it ends with 0 good, 125 skip, else bad; "
            "with --regress slower, faster or either the number on its last line counts.",
        ),
    ] = None,
    from_explain: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="An operator that `explain --json` names, timed inside of the model's step."
        ),
    ] = None,
    op: Annotated[
        int, typer.Option(min=1, metavar="N", help="Which operator of --from-explain, the costliest first.")
    ] = 1,
    argument: Annotated[list[str] | None, typer.Option(help="Argument of the script, repeatable.")] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="How long a run of the script may take.")
    ] = 600.0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a bisection, or work on one that runs elsewhere.")
    ] = False,
    error_rate: Annotated[
        float, typer.Option(metavar="SHARE", help="How often a pair may be named that does not differ.")
    ] = 0.05,
    max_runs: MaxRuns = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Draws the order of builds.")] = 0,
    sync: Annotated[bool, typer.Option(help="Ask the indexes for builds and their commits first.")] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be searched, and do nothing.")
    ] = False,
    variant: Annotated[
        str | None, typer.Option(help="Of the wheels: cpu, cu130 …; else as configured.")
    ] = None,
    python: Annotated[str | None, typer.Option(help="Python to run builds with.")] = None,
    index: Annotated[
        list[str] | None, typer.Option(help="Index or folder of wheels, repeatable; else as configured.")
    ] = None,
    format: OutputFormat = Format.text,
    config: Config = None,
    out: StoredResults = None,
) -> None:
    """Find the build that brought a change, by running builds by turns until fresh processes confirm it.

    Exits with 0 when a pair was confirmed; with 4 when the ends were not shown to differ, or it stayed undecided; with
    3 when builds cannot be run; with 130 when interrupted, and --resume goes on.
    """
    from accel_micro.asv_plugin.embedding import SessionError
    from accel_micro.catalogue import NotASuite
    from accel_micro.commands import bisect as bisecting
    from accel_micro.comparison.sides import DTYPES
    from accel_micro.report.bisection import asked
    from accel_micro.report.bisection_progress import Watcher
    from accel_micro.results.bisections import NoBisection

    if not 0 < error_rate <= 0.5:
        _wrong(f"--error-rate must be larger than 0 and at most 0.5, not {error_rate:g}")
    if resume and (good or bad or script or from_report or from_explain):
        _wrong("--resume goes on with what was asked: it takes no build and no script")
    if not resume and sum(each is not None for each in (benchmark, script, from_explain)) != 1:
        _wrong("what is to be bisected? A BENCHMARK, a --script or --from-explain, or --resume")
    if from_report and (good or bad or benchmark is None):
        _wrong(
            "--from-report takes both builds from stored results; leave --good and --bad out and name the BENCHMARK"
        )
    if (script or from_explain) is not None and metric is not None:
        _wrong("--metric is for a BENCHMARK; a script prints what it likes")
    if from_explain is not None and regress is Regress.error:
        _wrong("--from-explain times an operator; --regress is slower, faster or either")
    chosen = regress.value if regress else "slower" if script is None else "error"
    if dtype is not None and dtype not in DTYPES:
        _wrong(f"unknown dtype {dtype!r}; known: {', '.join(dict.fromkeys(DTYPES.values()))}")
    watcher = Watcher(stderr())
    with reported():
        room = Room.of(config, out)
        results = Path(room.conf.results_dir)
        try:
            if resume:
                bisection, question = _found(results, benchmark)
            else:
                request = bisecting.Request(
                    benchmark=benchmark,
                    good=good,
                    bad=bad,
                    from_report=from_report,
                    device=device,
                    dtype=DTYPES[dtype] if dtype else None,
                    metric=metric.value if metric else None,
                    regress=chosen,  # type: ignore[arg-type]
                    error_rate=error_rate,
                    max_runs=max_runs or 500,
                    seed=seed,
                    variant=variant,
                    python=python,
                    index=tuple(index or ()),
                )
                if script is not None:
                    request = bisecting.with_script(request, script, argument or (), timeout)
                if from_explain is not None:
                    from accel_micro.commands.bisect_explained import with_explained

                    request = with_explained(request, from_explain, op, timeout, say_note)
                if sync:
                    _sync(room, request)
                question = bisecting.ask(request, room)
                if dry_run:
                    typer.echo(_plan(question, room), nl=False)
                    return
                bisection = bisecting.begin(question, results)
            watcher.say(f"Bisection {bisection.name}")
            watcher.say(f"  {asked(question)}")
            result = bisecting.work(
                bisection,
                question,
                room,
                config=config,
                results=None if out is None else results,
                max_runs=max_runs,
                tell=watcher.told,
                say=watcher.say,
            )
        except (bisecting.NoQuestion, NoBisection) as error:
            _wrong(str(error))
        except NotASuite as error:
            say_error(str(error))
            raise typer.Exit(ENVIRONMENT) from None
        except SessionError as error:
            say_error(str(error))
            if any(event["event"] == "values" for event in bisection.events()):
                say_note("what was measured is kept: accel-micro bisect --resume")
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            say_note("interrupted; accel-micro bisect --resume goes on")
            raise typer.Exit(bisecting.INTERRUPTED) from None
        answer = answer_of(bisection, question, result, room)
    write(answer, format.value, room)
    raise typer.Exit(bisecting.EXIT_CODES[result.kind])


@app.command(cls=Command, epilog="accel-micro bisect log")
def log(
    name: Name = None,
    format: Annotated[
        LogFormat, typer.Option(help="text, or json: the events as they are kept.")
    ] = LogFormat.text,
    config: Config = None,
    out: StoredResults = None,
) -> None:
    """Tell what a bisection did: every block, and what was decided after it."""
    from accel_micro.report.bisection_log import lines
    from accel_micro.results.bisections import NoBisection

    with reported():
        room = Room.of(config, out)
        try:
            bisection, question = _found(Path(room.conf.results_dir), name)
        except NoBisection as error:
            _wrong(str(error))
        if format is LogFormat.json:
            typer.echo(bisection.path.read_text(encoding="utf-8"), nl=False)
            return
        for line in lines(bisection.all_events(), question):
            typer.echo(line)


@app.command(cls=Command, epilog="accel-micro bisect replay --format markdown > issue.md")
def replay(
    name: Name = None,
    format: OutputFormat = Format.text,
    config: Config = None,
    out: StoredResults = None,
) -> None:
    """Decide again from a bisection's log, and write the answer in any form. Nothing is run.

    Exits as `run` does.
    """
    from accel_micro.commands import bisect as bisecting
    from accel_micro.results.bisections import NoBisection

    with reported():
        room = Room.of(config, out)
        try:
            bisection, question = _found(Path(room.conf.results_dir), name)
            search = bisecting.replayed(bisection)
        except (NoBisection, ValueError) as error:
            _wrong(str(error))
        answer = answer_of(bisection, question, search.result(), room)
    write(answer, format.value, room)
    raise typer.Exit(bisecting.EXIT_CODES[answer.result.kind])


@app.command("list", cls=Command, epilog="accel-micro bisect list")
def list_bisections(config: Config = None, out: StoredResults = None) -> None:
    """List the bisections beside the results, from old to new, each with its answer so far."""
    from accel_micro.commands import bisect as bisecting
    from accel_micro.report.bisection import headline
    from accel_micro.report.words import clean
    from accel_micro.results.bisections import bisections

    with reported():
        room = Room.of(config, out)
        found = bisections(Path(room.conf.results_dir))
        for bisection in found:
            try:
                question = _question(bisection)
                search = bisecting.replayed(bisection)
                text = headline(answer_of(bisection, question, search.result(), room))
            except (LookupError, ValueError) as error:
                text = str(error)
            typer.echo(f"{bisection.name}  {clean(text)}")
    if not found:
        typer.echo("There are no bisections yet.")


def _wrong(text: str) -> Any:
    for line in text.split("\n"):
        say_error(line) if line == text.split("\n")[0] else typer.echo(line, err=True)
    raise typer.Exit(WRONG_USE)


def _found(results: Path, name: str | None) -> "tuple[Bisection, Question]":
    from accel_micro.results.bisections import find

    bisection = find(results, name)
    return bisection, _question(bisection)


def _question(bisection: "Bisection") -> "Question":
    from accel_micro.results.bisections import NoBisection
    from accel_micro.results.questions import Question

    try:
        return Question.from_json(bisection.question)
    except (KeyError, TypeError, ValueError) as error:
        raise NoBisection(f"{bisection.path} is not a bisection: {error}") from None


def _sync(room: Room, request: "Request") -> None:
    """Ask the indexes; what cannot be reached is told, and the ledger goes on."""
    sources = room.sources(list(request.index), request.variant, [request.python] if request.python else None)
    for text in sources.sync(room.ledger).notes:
        say_note(text)


def _plan(question: "Question", room: Room) -> str:
    from accel_micro.report.bisection import plan

    sizes = {}
    for build in question.builds:
        known = [w.size_bytes for w in room.ledger.wheels(build.id) if w.variant == question.variant]
        sizes[build.id] = max((size for size in known if size is not None), default=None)
    return plan(question, sizes)
