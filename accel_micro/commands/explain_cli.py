"""`accel-micro capture` and `accel-micro explain`: their options. Thin; imports happen when a command runs."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from accel_micro.commands.common import ENVIRONMENT, WRONG_USE, need_torch, reported, say_error, say_note
from accel_micro.models import NAMES

if TYPE_CHECKING:
    from accel_micro.commands.explain import Explained
    from accel_micro.explain.capturing.taking import Request
    from accel_micro.explain.setting import Setting

MODEL_HELP = f"A reference network ({', '.join(NAMES)}), or package.module:function that returns a Model."
SETTING_HELP = "A device, or switches that differ: 'cuda', 'batch=64', 'onednn=off threads=1'."
Training = Annotated[
    bool, typer.Option("--training/--inference", help="A training step, or forward alone as in use.")
]
Processes = Annotated[
    int, typer.Option(min=1, metavar="N", help="Fresh processes a side; from three on they have an interval.")
]
Budget = Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="How long a process measures.")]
Replay = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        metavar="SECONDS",
        help="How long single ops are replayed and checked, once a side.  [default: 30, on an accelerator 120]",
        show_default=False,
    ),
]
Loader = Annotated[
    str,
    typer.Option(
        metavar="PACKAGE.MODULE:FUNCTION",
        help="A function that returns batches; loading and transfer are then timed too.",
    ),
]


def capture(
    model: Annotated[str, typer.Argument(help=MODEL_HELP)],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="File to write.")],
    device: Annotated[str, typer.Option(help="Device to run on.")] = "cpu",
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Examples in a batch.")] = 4,
    set: Annotated[
        str, typer.Option("--set", metavar="SWITCHES", help="Switches, such as 'threads=1 foreach=on'.")
    ] = "",
    training: Training = True,
    processes: Processes = 5,
    budget: Budget = 6.0,
    replay: Replay = None,
    loader: Loader = "",
) -> None:
    """Time a model's step on this machine, whole and op by op, and keep it in a file for `explain`.

    Exits with 0; with 2 when there is no such model or switch; with 3 when it cannot be run here.
    """
    from accel_micro.commands.explain import capture as capture_all
    from accel_micro.commands.explain_builds import with_builds
    from accel_micro.explain import file

    with _reported():
        out.parent.mkdir(parents=True, exist_ok=True)  # rather than after minutes
        need_torch()
        setting = _setting(set, device, batch)
        request = _request(model, training, processes, budget, replay, loader)
        with with_builds([setting], _tell) as settings:
            (found,) = capture_all(request, settings, _tell)
        file.write(found, out)
    for problem in found.problems:
        say_note(problem)
    seconds = found.step_seconds
    typer.echo(f"{out}: {1e3 * seconds:.4g} ms a step, {len(found.sequence)} ops", err=True)


def explain(
    baseline_file: Annotated[
        Path | None,
        typer.Argument(metavar="BASELINE", help="A capture; else --model is measured.", show_default=False),
    ] = None,
    contender_file: Annotated[
        Path | None, typer.Argument(metavar="CONTENDER", help="Another capture.", show_default=False)
    ] = None,
    model: Annotated[str | None, typer.Option(help=MODEL_HELP)] = None,
    baseline: Annotated[str, typer.Option(metavar="SETTING", help=SETTING_HELP)] = "cpu",
    contender: Annotated[str, typer.Option(metavar="SETTING", help=SETTING_HELP)] = "",
    batch: Annotated[
        int, typer.Option(min=1, metavar="N", help="Examples in a batch, where a side does not say.")
    ] = 4,
    batches: Annotated[
        str,
        typer.Option(
            metavar="SIZES", help="Four batch sizes or more, such as 4,8,16,32: how steps grow with them."
        ),
    ] = "",
    training: Training = True,
    processes: Processes = 5,
    budget: Budget = 6.0,
    replay: Replay = None,
    loader: Loader = "",
    confirm: Annotated[
        bool, typer.Option("--confirm/--no-confirm", help="Try the causes that can be tried on this machine.")
    ] = True,
    save: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Keep the captures here.")] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page that a browser opens without internet.")
    ] = None,
    publish: Annotated[
        bool,
        typer.Option("--publish", help="Put that page beside those of `accel-micro report`, which list it."),
    ] = False,
    published: Annotated[
        bool,
        typer.Option(
            "--published",
            help="Say instead what times that others published allow; BASELINE may be a file of yours.",
        ),
    ] = False,
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Write JSON to standard output, for programs and `bisect --from-explain`."
        ),
    ] = False,
) -> None:
    """Say why a model is faster on one side than on the other: which ops, how much Python, what is unexplained.

    Two captures, which may come from two machines; or --model with two settings, measured here by turns.

    Exits with 0 when there is a difference, or is shown to be none; with 4 when that stays open; with 2 on wrong use;
    with 3 when a side cannot be run here; with 130 when interrupted before each side had a process.
    """
    if published:
        with _reported():
            _published(
                baseline_file,
                contender_file or model or batches or contender or save or page or publish,
                json,
            )
        return
    with _reported():
        for folder in filter(None, (save, page and page.parent)):
            folder.mkdir(parents=True, exist_ok=True)
        found = _explained(
            baseline_file, contender_file, model, baseline, contender, batch, batches, confirm, save,
            lambda name: _request(name, training, processes, budget, replay, loader),
        )  # fmt: skip
    from accel_micro.report import explain as report
    from accel_micro.report import explain_words as words

    parts = (found.explanation, found.causes, found.ablations, found.fit)
    if page is not None:
        _write_page(page, parts)
    if publish:
        _publish_page(parts)
    if json:
        typer.echo(report.to_json(*parts), nl=False)
        say_note(words.summary(found.explanation))  # whoever sends the JSON to a file sees nothing else
        if which := words.which_build(found.explanation, "where this JSON goes"):
            say_note(which)
    else:
        report.render(*parts)
    raise typer.Exit(4 if found.explanation.verdict.kind == "inconclusive" else 0)


def _explained(
    first: Path | None,
    second: Path | None,
    model: str | None,
    baseline: str,
    contender: str,
    batch: int,
    batches: str,
    confirm: bool,
    save: Path | None,
    request: "Callable[[str], Request]",
) -> "Explained":
    from accel_micro.commands import explain as explaining
    from accel_micro.commands.explain_builds import with_builds
    from accel_micro.explain import file

    if first is not None or second is not None:
        if first is None or second is None or model is not None:
            _wrong("two captures are explained: BASELINE CONTENDER; or --model is measured, without files")
        return explaining.explain_files(file.read(first), file.read(second))
    if model is None:
        _wrong("name two captures, or a --model to measure here")
    need_torch()
    if batches:
        words = [word.strip() for word in batches.split(",") if word.strip()]
        for word in words:
            if not (word.isdecimal() and int(word) > 0):
                _wrong(f"--batches wants numbers, such as 4,8,16,32, not {word!r}")
        sizes = sorted(set(map(int, words)))
        settings = [_setting(baseline, "cpu", batch).changed(batch=str(size)) for size in sizes]
        if len(settings) < 4:
            _wrong("--batches wants four different sizes or more, such as 4,8,16,32")
        with with_builds(settings, _tell) as settings:
            found, captures = explaining.explain_batches(request(model), settings, confirm, _tell)
    else:
        if not contender:
            _wrong("--contender says what the other side is, such as 'cuda' or 'batch=64'")
        one = _setting(baseline, "cpu", batch)
        with with_builds([one, _setting(contender, one.device, batch)], _tell) as sides:
            found, captures = explaining.explain_here(request(model), sides, confirm, _tell)
    if save is not None:
        for path in explaining.save(captures, save):
            say_note(f"saved {path}")
    return found


def _published(file: Path | None, measured: object, json: bool) -> None:
    from accel_micro.commands.explain_published import show

    if measured:
        _wrong("--published measures nothing: it takes one file of published times, or none, and --json")
    show(file, json)


def _write_page(page: Path, parts: Any) -> None:
    """Write the page. One that cannot be written costs no result."""
    from accel_micro.report.explain_page import write_page

    try:
        write_page(page, *parts)
    except OSError as error:
        say_error(f"the page could not be written: {error}")
    else:
        say_note(f"page: {page.resolve().as_uri()}")


def _publish_page(parts: Any) -> None:
    """Put the page among those of all results, wherever these are. One that cannot be written costs no result."""
    from accel_micro.asv_plugin import session
    from accel_micro.report import explain_words
    from accel_micro.report.explain_page import write_page
    from accel_micro.report.site import publish_explanation

    try:
        path, problems = publish_explanation(
            session.pages(),
            explain_words.title(parts[0]),
            lambda path, list_page: write_page(path, *parts, list_page=list_page),
        )
    except (session.SessionError, OSError) as error:
        say_error(f"the page could not be written: {error}")
        return
    for problem in problems:
        say_note(problem)
    say_note(f"page: {path.resolve().as_uri()}")


def _setting(text: str, device: str, batch: int) -> "Setting":
    from dataclasses import replace

    from accel_micro.explain.setting import Setting

    found = Setting.parse(text, device)
    return found if found.batch is not None else replace(found, batch=batch)


def _request(
    model: str, training: bool, processes: int, budget: float, replay: float | None, loader: str
) -> "Request":
    from accel_micro.explain.capturing.taking import Request

    return Request(model, training, processes, budget, replay, loader)


def _tell(text: str) -> None:
    say_note(text)


def _wrong(text: str) -> NoReturn:
    say_error(text)
    raise typer.Exit(WRONG_USE)


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    """What can go wrong, as one sentence and an exit code."""
    from accel_micro.asv_plugin.errors import DeviceBusy
    from accel_micro.commands.explain_builds import NoBuild
    from accel_micro.explain.attribution import CannotExplain
    from accel_micro.explain.capturing.taking import CannotCapture
    from accel_micro.explain.file import NotACapture
    from accel_micro.explain.published.data import NotPublished
    from accel_micro.explain.setting import WrongSetting

    try:
        with reported():  # of builds that are named
            yield
    except CannotCapture as problem:
        say_error(str(problem))
        raise typer.Exit(WRONG_USE if problem.wrong_use else ENVIRONMENT) from None
    except (CannotExplain, NotACapture, NotPublished, WrongSetting) as problem:
        say_error(str(problem))
        raise typer.Exit(WRONG_USE) from None
    except (DeviceBusy, NoBuild) as problem:
        say_error(str(problem))
        raise typer.Exit(ENVIRONMENT) from None
    except KeyboardInterrupt:
        say_error("interrupted before both sides had a process; nothing was kept")
        raise typer.Exit(130) from None
