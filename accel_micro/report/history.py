"""Proposed changes in histories, for a terminal, Markdown and programs.

JSON, schema 1, is one object:

    schema      1; raised whenever a reader of the old form would misread the new one
    made_by     "accel_micro 0.1.0"
    histories   how many were searched; `short` of them have too few builds
    builds      measured ones, from old to new: id and version
    proposals   a change each, newest first: the case's five names; clock, machine, environment; `before`, `after`,
                `earliest`, `latest`, `undone_by`: builds, the latter null while the change lasts; ratio with its 95 %
                interval; seconds before and after; builds on each side; score, noise, floor; `unmeasured` builds in
                between; `same_commit`, `apart` (no session measured both builds); `settle`, the command that does;
                `outcome` of measuring anew: `confirmed`, `refuted`, `open`, `not measured`, or null; `settlement`:
                null, or builds, kind, ratio with its 95 % interval, q_value, processes a side and reason
    problems    lines of the results that could not be read
"""

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final, Literal

import accel_micro
from accel_micro.builds import Build
from accel_micro.comparison.history import OUTCOMES, Changes, Proposal, Settlement, Step
from accel_micro.comparison.pairing import name_of
from accel_micro.report import units
from accel_micro.report.export import CASE_FIELDS, finite
from accel_micro.report.layout import short_direction, short_dtype
from accel_micro.report.markdown import escape
from accel_micro.report.words import clean, count
from accel_micro.shell import joined
from accel_micro.stats.changes import FEWEST, Change
from accel_micro.stats.verdict import Verdict

Format = Literal["table", "json", "markdown", "csv"]

SCHEMA: Final = 1
MOST_ROWS: Final = 12
"""Cases of a step that a terminal lists; the other forms list all."""

_MOST_UNMEASURED: Final = 6


def render(changes: Changes, format: Format = "table", *, all_rows: bool = False) -> str:
    """The text of a report, with a line's end."""
    if format == "json":
        return to_json(changes)
    if format == "csv":
        return to_csv(changes)
    if format == "markdown":
        return to_markdown(changes)
    return to_text(changes, all_rows=all_rows)


def to_text(changes: Changes, *, all_rows: bool = False) -> str:
    """For a terminal: a block a pair of builds, a line a case."""
    lines = [headline(changes)]
    for step in changes.steps:
        lines += ["", clean(title(step)), *(f"  !  {note}" for note in notes(step))]
        shown = step.proposals if all_rows else step.proposals[:MOST_ROWS]
        cells = [_cells(proposal) for proposal in shown]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for proposal, texts in zip(shown, cells, strict=True):
            padded = (text.ljust(width) for text, width in zip(texts, widths, strict=True))
            lines.append(("  " + "  ".join(padded)).rstrip())
            if proposal.settlement:
                lines.append(f"       {clean(settlement_text(proposal))}")
        if len(shown) < len(step.proposals):
            lines.append(f"  and {len(step.proposals) - len(shown)} more; --all lists them")
        if worth_measuring(step):
            lines.append(f"  → {clean(settle(step))}")
    lines += ["", *_closing(changes)] if changes.steps or changes.problems or changes.short else []
    return "\n".join(lines) + "\n"


def to_markdown(changes: Changes) -> str:
    """As GitHub shows it."""
    lines = [escape(headline(changes))]
    for step in changes.steps:
        lines += ["", f"### {escape(title(step))}", *(f"\n{escape(note)}" for note in notes(step)), ""]
        anew = changes.settled
        lines += [
            "| | change [95 % interval] | time of a call | case | fate |" + " measured anew |" * anew,
            "|---|--:|--:|---|---|" + "---|" * anew,
        ]
        for proposal in step.proposals:
            cells = [*_cells(proposal), *([settlement_text(proposal)] if anew else [])]
            lines.append("| " + " | ".join(map(escape, cells)) + " |")
        if worth_measuring(step):
            lines += ["", "```sh", clean(settle(step)), "```"]
    lines += ["", *map(escape, _closing(changes))]
    return "\n".join(lines).rstrip("\n") + "\n"


def to_json(changes: Changes) -> str:
    """All of it; see the module's text for its form."""
    data = {
        "schema": SCHEMA,
        "made_by": f"accel_micro {accel_micro.__version__}",
        "histories": changes.histories,
        "short": changes.short,
        "builds": [_build(build) for build in changes.builds],
        "proposals": [
            {
                **_facts(step, proposal),
                "unmeasured": [_build(build) for build in step.unmeasured],
                **{name: _build(getattr(proposal, name)) for name in _ENDS},
                "undone_by": _build(proposal.undone_by) if proposal.undone_by else None,
                "settlement": _settlement(proposal.settlement),
            }
            for step in changes.steps
            for proposal in step.proposals
        ],
        "problems": list(changes.problems),
    }
    return json.dumps(finite(data), indent=1, ensure_ascii=False) + "\n"


