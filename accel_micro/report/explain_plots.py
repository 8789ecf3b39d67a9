"""Where the shapes of an explanation's page lie: a waterfall of contributions, and a step on two clocks. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from accel_micro.explain.capture import PHASES, Capture
from accel_micro.explain.explanation import Contribution, Explanation
from accel_micro.report import explain_words as words
from accel_micro.report.explain import shown
from accel_micro.report.words import count

WIDTH: Final = 1000.0
LABEL: Final = 300.0
VALUE: Final = 150.0
ROW: Final = 24.0
_TOO_NARROW: Final = 4.0
"""Times as long as the other side's step from which on that is drawn on a scale of its own."""
_NARROWEST: Final = 0.4
"""Units of the drawing below which neighbouring calls of a phase are drawn as one."""


@dataclass(frozen=True)
class Bar:
    """A row of the waterfall: from `left` to `left + width`, with the interval of its end.

    Attributes:
        kind: `side`, `faster` (the contender needs less), `slower` or `rest`.
    """

    label: str
    value: str
    kind: str
    left: float
    width: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Waterfall:
    """From the baseline's seconds an example to the contender's."""

    bars: tuple[Bar, ...]
    height: float


def waterfall(e: Explanation) -> Waterfall:
    """The largest contributions one by one, the others as one, and what is unexplained."""
    first, last = words.total(e.baseline), words.total(e.contender)
    chosen, others = shown(e)
    rest = next(each for each in e.contributions if each.group.kind == "unexplained")
    steps: list[tuple[str, str, str, float, Contribution | None]] = [
        (words.label(each), words.saved(each), "", each.seconds.value, each) for each in chosen
    ]
    if others:
        value = sum(each.seconds.value for each in others)
        sign = "+" if value > 0 else ""
        steps.append((count(len(others), "other"), f"{sign}{words.seconds(value)}", "", value, None))
    steps.append(("unexplained", words.saved(rest), "rest", rest.seconds.value, rest))
    levels = [first]
    for step in steps:
        levels.append(levels[-1] - step[3])
    least = min(0.0, *levels)
    scale = (WIDTH - LABEL - VALUE) / ((max([*levels, last]) - least) or 1.0)

    def x(seconds: float) -> float:
        return round(LABEL + (seconds - least) * scale, 1)

    bars = [Bar("baseline", words.seconds(first), "side", x(0), x(first) - x(0), 0.0)]
    for number, (label, text, kind, value, each) in enumerate(steps, start=1):
        before, after = levels[number - 1], levels[number]
        known = each is not None and each.seconds.high - each.seconds.low < 1e300
        ends = (before - each.seconds.high, before - each.seconds.low) if known and each is not None else None
        bars.append(
            Bar(
                label,
                text,
                kind or ("faster" if value >= 0 else "slower"),
                x(min(before, after)),
                max(0.5, round(abs(before - after) * scale, 1)),
                number * ROW,
                None if ends is None else min(max(x(ends[0]), LABEL), WIDTH - VALUE),
                None if ends is None else min(max(x(ends[1]), LABEL), WIDTH - VALUE),
            )
        )
    bars.append(Bar("contender", words.seconds(last), "side", x(0), x(last) - x(0), len(bars) * ROW))
    return Waterfall(tuple(bars), len(bars) * ROW)


@dataclass(frozen=True)
class Strip:
    """Calls of a phase that follow each other on a clock: `lane` 0 is the host, 1 the device."""

    lane: int
    phase: str
    left: float
    width: float
    text: str


Span = tuple[int, str, float, float, str]
"""A call: its lane and phase, when it begins and ends (seconds), its operator."""


@dataclass(frozen=True)
class Track:
    """A step of one side on its clocks. `lanes`: 1 where nothing works beside the host."""

    strips: tuple[Strip, ...]
    lanes: int
    seconds: float


def tracks(sides: Sequence[Capture]) -> list[tuple[Track | None, float]]:
    """A step of each side to one scale, and 1.0; one that would be too narrow fills the width, many times as wide."""
    played = [_played(side) for side in sides]
    lengths = [max(side.step_seconds, end) for side, (_, end) in zip(sides, played, strict=True)]
    times = [max(lengths) / length for length in lengths]
    wider = [each if each > _TOO_NARROW else 1.0 for each in times]
    return [(_drawn(*one, max(lengths) / each), each) for one, each in zip(played, wider, strict=True)]


def track(capture: Capture, longest: float) -> Track | None:
    """The calls of a step in order, drawn so that `longest` seconds fill the width; None without ops."""
    return _drawn(*_played(capture), longest)


def _played(capture: Capture) -> tuple[list[Span], float]:
    """The calls of a step on its clocks, and when the last of them ends, seconds; nothing without ops."""
    host = device = 0.0
    if not capture.has_ops:
        return [], 0.0
    readings = capture.readings
    called = [fmean(reading.ops[n] for reading in readings) / row.count for n, row in enumerate(capture.rows)]
    gaps = [fmean(reading.gaps[n] for reading in readings) / row.count for n, row in enumerate(capture.rows)]
    spans: list[Span] = []
    for n in capture.sequence:
        row = capture.rows[n]
        seconds = row.host_seconds(called[n])
        host += max(0.0, gaps[n])
        spans.append((0, row.phase, host, host + seconds, row.operator))
        host += seconds
        if row.device_seconds:
            start = max(host, device)
            device = start + row.device_seconds
            spans.append((1, row.phase, start, device, row.operator))
        if row.waits:
            host = max(host, device)
    return spans, max(host, device)


def _drawn(spans: Sequence[Span], end: float, longest: float) -> Track | None:
    if not spans:
        return None
    scale = WIDTH / longest
    lanes = 1 + any(span[0] for span in spans)
    return Track(tuple(s for lane in range(lanes) for s in _strips(spans, lane, scale)), lanes, end)


def _strips(spans: Sequence[Span], lane: int, scale: float) -> list[Strip]:
    found: list[Strip] = []
    held: list[tuple[str, float, float, str]] = []

    def draw() -> None:
        if held:
            name = held[0][3] if len({each[3] for each in held}) == 1 else f"{len(held)} calls"
            left, right = held[0][1] * scale, held[-1][2] * scale
            found.append(Strip(lane, held[0][0], round(left, 2), max(0.3, round(right - left, 2)), name))
            held.clear()

    for which, phase, start, end, name in spans:
        if which != lane:
            continue
        if held and (
            phase != held[0][0] or (start - held[-1][2]) * scale > _NARROWEST or (end - start) * scale > 2
        ):
            draw()
        held.append((phase, start, end, name))
        if (end - start) * scale > 2:
            draw()
    draw()
    return found


PHASE_CLASSES: Final = {phase: f"p{number}" for number, phase in enumerate(PHASES)}
