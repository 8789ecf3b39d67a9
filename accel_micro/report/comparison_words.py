"""The words of a comparison: what a verdict is called, a change with its interval, what differs, what is missing.

Pure; the terminal, Markdown and the page take their texts from here, so that they say the same.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from accel_micro.comparison.compared import ORDER, Compared, Comparison
from accel_micro.comparison.differences import Difference
from accel_micro.comparison.pairing import Uncompared
from accel_micro.comparison.sides import Kind
from accel_micro.report import facts, units
from accel_micro.report.layout import short_direction, short_dtype
from accel_micro.report.words import clean, count, first_line
from accel_micro.stats.verdict import Verdict


class Name(NamedTuple):
    """What a verdict is called: a sign, one row of it, several, and a heading's explanation."""

    sign: str
    one: str
    many: str
    means: str


_BUILDS: Final = {
    "regression": Name("▲", "regression", "regressions", "slower, by more than the tolerance"),
    "improvement": Name("▼", "improvement", "improvements", "faster, by more than the tolerance"),
    "inconclusive": Name("?", "inconclusive", "inconclusive", "more processes are needed to tell"),
    "invariant": Name("=", "invariant", "invariant", "shown equal within the tolerance"),
}
_OTHERS: Final = {
    "regression": Name("▲", "slower", "slower", "by more than the tolerance"),
    "improvement": Name("▼", "faster", "faster", "by more than the tolerance"),
    "inconclusive": _BUILDS["inconclusive"],
    "invariant": Name("=", "equal", "equal", "shown equal within the tolerance"),
}

_UNKNOWN: Final = "–"


def names(kind: Kind) -> dict[str, Name]:
    """By verdict. Only a build can be a regression: a device is slower than another one."""
    return _BUILDS if kind == "build" else _OTHERS


def title(comparison: Comparison) -> str:
    """`torch 2.12.0 → torch 2.13.0 on workshop`: the sides, and where they were measured."""
    first, second = comparison.sides
    text = f"{first.title} → {second.title}"
    if comparison.kind != "machine":
        text += f" on {comparison.scope.machines[0]}"
    if comparison.kind != "build":
        text += f", {comparison.builds[0]}"
    if device := one_device(comparison):
        text += f", {device}"
    if clock := one_clock(comparison):
        text += f", {clock}"
    return clean(text)


def one_device(comparison: Comparison) -> str:
    """The device of all rows where they have only one, and it is not what is compared."""
    found = comparison.devices
    return next(iter(found)) if len(found) == 1 and comparison.kind != "device" else ""


def one_clock(comparison: Comparison) -> str:
    """The clock of all rows, where they have only one."""
    found = comparison.clocks
    return next(iter(found)) if len(found) == 1 else ""


def summary(comparison: Comparison) -> str:
    """`3 regressions, 1 improvement, 30 invariant, 7 inconclusive of 41; tolerance 2 %, alpha 0.01`."""
    if not comparison.rows:
        return f"nothing can be compared: {_nothing(comparison)}"
    called, counts = names(comparison.kind), comparison.counts
    parts = [
        f"{counts[kind]} {called[kind].one if counts[kind] == 1 else called[kind].many}"
        for kind in ("regression", "improvement", "invariant", "inconclusive")
    ]
    return (
        f"{', '.join(parts)} of {len(comparison.rows)}; "
        f"tolerance {tolerance_text(comparison)}, alpha {comparison.alpha:g}"
    )


def _nothing(comparison: Comparison) -> str:
    """Why there is no row."""
    missing = [
        side.title
        for side, environment in zip(comparison.sides, comparison.paired.environments, strict=True)
        if not environment
    ]
    if missing:
        who = f"{' and '.join(map(clean, missing))} {'has' if len(missing) == 1 else 'have'} no results"
        if comparison.scope.bench or (comparison.kind != "device" and any(comparison.scope.devices)):
            who += " that match"
        return who if comparison.kind == "build" else f"{who} of {comparison.builds[0]}"
    return "no case has a time by the same clock on both sides"


def tolerance_text(comparison: Comparison) -> str:
    """`2 %`, or one for each device where they differ."""
    values = {tolerance.value for tolerance in comparison.tolerances}
    if len(values) == 1:
        return f"{100 * values.pop():.3g} %"
    return ", ".join(f"{100 * t.value:.3g} % ({clean(t.device)})" for t in comparison.tolerances)


