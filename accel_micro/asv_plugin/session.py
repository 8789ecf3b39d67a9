"""Run and publish from Python: what `accel-micro quick` calls. asv runs in this process, quietly."""

import contextlib
import logging
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from accel_micro import profiles
from accel_micro.asv_plugin import setup
from accel_micro.asv_plugin.config import NoConfiguration, find_config, load

if TYPE_CHECKING:
    from accel_micro.asv_plugin.events import Listener
    from accel_micro.measure.records import Record

WRONG_USE: Final = 2
ENVIRONMENT: Final = 3
_EXCEPTION: Final = re.compile(r"(?!subprocess\.|asv\.)[\w.]+(Error|Exception|Exit|Warning)(: .*)?$")


class SessionError(RuntimeError):
    """The run could not be done. `exit_code` is that of a command: 2 for wrong use, 3 for the environment."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True)
class Outcome:
    """What a run left.

    Attributes:
        records: one a process, in order; those with a failure too.
        session: its id, as in the records.
        interrupted: somebody pressed Ctrl-C; the records are those of the cases that were done.
        results: folder of asv's own results and of the records.
        reports: environment → its `devices` and `torch`, see `prepare`.
        log: file with what asv said.
    """

    records: tuple["Record", ...]
    session: str
    interrupted: bool
    results: Path
    reports: Mapping[str, Mapping[str, Any]]
    log: Path

    @property
    def failures(self) -> tuple["Record", ...]:
        """Records of the cases that have no time."""
        return tuple(record for record in self.records if record.failure is not None)


def run(
    config: Path | None = None,
    *,
    profile: str | None = None,
    devices: Sequence[str] = (),
    bench: Sequence[str] = (),
    results: Path | None = None,
    listener: "Listener | None" = None,
    rounds: int | None = None,
    machine: str | None = None,
    launch_method: str | None = None,
    save: bool = True,
    log: Path | None = None,
) -> Outcome:
    """Run cases of a suite on the installed torch.

    Args:
        config: see `find_config`. results: folder that replaces its folder of results.
        profile, devices: what is run; without them what the environment variables say.
        bench: regular expressions; a case is run when one is found in `file.op.time_forward('cpu', …)`.
        listener: told when a process starts and ends.
        rounds: processes a case, else the profile's.
        save: keep results and records; without it they are returned only.
        log: file for what asv prints, else a temporary one.

    Raises:
        SessionError: nothing could be run; the message is one sentence.
    """
    setup()
    from asv.commands.run import Run
    from asv.util import UserError

    from accel_micro.asv_plugin import state

    conf = _configured(config, results, None)
    variables = {profiles.ENVIRONMENT_VARIABLE: profile, state.DEVICES_VARIABLE: ",".join(devices) or None}
    with contextlib.ExitStack() as stack:
        stack.enter_context(_environment(variables))
        log_path = stack.enter_context(_quiet(log))
        try:
            live = stack.enter_context(state.running(*([listener] if listener else [])))
        except UserError as error:
            raise SessionError(*_told(error, log_path)) from None
        live.embedded = True
        try:
            Run.run(
                conf,
                bench=list(bench) or None,
                attribute=None if rounds is None else {"rounds": rounds},
                machine=machine,
                launch_method=launch_method,
                dry_run=not save,
            )
        except UserError as error:
            if not live.stopped:
                raise SessionError(*_told(error, log_path)) from None
        if not live.records and not live.stopped:
            raise SessionError(f"nothing was measured; {log_path} has what asv said", ENVIRONMENT)
        return Outcome(
            records=tuple(live.records),
            session=live.session,
            interrupted=live.stopped,
            results=Path(conf.results_dir),
            reports=dict(live.reports),
            log=log_path,
        )


def publish(
    config: Path | None = None,
    *,
    results: Path | None = None,
    html: Path | None = None,
    log: Path | None = None,
) -> Path:
    """Make web pages of all results. They need no internet but a server: browsers let no file read another.

    Returns:
        The folder of the pages.

    Raises:
        SessionError: there are no results, or they cannot be published.
    """
    setup()
    from asv.commands.publish import Publish
    from asv.util import UserError

    conf = _configured(config, results, html)
    with _quiet(log) as log_path:
        try:
            Publish.run(conf, pull=False)
        except UserError as error:
            raise SessionError(*_told(error, log_path)) from None
    return Path(conf.html_dir)


def pages(config: Path | None = None, *, html: Path | None = None) -> Path:
    """The folder that `publish` writes to.

    Raises:
        SessionError: there is no such configuration.
    """
    return Path(_configured(config, None, html).html_dir)


def _configured(config: Path | None, results: Path | None, html: Path | None) -> Any:
    try:
        return load(find_config(config), results, html)
    except NoConfiguration as error:
        raise SessionError(str(error), WRONG_USE) from None


def _told(error: Exception, log: Path) -> tuple[str, int]:
    code = getattr(error, "exit_code", WRONG_USE)
    text = str(error).strip()
    if text and "Failed to build the project" not in text:
        return text, code
    # asv's error says nothing here; what the suite's own process printed last is in the log.
    said = log.read_text(encoding="utf-8", errors="replace")
    printed = [line.strip() for line in said.splitlines() if _EXCEPTION.match(line.strip())]
    why = printed[-1] if printed else text or "asv failed"
    return f"the suite cannot be imported: {why} (all of it: {log})", code


@contextlib.contextmanager
def _environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    try:
        os.environ.update({name: value for name, value in variables.items() if value is not None})
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _quiet(path: Path | None) -> Iterator[Path]:
    """Write what asv says to a file: its logger is the process's root logger otherwise."""
    from asv.console import log

    if path is None:
        handle, name = tempfile.mkstemp(prefix="accel-micro-", suffix=".log")
        os.close(handle)
        path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = logging.FileHandler(path, encoding="utf-8")
    logger = logging.Logger("accel_micro.asv", logging.INFO)
    logger.addHandler(writer)
    before, log._logger = log._logger, logger
    log.dot = lambda: None  # it prints to a terminal directly
    try:
        yield path
    finally:
        log._logger = before
        del log.dot
        writer.close()
