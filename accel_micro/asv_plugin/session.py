"""Run and publish from Python: what `accel-micro quick` calls. asv runs in this process, quietly."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel_micro import profiles
from accel_micro.asv_plugin import setup
from accel_micro.asv_plugin.embedding import ENVIRONMENT, SessionError, configured, quiet, told, variables

if TYPE_CHECKING:
    from accel_micro.asv_plugin.events import Listener
    from accel_micro.measure.records import Record


__all__ = ["ENVIRONMENT", "Outcome", "SessionError", "pages", "publish", "run"]


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

    conf = configured(config, results, None)
    values = {profiles.ENVIRONMENT_VARIABLE: profile, state.DEVICES_VARIABLE: ",".join(devices) or None}
    with contextlib.ExitStack() as stack:
        stack.enter_context(variables(values))
        log_path = stack.enter_context(quiet(log))
        try:
            live = stack.enter_context(state.running(*([listener] if listener else [])))
        except UserError as error:
            raise told(error, log_path) from None
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
                raise told(error, log_path) from None
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

    conf = configured(config, results, html)
    with quiet(log) as log_path:
        try:
            Publish.run(conf, pull=False)
        except UserError as error:
            raise told(error, log_path) from None
    return Path(conf.html_dir)


def pages(config: Path | None = None, *, html: Path | None = None) -> Path:
    """The folder that `publish` writes to.

    Raises:
        SessionError: there is no such configuration.
    """
    return Path(configured(config, None, html).html_dir)