def case_text(row: Compared, comparison: Comparison) -> str:
    """`matmul.mm fwd fp32 m=64 k=64 n=64 cuda · device`: what tells a row from the others."""
    case = row.pair.case
    parts = [clean(case.op), short_direction(case.direction)]
    parts += [short_dtype(clean(case.dtype))] if comparison.kind != "dtype" else []
    parts += [clean(case.shape)]
    parts += [clean(case.device)] if comparison.kind != "device" and not one_device(comparison) else []
    text = " ".join(filter(None, parts))
    return text if one_clock(comparison) else f"{text} · {clean(row.pair.clock)}"


def times_text(row: Compared) -> str:
    """`12.3 → 12.9 µs`; both units where they differ."""
    first, second = (units.quantity(seconds, "s") for seconds in row.seconds)
    value, _, unit = first.partition(" ")
    return f"{value if second.endswith(f' {unit}') else first} → {second}"


def change_text(verdict: Verdict, kind: Kind) -> str:
    """`+5.1 % [+4.2, +6.0]`, more time of a contender; of other things than builds how many times as fast it
    is: `1.83× [1.79, 1.87]`.
    """
    ratio, low, high = verdict.ratio, verdict.ratio_low, verdict.ratio_high
    if not units.is_finite_positive(ratio):
        return _UNKNOWN
    known = low > 0 and math.isfinite(high)
    if kind == "build":
        value, ends = 100 * (ratio - 1), [100 * (low - 1), 100 * (high - 1)]
        decimals = _decimals(ends, (10, 0.1, 0.0)) if known else 1
        texts = [f"{_signed(x, decimals)}" for x in (value, *ends)] if known else [_signed(value, decimals)]
        unit = " %"
    else:
        value, ends = 1 / ratio, [1 / high, 1 / low] if known else []
        decimals = _decimals(ends, (10, 1, 0.01)) if known else 2
        decimals = min(decimals, 3 if value < 10 else 1 if value < 100 else 0)
        texts = [f"{x:.{decimals}f}" for x in (value, *ends)]
        unit = "×"
    interval = f"[{texts[1]}, {texts[2]}]" if known else "[?]"
    return f"{texts[0]}{unit} {interval}"


def _decimals(ends: Sequence[float], limits: Sequence[float]) -> int:
    """As many as the interval's half-width bears: one more below each of the limits."""
    half = abs(ends[1] - ends[0]) / 2
    return sum(half < limit for limit in limits)


def _signed(value: float, decimals: int) -> str:
    text = f"{value:+.{decimals}f}"
    return text.replace("-", "+") if float(text) == 0 else text


def q_text(verdict: Verdict) -> str:
    """`0.012`, `<0.001`; empty where too few processes leave nothing to test."""
    if verdict.q_value is None or not math.isfinite(verdict.ratio_high):
        return ""
    return "<0.001" if verdict.q_value < 0.001 else f"{verdict.q_value:.3f}"


def noise_text(verdict: Verdict) -> str:
    """`0.4/0.5 %`: spread of the process medians of baseline and contender."""
    texts = [
        f"{100 * spread:.{1 if spread < 0.0995 else 0}f}" if math.isfinite(spread) else _UNKNOWN
        for spread in (verdict.baseline_spread, verdict.contender_spread)
    ]
    return "/".join(texts) + (" %" if set(texts) != {_UNKNOWN} else "")


def processes_text(verdict: Verdict) -> str:
    """`5/5`, with a star where some are set aside."""
    star = "*" if any(verdict.set_aside) else ""
    return f"{verdict.baseline_processes}/{verdict.contender_processes}{star}"


def needs_text(verdict: Verdict) -> str:
    """How many more processes would decide it; empty where it is decided."""
    if verdict.decided:
        return ""
    if verdict.processes_needed is None:
        return "no number in reach would decide it"
    return f"needs about {verdict.processes_needed} more"


def needs_note(rows: Sequence[Compared]) -> str:
    """`3 to 12 more processes a side decide most of them`."""
    needs = [n for row in rows if not row.verdict.decided and (n := row.verdict.processes_needed) is not None]
    if not needs:
        return "the differences are about as large as the tolerance: no number of processes in reach decides that"
    least, most = min(needs), max(needs)
    many = str(least) if least == most else f"{least} to {most}"
    return f"about {many} more {'process' if most == 1 else 'processes'} a side would decide"


def reasons(rows: Sequence[Compared]) -> list[str]:
    """Why rows are inconclusive, the most frequent reason first: `5 rows: too noisy …`."""
    found = Counter(row.verdict.reason for row in rows if not row.verdict.decided and row.verdict.reason)
    return [f"{count(number, 'row')}: {clean(reason)}" for reason, number in found.most_common()]


