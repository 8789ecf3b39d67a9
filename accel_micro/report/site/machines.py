"""The machines: what each is, when it was measured on, and what it was calibrated to tell apart."""

from dataclasses import dataclass
from typing import Any

from accel_micro.builds.identity import from_id
from accel_micro.report import facts as fact_texts
from accel_micro.report import units
from accel_micro.report.site.gather import Gathered
from accel_micro.report.site.text import moment
from accel_micro.results import calibrations, sessions
from accel_micro.results.calibrations import Calibration

NOT_CALIBRATED = (
    "Not calibrated: run `accel-micro calibrate` on this machine. It measures one build against itself, and finds out "
    "how small a change can be told from noise here. Until then a change below 2 % counts as none."
)
_MOST_SESSIONS = 20


@dataclass(frozen=True)
class Calibrated:
    """A device's calibration: a verdict on it in one sentence, its figures, what can be found in how long."""

    device: str
    blessed: bool
    sentence: str
    facts: tuple[tuple[str, str], ...]
    detectable: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Machine:
    """One machine. `sessions` are (when, build, profile, command), the newest first."""

    name: str
    summary: str
    devices: tuple[str, ...]
    calibrated: tuple[Calibrated, ...]
    uncalibrated: tuple[str, ...]
    groups: tuple[fact_texts.Group, ...]
    sessions: tuple[tuple[str, str, str, str], ...]
    more_sessions: int


def machines(gathered: Gathered) -> list[Machine]:
    """Every machine that has results, by name."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for name, line in sessions.read(gathered.results):
        lines.setdefault(name, []).append(line)
    names = sorted({place.machine for place in gathered.measured} | set(lines))
    return [_machine(name, gathered, lines.get(name, [])) for name in names]


def _machine(name: str, gathered: Gathered, lines: list[dict[str, Any]]) -> Machine:
    lines = sorted(lines, key=lambda line: str(line["started"]))
    host = lines[-1]["host"] if lines else {}
    torch = lines[-1].get("torch") if lines else None
    devices = sorted({h.case.device for h in gathered.histories if h.place.machine == name})
    found = {device: calibrations.latest(gathered.results, name, device) for device in devices}
    rows = [_session(line, gathered) for line in reversed(lines)]
    return Machine(
        name=name,
        summary=" · ".join(fact_texts.summary(host)),
        devices=tuple(devices),
        calibrated=tuple(_calibrated(one) for one in found.values() if one is not None),
        uncalibrated=tuple(device for device, one in found.items() if one is None),
        groups=fact_texts.groups({**host, "torch": torch} if isinstance(torch, dict) else host),
        sessions=tuple(rows[:_MOST_SESSIONS]),
        more_sessions=max(0, len(rows) - _MOST_SESSIONS),
    )


def _session(line: dict[str, Any], gathered: Gathered) -> tuple[str, str, str, str]:
    build = line["build"]
    known = gathered.ledger[build] if build in gathered.ledger else from_id(build)
    command = line.get("command")
    text = " ".join(map(str, command)) if isinstance(command, list) else ""
    return moment(line["started"]), known.version, str(line.get("profile", "")), text


def _calibrated(one: Calibration) -> Calibrated:
    facts = [
        ("measured", moment(one.started)),
        ("torch", one.torch_version),
        ("processes", str(one.processes)),
        ("tolerance", units.percent(one.tolerance)),
    ]
    if one.false_positive_rate is not None:
        ends = f"{units.percent(one.false_positive_low)} to {units.percent(one.false_positive_high)}"
        facts.append(
            (
                "false alarms",
                f"{units.percent(one.false_positive_rate)} [{ends}], promised {units.percent(one.alpha)}",
            )
        )
    for label, value in (
        ("spread between processes", one.spread),
        ("spread of the worst case", one.worst_spread),
    ):
        if value is not None:
            facts.append((label, units.percent(value)))
    if one.drift is not None:
        facts.append(("drift an hour", f"{100 * one.drift:+.1f} %".replace("-", "−")))
    if one.modes > 0:
        facts.append(
            ("in another speed mode", f"{units.percent(one.modes)}, {one.slowdown:.2g} times slower")
        )
    if one.below_full_speed is not None:
        facts.append(("below full speed", units.percent(one.below_full_speed)))
    sentence = (
        "Verdicts can be trusted here: comparing a build with itself alarmed no more often than promised."
        if one.blessed
        else f"Verdicts cannot be trusted here: {one.why_not}"
    )
    detectable = tuple(
        (f"{minutes} min", f"±{units.percent(value)}" if value is not None else "none")
        for minutes, value in sorted(one.detectable.items())
    )
    return Calibrated(one.device, one.blessed, sentence, tuple(facts), detectable)