def to_csv(changes: Changes) -> str:
    """A line a proposal; builds by version, those not measured separated by spaces."""
    out = io.StringIO()
    writer = csv.DictWriter(out, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for step in changes.steps:
        for proposal in step.proposals:
            line = _facts(step, proposal) | {name: getattr(proposal, name).version for name in _ENDS}
            line["unmeasured"] = " ".join(build.version for build in step.unmeasured)
            line["undone_by"] = proposal.undone_by.version if proposal.undone_by else ""
            writer.writerow({key: clean(v) if isinstance(v, str) else v for key, v in line.items()})
    return out.getvalue()


def headline(changes: Changes) -> str:
    """How much was searched and found, in one line."""
    searched = count(changes.histories - changes.short, "history", "histories")
    over = f"{searched} over {count(len(changes.builds), 'build')}"
    if not changes.proposals:
        return f"No change proposed in {over}."
    cases = len({proposal.history.whose.case for proposal in changes.proposals})
    places = count(len(changes.steps), "pair of builds", "pairs of builds")
    said = (
        f"{count(len(changes.proposals), 'change')} proposed in {count(cases, 'case')}, at {places}; {over}."
    )
    if changes.settled:
        outcomes = Counter(p.settlement.outcome for p in changes.proposals if p.settlement)
        said += f" Measured anew: {', '.join(f'{outcomes[one]} {one}' for one in OUTCOMES if outcomes[one])}."
    return said


def title(step: Step) -> str:
    """`torch 2.14.0.dev20261104 → 2.14.0.dev20261106 on workshop: 2 cases slower, 1 faster`."""
    slower = len({p.history.whose.case for p in step.proposals if p.slower})
    faster = len({p.history.whose.case for p in step.proposals if not p.slower})
    told = [f"{count(slower, 'case')} slower"] if slower else []
    told += [f"{faster} faster" if told else f"{count(faster, 'case')} faster"] if faster else []
    return f"torch {step.before.version} → {step.after.version} on {step.machine}: {', '.join(told)}"


def notes(step: Step) -> list[str]:
    """What a reader must know of the pair of builds before searching in it."""
    said = []
    if step.same_commit:
        said.append(
            "both builds are of one PyTorch commit: torch cannot be why, the machine or its set-up is"
        )
    if step.unmeasured:
        names = ", ".join(clean(build.version) for build in step.unmeasured[:_MOST_UNMEASURED])
        more = len(step.unmeasured) - _MOST_UNMEASURED
        names += f" and {more} more" if more > 0 else ""
        said.append(f"not measured in between, and as suspect: {names}")
    return said


def settle(step: Step) -> str:
    """The command that measures the pair again, interleaved."""
    words = ["accel-micro", "compare", step.before.version, step.after.version, "--measure"]
    for case in dict.fromkeys(name_of(p.history.whose.case).split("(")[0] for p in step.proposals):
        words += ["--bench", case]
    return joined(words)


def worth_measuring(step: Step) -> bool:
    """Whether measuring the builds by turns would still tell something."""
    told = {proposal.settlement.outcome if proposal.settlement else "" for proposal in step.proposals}
    return not step.same_commit and not told <= {"confirmed", "refuted"}


def change_text(proposal: Proposal) -> str:
    """`+5.1 % [+4.2, +6.0]`, more time of a call."""
    return _percent(proposal.change)


def settlement_text(proposal: Proposal) -> str:
    """`confirmed: +5.2 % [+4.9, +5.5], 6 processes a side`; and which builds, where others were measured."""
    found = proposal.settlement
    if found is None:
        return ""
    if found.verdict is None:
        return f"not measured: {found.reason}"
    verdict = found.verdict
    text = f"{found.outcome}: {_percent(verdict)}, {count(verdict.contender_processes, 'process', 'processes')} a side"
    if found.outcome in ("open", "refuted"):
        text += f", {found.reason}"
    if (found.baseline, found.contender) != (proposal.before, proposal.after):
        text += f" ({found.baseline.version} → {found.contender.version})"
    return text


def _percent(of: Change | Verdict) -> str:
    if not of.ratio_low > 0 or not math.isfinite(of.ratio_high):
        return f"{100 * (of.ratio - 1):+.1f} % [?]".replace("-", "−")
    parts = [100 * (ratio - 1) for ratio in (of.ratio, of.ratio_low, of.ratio_high)]
    value, low, high = (f"{part:+.1f}".replace("-", "−") for part in parts)
    return f"{value} % [{low}, {high}]"


def fate_text(proposal: Proposal) -> str:
    """`still so after 12 builds`, or which build undid it; and where else it may have begun."""
    lasted = len(proposal.history.builds) - proposal.change.index
    text = f"still so after {count(lasted, 'build')}"
    if proposal.undone_by:
        text = f"undone by {proposal.undone_by.version}"
    if proposal.earliest != proposal.latest:
        text += f"; began within {proposal.earliest.version} … {proposal.latest.version}"
    return clean(text)


def _cells(proposal: Proposal) -> tuple[str, ...]:
    whose, change = proposal.history.whose, proposal.change
    case = whose.case
    name = " ".join(
        (case.op, short_direction(case.direction), short_dtype(case.dtype), case.shape, case.device)
    )
    before, after = (units.quantity(side.seconds, "s") for side in (change.before, change.after))
    value, _, unit = before.partition(" ")
    times = f"{value if after.endswith(f' {unit}') else before} → {after}"
    sign = "▲" if proposal.slower else "▼"
    return sign, change_text(proposal), times, clean(f"{name} · {whose.clock}"), fate_text(proposal)


def _closing(changes: Changes) -> Iterator[str]:
    if changes.settled:
        yield (
            "Confirmed and refuted: by fresh processes of both builds, measured by turns; of those confirmed at most "
            f"{100 * changes.alpha:g} % are false on average."
        )
    elif changes.steps:
        yield (
            "These are proposals: the builds were mostly measured in separate sessions, and a machine that "
            "changed looks like a build that changed. The commands above measure again, in turns, and settle it; "
            "so does `--confirm`, for all."
        )
        if any(proposal.fate == "present" for proposal in changes.proposals):
            yield "Change: time of a call after ÷ before. A change that the newest build alone has is not proposed."
    if changes.short:
        yield f"{count(changes.short, 'history', 'histories')} of fewer than {FEWEST} builds: too few to tell."
    if changes.problems:
        more = len(changes.problems) - 1
        yield clean(changes.problems[0]) + (f" (and {more} more such lines)" if more else "")


_ENDS: Final = ("before", "after", "earliest", "latest")


def _build(build: Build) -> dict[str, str]:
    return {"id": build.id, "version": build.version}


def _facts(step: Step, proposal: Proposal) -> dict[str, Any]:
    whose, change = proposal.history.whose, proposal.change
    return {
        **asdict(whose.case),
        "clock": whose.clock,
        "machine": whose.machine,
        "environment": whose.environment,
        "ratio": change.ratio,
        "ratio_low": change.ratio_low,
        "ratio_high": change.ratio_high,
        "seconds_before": change.before.seconds,
        "seconds_after": change.after.seconds,
        "builds_before": change.before.builds,
        "builds_after": change.after.builds,
        "fate": proposal.fate,
        "score": change.score if math.isfinite(change.score) else None,
        "noise": change.noise,
        "floor": proposal.floor,
        "same_commit": step.same_commit,
        "apart": proposal.apart,
        "settle": settle(step) if worth_measuring(step) else "",
        "outcome": proposal.settlement.outcome if proposal.settlement else None,
    }


def _settlement(found: Settlement | None) -> dict[str, Any] | None:
    if found is None:
        return None
    verdict = found.verdict
    told: dict[str, Any] = {"baseline": _build(found.baseline), "contender": _build(found.contender)}
    if verdict is not None:
        told |= {
            "kind": verdict.kind,
            "ratio": verdict.ratio,
            "ratio_low": verdict.ratio_low,
            "ratio_high": verdict.ratio_high,
            "q_value": verdict.q_value,
            "processes": verdict.contender_processes,
        }
    return told | {"reason": found.reason}


CSV_COLUMNS: Final = (
    *CASE_FIELDS, "clock", "machine", "environment", "before", "after", "earliest", "latest",
    "ratio", "ratio_low", "ratio_high", "seconds_before", "seconds_after", "builds_before", "builds_after",
    "fate", "undone_by", "score", "noise", "floor", "same_commit", "apart", "unmeasured", "settle", "outcome",
)  # fmt: skip
