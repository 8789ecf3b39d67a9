"""What else than the thing that is compared was different between two sides: the host, its accelerator, torch.

Read from the lines that every session leaves (`results.sessions`) and from the modes that every record names.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from accel_micro.comparison.pairing import Pair
from accel_micro.comparison.sides import Kind
from accel_micro.results import Measured, Trial
from accel_micro.results import sessions as session_lines

_MOMENTARY: Final = re.compile(
    r"(load|power)\.(?!on_battery|low_power_mode)"
    r"|cpu\.frequency_now|memory\.(available|swap)"
    r"|gpu\.devices\.\d+\.(index|memory_used|utilization|temperature|power_watts|clock_hertz|throttle|processes)"
    r"|(devices\.)?\w*(sources|unread)\b"
)
"""Facts of the moment in which they were read: they differ between any two sessions, and prove nothing."""

_LOADS: Final = {"load.busy_elsewhere": 0.1, "load.steal": 0.05}
"""Loads, as shares of the machine, that are told when the sides' largest differ by more than this."""

_OF_A_BUILD: Final = ("build.version", "build.git")
"""Facts about torch in which two builds differ by definition."""

_NAMES: Final = ("prefix", "name")
"""Facts that tell the members of a list apart, else their place in it does."""


@dataclass(frozen=True)
class Difference:
    """One fact in which the sides differ.

    Attributes:
        group: `host`, `torch`, `modes` (of the processes) or `environment`.
        name: dotted, such as `gpu.devices.0.driver`.
        baseline, contender: its values over the sessions or processes of a side, each once; none where it is
            not known.
        pairs: how many pairs it concerns, 0 for all.
    """

    group: str
    name: str
    baseline: tuple[Any, ...]
    contender: tuple[Any, ...]
    pairs: int = 0


@dataclass(frozen=True)
class Differences:
    """All of them, and what is not known: sentences."""

    found: tuple[Difference, ...]
    unknown: tuple[str, ...] = ()


def find_differences(
    pairs: Sequence[Pair], kind: Kind, results: Path, environments: tuple[str, str] = ("", "")
) -> Differences:
    """How the two sides of these pairs differ, besides in what is compared.

    Args:
        results: the folder of results, with the sessions.
        environments: names, baseline first.
    """
    found: list[Difference] = []
    if pairs and environments[0] != environments[1]:
        found.append(Difference("environment", "name", environments[:1], environments[1:]))
    wanted = [_runs(pair.baseline for pair in pairs), _runs(pair.contender for pair in pairs)]
    facts, unknown = _facts(wanted, results)
    for group in ("host", "torch"):
        flat = [[dict(_flat(line.get(group) or {})) for line in side] for side in facts]
        found += _different(group, flat[0], flat[1], kind)
    found += _modes(pairs)
    return Differences(tuple(found), tuple(unknown))


_Run = tuple[str, str, str, str]  # machine, session, build, environment


def _runs(trials: Iterable[Trial]) -> set[_Run]:
    return {
        (trial.key.machine, session, trial.key.build, trial.key.environment)
        for trial in trials
        for session in trial.sessions
    }


def _facts(wanted: Sequence[set[_Run]], results: Path) -> tuple[list[list[dict[str, Any]]], list[str]]:
    """For each side the lines of its sessions, and what is missing."""
    lines: dict[_Run, dict[str, Any]] = {}
    every = wanted[0] | wanted[1]
    for machine, data in session_lines.read(results):
        run = (machine, data["session"], data["build"], str(data.get("environment", "")))
        if run in every:
            lines[run] = data
    unknown = []
    missing = sorted(every - set(lines))
    if missing:
        files = ", ".join(sorted({f"{run[0]}/{session_lines.FILE_NAME}" for run in missing}))
        those = "none" if len(missing) == len(every) else f"only {len(lines)}"
        unknown.append(
            f"of {len(every)} session{'s' * (len(every) != 1)} {those} left facts in {files}: "
            "what else differed is not fully known"
        )
    ordered = [sorted(side & set(lines), key=lambda run: str(lines[run]["started"])) for side in wanted]
    # A side without any facts would seem to differ in everything.
    if not all(ordered):
        return [[], []], unknown
    return [[lines[run] for run in side] for side in ordered], unknown


def _flat(facts: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Facts by dotted name, without those of the moment."""
    for key, value in facts.items():
        name = f"{path}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif isinstance(value, (list, tuple)) and value and all(isinstance(v, Mapping) for v in value):
            for number, member in enumerate(value):
                label = (
                    number if key == "devices" else next((member[n] for n in _NAMES if n in member), number)
                )
                yield from _flat(member, f"{name}.{label}.")
        elif name in _LOADS or not _MOMENTARY.match(name):
            yield name, tuple(map(str, value)) if isinstance(value, (list, tuple)) else value


def _different(
    group: str, baseline: Sequence[Mapping[str, Any]], contender: Sequence[Mapping[str, Any]], kind: Kind
) -> Iterator[Difference]:
    for name in dict.fromkeys(name for line in (*baseline, *contender) for name in line):
        if group == "torch" and kind == "build" and name in _OF_A_BUILD:
            continue
        sides = [_values(line.get(name) for line in side) for side in (baseline, contender)]
        if name in _LOADS:
            most = [max((v for v in side if isinstance(v, (int, float))), default=0.0) for side in sides]
            if abs(most[0] - most[1]) > _LOADS[name]:
                yield Difference(group, name, (most[0],), (most[1],))
        elif set(sides[0]) != set(sides[1]):
            yield Difference(group, name, sides[0], sides[1])


def _values(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(value for value in values if value not in (None, (), [])))


def _modes(pairs: Sequence[Pair]) -> Iterator[Difference]:
    """Differences in the modes that the processes named: TF32, threads and such."""
    found: dict[tuple[str, tuple[Any, ...], tuple[Any, ...]], int] = {}
    known: dict[
        tuple[frozenset[Any], frozenset[Any]], list[tuple[str, tuple[Any, ...], tuple[Any, ...]]]
    ] = {}
    for pair in pairs:
        modes = [set(map(_hashable, trial.processes)) for trial in (pair.baseline, pair.contender)]
        if modes[0] == modes[1]:
            continue
        key = (frozenset(modes[0]), frozenset(modes[1]))
        if key not in known:
            known[key] = list(_unlike(modes[0], modes[1]))
        for unlike in known[key]:
            found[unlike] = found.get(unlike, 0) + 1
    for (name, baseline, contender), count in found.items():
        yield Difference("modes", name, baseline, contender, count)


def _hashable(process: Measured) -> tuple[tuple[str, Any], ...]:
    try:
        hash(process.precision)
    except TypeError:  # a foreign record's list
        return tuple((name, str(value)) for name, value in process.precision)
    return process.precision


def _unlike(
    baseline: Iterable[tuple[tuple[str, Any], ...]], contender: Iterable[tuple[tuple[str, Any], ...]]
) -> Iterator[tuple[str, tuple[Any, ...], tuple[Any, ...]]]:
    sides = [sorted(map(dict, side), key=str) for side in (baseline, contender)]
    # Devices name modes of their own; only what both sides name can differ.
    for name in dict.fromkeys(name for modes in sides[0] for name in modes):
        if any(name in modes for modes in sides[1]):
            values = [_values(modes.get(name) for modes in side) for side in sides]
            if set(values[0]) != set(values[1]):
                yield name, values[0], values[1]