def difference_label(difference: Difference) -> str:
    """`gpu 0 driver`, `torch libraries mkl`, `threads`."""
    if difference.group == "environment":
        return "environment"
    parts = [part for part in difference.name.split(".") if part not in ("devices", "pools")]
    if difference.name.startswith("devices."):
        parts = ["devices", *parts]
    label = " ".join([*parts[:-1], facts.label(parts[-1])])
    if difference.name.startswith("environment."):
        label = parts[-1]  # a variable's name
    return clean(f"torch {label}" if difference.group == "torch" else label)


def difference_text(difference: Difference, total: int) -> str:
    """`570.86 → 580.12`, with the rows it concerns when these are not all."""
    key = difference.name.rpartition(".")[2]
    sides = []
    for values in (difference.baseline, difference.contender):
        texts = [
            _load(value) if key in ("steal", "busy_elsewhere") else facts.text(key, value) for value in values
        ]
        sides.append(" or ".join(map(clean, texts)) or "not known")
    text = " → ".join(sides)
    return f"{text} ({difference.pairs} of {total} rows)" if 0 < difference.pairs < total else text


def _load(value: float) -> str:
    return f"{100 * value:.0f} %"


def differences_title(comparison: Comparison) -> str:
    """What is said above the differences."""
    found, unknown = comparison.differences.found, comparison.differences.unknown
    if found:
        return f"Besides the {comparison.kind}, the sides differ in:"
    return (
        "" if unknown or not comparison.rows else f"Besides the {comparison.kind}, nothing recorded differs."
    )


def uncompared_text(group: Uncompared, comparison: Comparison) -> str:
    """`wrong result (torch 2.13.0): conv.conv2d …: relative error …`."""
    titles = {
        "baseline": comparison.sides[0].title,
        "contender": comparison.sides[1].title,
        "both": "both sides",
    }
    reason = f"{group.clock} clock not read" if group.clock else group.reason
    text = f"{reason} ({titles[group.side]})" if group.reason != "no clock in common" else reason
    example = str(group.cases[0])
    if group.reason == "skipped":
        return clean(f"{text}: {first_line(group.detail)}")
    if len(group.cases) == 1:
        text += f": {example}"
    elif group.reason != "not measured" and not group.clock:
        text += f"; first: {example}"
    return clean(text) + (f": {detail}" if (detail := first_line(group.detail)) else "")


def uncompared_title(comparison: Comparison) -> str:
    """How many cases have no verdict at all."""
    cases = sum(len(group.cases) for group in comparison.uncompared if not group.clock)
    return f"Not compared: {count(cases, 'case')}" if cases else "Not compared by every clock"


def cautions(comparison: Comparison) -> list[str]:
    """What a reader must know before trusting a verdict."""
    devices: dict[tuple[str, str], list[str]] = {}
    for tolerance in comparison.tolerances:
        if tolerance.note and comparison.rows:
            devices.setdefault((tolerance.machine, tolerance.note), []).append(tolerance.device)
    notes = [f"{machine}, {' and '.join(found)}: {note}" for (machine, note), found in devices.items()]
    return [clean(text) for text in (*comparison.cautions, *notes)]


def notes(comparison: Comparison) -> list[str]:
    """What the columns mean."""
    build = comparison.kind == "build"
    change = (
        "Change: time of the contender ÷ that of the baseline"
        if build
        else ("Speed: time of the baseline ÷ that of the contender, so 2× is twice as fast")
    )
    found = [
        f"{change}, with its 95 % interval; [?] where fewer than three processes a side leave none.",
        "Plot: │ is no change, ┊ the tolerance, ─ the interval, ● the ratio.",
        "Noise: standard deviation of the processes' medians, baseline/contender; proc.: processes of each.",
        "q: share of false ones among all that are at least as different (Benjamini-Hochberg).",
    ]
    if any(any(row.verdict.set_aside) for row in comparison.rows):
        found.append("*: some processes ran in another speed mode than most and are not in the ratio.")
    return found


def sections(comparison: Comparison) -> list[tuple[str, str, list[Compared]]]:
    """(verdict, heading, rows) of the verdicts that occur, in the order in which they matter."""
    found = []
    for kind in ORDER:
        rows = [row for row in comparison.rows if row.verdict.kind == kind]
        if rows:
            name = names(comparison.kind)[kind]
            called = name.one if len(rows) == 1 else name.many
            found.append((kind, f"{name.sign} {len(rows)} {called}: {name.means}", rows))
    return found
