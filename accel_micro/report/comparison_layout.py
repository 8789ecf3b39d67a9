"""Where the columns of a comparison stand in a terminal, and the small plots of intervals. Pure."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from accel_micro.comparison.compared import Compared, Comparison
from accel_micro.report import comparison_words as words
from accel_micro.report.layout import GAP

NARROWEST_CASE: Final = 34
"""Characters that a case has at least where it stands on the line of its numbers."""

_INDENT: Final = 4
_CENTRE, _BAND, _LINE, _POINT, _BEYOND = "│", "┊", "─", "●", "‹›"

_STEPS: Final[tuple[tuple[int, tuple[str, ...]], ...]] = (
    (25, ()),
    (21, ()),
    (17, ()),
    (13, ()),
    (13, ("noise",)),
    (13, ("noise", "processes")),
    (0, ("noise", "processes")),
    (0, ("noise", "processes", "q")),
)
"""Width of the plot and columns left out, first to last, until a line fits. The change always stays."""


_COLUMNS: Final = ("times", "change", "plot", "q", "noise", "processes")


@dataclass(frozen=True)
class Scale:
    """The common scale of all plots: logarithmic, as far to the left as to the right.

    Attributes:
        limit: largest |log| that is shown. speed: whether right is faster, not slower.
    """

    limit: float
    speed: bool

    @classmethod
    def of(cls, rows: Sequence[Compared], speed: bool) -> "Scale":
        """Wide enough for four in five of the intervals, and for three times the tolerance: a few large changes
        must not squeeze all others to a point."""
        ends = sorted(
            max(abs(math.log(row.verdict.ratio_low)), abs(math.log(row.verdict.ratio_high)))
            for row in rows
            if row.verdict.ratio_low > 0 and math.isfinite(row.verdict.ratio_high)
        )
        enough = ends[int(0.8 * (len(ends) - 1))] if ends else 0.0
        least = max((3 * math.log1p(row.tolerance) for row in rows), default=0.06)
        return cls(max(enough, least), speed)

    @property
    def labels(self) -> tuple[str, str]:
        """What the two ends stand for."""
        ends = math.exp(-self.limit), math.exp(self.limit)
        if self.speed:
            return f"{ends[0]:.2g}×", f"{ends[1]:.2g}×" if ends[1] < 100 else f"{ends[1]:.0f}×"
        return f"{100 * (ends[0] - 1):+.0f} %", f"{100 * (ends[1] - 1):+.0f} %"

    def plot(self, row: Compared, width: int) -> str:
        """The interval and its estimate, over marks at no change and at the tolerance.

        What lies beyond the scale ends in an arrow. Without an interval the estimate stands alone.
        """
        verdict = row.verdict
        cells = [" "] * width
        for sign in (-1, 1):
            cells[self._place(sign * math.log1p(row.tolerance), width)] = _BAND
        cells[width // 2] = _CENTRE
        if not (math.isfinite(verdict.ratio) and verdict.ratio > 0):
            return "".join(cells)
        turn = -1 if self.speed else 1
        middle = turn * math.log(verdict.ratio)
        ends = [middle, middle]
        if verdict.ratio_low > 0 and math.isfinite(verdict.ratio_high):
            ends = sorted(turn * math.log(end) for end in (verdict.ratio_low, verdict.ratio_high))
        for place in range(self._place(ends[0], width), self._place(ends[1], width) + 1):
            cells[place] = _LINE
        cells[self._place(middle, width)] = _POINT
        if ends[0] < -self.limit:
            cells[0] = _BEYOND[0]
        if ends[1] > self.limit:
            cells[-1] = _BEYOND[1]
        return "".join(cells)

    def _place(self, log: float, width: int) -> int:
        share = (max(-self.limit, min(self.limit, log)) / self.limit + 1) / 2
        return round(share * (width - 1))


@dataclass(frozen=True)
class Plan:
    """How rows stand in a terminal.

    Attributes:
        case_width: of the column of cases; 0 where a case has a line of its own above its numbers.
        titles, cells: of the other columns, padded: by column, and by row and column.
    """

    width: int
    case_width: int
    cases: list[str]
    times: list[str]
    titles: list[str]
    cells: list[list[str]]

    @property
    def stacked(self) -> bool:
        """Whether a case and its times have a line of their own."""
        return self.case_width == 0

    @property
    def header(self) -> list[str]:
        """The titles of the columns, one or two lines."""
        numbers = (" " * GAP).join(self.titles)
        if self.stacked:
            return [_ends("  case", "time of a call", self.width), " " * _INDENT + numbers]
        return [f"{'  case':<{self.case_width}}{' ' * GAP}{numbers}"]

    def lines(self, index: int, sign: str) -> list[str]:
        """The lines of a row."""
        numbers = (" " * GAP).join(self.cells[index])
        case = self.cases[index]
        if self.stacked:
            times = self.times[index]
            wrapped = _wrap(f"{sign} {case}", self.width)
            if len(wrapped[-1]) + GAP + len(times) <= self.width:
                wrapped[-1] = _ends(wrapped[-1], times, self.width)
            else:
                wrapped.append(_ends("", times, self.width))
            return [*wrapped, " " * _INDENT + numbers]
        wrapped = _wrap(f"{sign} {case}", self.case_width)
        first = f"{wrapped[0]:<{self.case_width}}{' ' * GAP}{numbers}"
        return [first, *wrapped[1:]]


def plan(rows: Sequence[Compared], comparison: Comparison, width: int) -> Plan:
    """The columns that fit into `width` characters: all on one line a row if that leaves room for the case, else
    the case above its numbers. No number is ever cut: below some 30 characters lines are longer than the width.
    """
    verdicts = [row.verdict for row in rows]
    kind = comparison.kind
    scale = Scale.of(rows, speed=kind != "build")
    change = "change" if kind == "build" else "speed"
    columns = {
        "times": ("time of a call", [words.times_text(row) for row in rows], " → "),
        "change": (f"{change} [95 % interval]", [words.change_text(v, kind) for v in verdicts], " ["),
        "q": ("q", [words.q_text(v) for v in verdicts], ""),
        "noise": ("noise", [words.noise_text(v) for v in verdicts], "/"),
        "processes": ("proc.", [words.processes_text(v) for v in verdicts], "/"),
    }
    padded = {key: _padded(title, cells, at) for key, (title, cells, at) in columns.items()}
    cases = [words.case_text(row, comparison) for row in rows]
    for index, verdict in enumerate(verdicts):
        if needs := words.needs_text(verdict):
            cases[index] += f" · {needs}"
    natural = max((len(case) for case in cases), default=0) + 2
    widths = {key: len(title) for key, (title, _) in padded.items()}
    keys, plot, room = _fit(widths, width, min(natural, NARROWEST_CASE))
    stacked = "times" not in keys
    drawn = [scale.plot(row, plot) if plot else "" for row in rows]
    first, last = scale.labels
    titled = {**padded, "plot": (_ends(first, last, plot), drawn)}
    return Plan(
        width=width,
        case_width=0 if stacked else min(natural, room),
        cases=cases,
        times=[cell.strip() for cell in padded["times"][1]],
        titles=[titled[key][0] for key in keys],
        cells=[[titled[key][1][index] for key in keys] for index in range(len(rows))],
    )


def _fit(widths: Mapping[str, int], width: int, case: int) -> tuple[list[str], int, int]:
    """Columns beside or below a case that needs so many characters, the plot's width, and what is left over."""

    def tried(left: str, plot: int, dropped: Sequence[str], taken: int) -> tuple[list[str], int, int]:
        keys = [key for key in _COLUMNS if key not in (left, *dropped) and (key != "plot" or plot)]
        numbers = sum({**widths, "plot": plot}[key] for key in keys) + GAP * (len(keys) - 1)
        return keys, plot, width - numbers - taken

    for plot, dropped in _STEPS:
        beside = tried("", plot, dropped, GAP)
        if not dropped and beside[2] >= case:  # rather a line more than a column less
            return beside
    for plot, dropped in _STEPS:
        below = tried("times", plot, dropped, _INDENT)
        if below[2] >= 0:
            break
    return below


def _padded(title: str, cells: Sequence[str], at: str) -> tuple[str, list[str]]:
    """Title and cells of one width; where they have `at`, that stands below itself."""
    if at:
        parts = [cell.partition(at) for cell in cells]
        left = max((len(before) for before, _, _ in parts), default=0)
        right = max((len(sign + after) for _, sign, after in parts), default=0)
        cells = [f"{before:>{left}}{sign + after:<{right}}" for before, sign, after in parts]
    width = max((len(title), *map(len, cells)))
    return f"{title:<{width}}", [f"{cell:<{width}}" for cell in cells]


def _ends(left: str, right: str, width: int) -> str:
    return f"{left}{right:>{max(width - len(left), 0)}}"


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    ) or [text]
