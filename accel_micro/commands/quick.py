"""`accel-micro quick`: run the suite through asv on the installed torch, show a table, publish a page."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from accel_micro.shell import quoted

if TYPE_CHECKING:
    from rich.console import Console

    from accel_micro.asv_plugin.events import Event
    from accel_micro.asv_plugin.session import Outcome
    from accel_micro.measure.records import Record
    from accel_micro.report.progress import Listener

INTERRUPTED: Final = 130
NOTHING_TIMED: Final = 3

Format = Literal["table", "json", "markdown", "csv"]


@dataclass(frozen=True)
class Request:
    """What the user asked for.

    Attributes:
        profile: name of a profile.
        devices: names of devices; none stands for the CPU and every accelerator that is here.
        bench: regular expressions that choose cases.
        format: of the report on standard output.
        config: asv's configuration, else the nearest, see `asv_plugin.config.find_config`.
        out: folder for results and pages, else those of the configuration.
        rounds: processes a case, else the profile's.
    """

    profile: str = "quick"
    devices: tuple[str, ...] = ()
    bench: tuple[str, ...] = ()
    format: Format = "table"
    config: Path | None = None
    out: Path | None = None
    rounds: int | None = None


def quick(request: Request, console: "Console") -> int:
    """Do it; the report goes to standard output, all else to `console`. Returns the exit code.

    0: at least one case has a time. 3: none has. 130: interrupted, and what was measured is saved and shown.

    Raises:
        SessionError: nothing could be run; the message is one sentence, with an exit code.
    """
    from accel_micro import report
    from accel_micro.asv_plugin import session
    from accel_micro.report.progress import listener

    bar = listener(console)
    try:
        outcome = session.run(
            request.config,
            profile=request.profile,
            devices=request.devices,
            bench=request.bench,
            results=_below(request.out, "results"),
            listener=lambda event: _tell(bar, event),
            rounds=request.rounds,
            log=_below(request.out, "asv.log"),
        )
    finally:
        bar.finished()
    if outcome.interrupted and not outcome.records:
        console.print("Interrupted before anything was measured.")
        return INTERRUPTED
    facts, findings = _machine(outcome)
    shown = outcome.records if request.format == "json" else _with_versions(outcome)
    try:
        report.render(shown, request.format, facts=facts, findings=findings, profile=request.profile)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads it has seen enough; the pages are still to be written. The rest goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    _warn(findings, console)
    for line in not_timed(request.devices, outcome.reports, outcome.records):
        console.print(line, markup=False, soft_wrap=True)
    _publish(request, outcome, facts, findings, console)
    if outcome.interrupted:
        console.print(f"Interrupted: what was measured is saved in {outcome.results}.", soft_wrap=True)
        return INTERRUPTED
    return 0 if any(record.clocks for record in outcome.records) else NOTHING_TIMED


def _below(folder: Path | None, name: str) -> Path | None:
    return None if folder is None else folder / name


def _tell(bar: "Listener", event: "Event") -> None:
    from accel_micro.asv_plugin.events import CaseStarted

    if isinstance(event, CaseStarted):
        bar.case_started(event.case, event.index, event.total)
    else:
        bar.case_finished(event.record)


def _machine(outcome: "Outcome") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The facts of this machine and its torch, and what is wrong with it for timing."""
    from accel_micro import doctor, host

    facts: dict[str, Any] = dict(host.facts())
    torch_facts: Mapping[str, Any] = next(
        (report.get("torch", {}) for report in outcome.reports.values()), {}
    )
    findings = [asdict(finding) for finding in doctor.diagnose(facts, torch_facts)]
    return {**facts, "torch": torch_facts}, findings


def _with_versions(outcome: "Outcome") -> "list[Record]":
    """The records with the versions of their builds in place of the ids, for people to read."""
    from accel_micro.builds.ledger import Ledger

    ledger = Ledger.beside(outcome.results)
    names = {build.id: build.version for build in ledger}
    return [replace(record, build=names.get(record.build, record.build[:8])) for record in outcome.records]


def _warn(findings: Sequence[Mapping[str, Any]], console: "Console") -> None:
    """Say what about this machine spoils timings, where it is more than a note."""
    for finding in findings:
        if finding["severity"] != "note":
            console.print(
                f"{finding['severity']}: {finding['what']} {finding['remedy']}", style="yellow", markup=False
            )


def not_timed(
    devices: Sequence[str], reports: Mapping[str, Mapping[str, Any]], records: "Sequence[Record]"
) -> list[str]:
    """A line for each device that was asked for and is not here, for each clock that one lacks, and why.

    Args:
        devices: as asked for; none stands for what the environment variable says, else for all.
        reports: environment → what it said of its devices, see `asv_plugin.prepare`.
        records: of the run; they say where the driver could not be asked about clocks.
    """
    from accel_micro.devices import DEVICE_KINDS, chosen

    names = (
        chosen.asked(",".join(devices))
        or chosen.asked()
        or dict(zip(DEVICE_KINDS, DEVICE_KINDS, strict=True))
    )
    known: Mapping[str, Any] = next((report["devices"] for report in reports.values()), {})
    lines = []
    for kind, name in names.items():
        facts = known.get(kind)
        if facts is None:
            continue
        if facts["unavailable"] is not None:
            lines.append(f"{name} is not timed: {facts['unavailable']}.")
            continue
        why: dict[str, list[str]] = {}
        for clock, reason in facts.get("lacks", {}).items():
            why.setdefault(reason, []).append(clock)
        lines += [f"{name} has no {' or '.join(clocks)} clock: {reason}." for reason, clocks in why.items()]
    unwatched = dict.fromkeys(record.hardware.get("unwatched") for record in records)
    return lines + [f"{reason}." for reason in unwatched if reason]


def _publish(
    request: Request,
    outcome: "Outcome",
    facts: Mapping[str, Any],
    findings: Sequence[Mapping[str, Any]],
    console: "Console",
) -> None:
    """Write the pages and say where they are. A page that cannot be written costs no result."""
    from accel_micro.asv_plugin import session
    from accel_micro.asv_plugin.config import REPORT
    from accel_micro.report.html import write_html

    try:
        pages = session.publish(request.config, results=outcome.results, html=_below(request.out, "html"))
        version = facts["torch"].get("build", {}).get("version", "")
        page = pages / REPORT
        write_html(
            page,
            _with_versions(outcome),
            facts=facts,
            findings=findings,
            title=f"torch {version}".strip(),
            asv_page="overview.html",
            profile=request.profile,
        )
    except (session.SessionError, OSError) as error:
        console.print(f"The report could not be written: {error}", soft_wrap=True)
        console.print(f"Results: {outcome.results}", soft_wrap=True)
        return
    console.print(f"Report:  {page.as_uri()}", soft_wrap=True)
    console.print(f"Results: {outcome.results}", soft_wrap=True)
    where = "" if request.out is None else f" --out {quoted(str(request.out))}"
    console.print(f"History over builds: accel-micro preview{where}", soft_wrap=True, markup=False)
