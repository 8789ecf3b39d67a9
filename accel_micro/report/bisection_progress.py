"""What a bisection shows meanwhile: how likely each date is, as bars, with the runs so far and about how many to go."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from accel_micro.report.progress import duration
from accel_micro.report.words import clean

if TYPE_CHECKING:
    from rich.console import Console

    from accel_micro.bisect import Progress, Told
    from accel_micro.results.questions import Question

_BARS: Final = " ▁▂▃▄▅▆▇█"
_STAGES: Final = {
    "gate": "do the ends differ?",
    "search": "searching",
    "certificate": "testing the pair that is most likely",
    "done": "done",
}


class Watcher:
    """Told of each block and of what takes long. On a terminal it redraws in place, elsewhere it prints a line a block.

    Nothing is drawn while a block runs: that would disturb it.
    """

    def __init__(self, console: "Console", now: Callable[[], float] = time.monotonic) -> None:
        self._console, self._now = console, now
        self._began = now()
        self._blocks = 0
        self._drawn = 0

    def told(self, told: "Told", question: "Question") -> None:
        """A block is done, or others are waited for."""
        self._blocks += told.block is not None
        lines = status(told.progress, question, self._now() - self._began, self._width)
        if told.block is None:
            lines.append("waiting for another worker")
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._redraw(lines)
        else:
            self._console.file.write(f"{lines[0]}\n")
            self._console.file.flush()

    def say(self, text: str) -> None:
        """Something that takes long, or is worth knowing."""
        self._redraw([])
        self._console.file.write(f"{clean(text)}\n")
        self._console.file.flush()

    @property
    def _width(self) -> int:
        return max(40, min(self._console.width, 100))

    def _redraw(self, lines: Sequence[str]) -> None:
        if self._drawn:
            self._console.file.write(f"\x1b[{self._drawn}A\x1b[J")
        for line in lines:
            self._console.file.write(f"{line[: self._width]}\n")
        self._console.file.flush()
        self._drawn = len(lines)


def status(progress: "Progress[str]", question: "Question", seconds: float, width: int) -> list[str]:
    """A line that says how far it is; where a range is searched, bars over its builds and the dates below them."""
    per_run = seconds / progress.runs if progress.runs else 0.0
    left = f", about {progress.runs_to_go} to go" if progress.runs_to_go else ""
    if progress.runs_to_go and per_run:
        left += f" ({duration(per_run * progress.runs_to_go)})"
    head = f"{progress.runs} runs, {duration(seconds)}{left}: {_STAGES[progress.stage]}"
    ids = [build.id for build in question.builds if build.id not in question.left_out]
    ids = ids[len(ids) - len(progress.first_bad) :]
    if progress.stage in ("gate", "done") or not any(progress.first_bad):
        return [head]
    likely = max(range(len(ids)), key=lambda i: progress.first_bad[i])
    first, last = question.version(ids[0]), question.version(ids[-1])
    chart = bars(progress.first_bad, width)
    gap = max(1, len(chart) - len(first) - len(last))
    best = f"{100 * progress.first_bad[likely]:.0f} % torch {question.version(ids[likely])}"
    return [head, chart, f"{first}{' ' * gap}{last}", f"most likely the first bad one: {best}"]


def bars(shares: Sequence[float], width: int) -> str:
    """A bar for each share, or for the sum of neighbours where there are more than fit; the largest is full.

    >>> bars([0.1, 0.0, 0.8, 0.1], 4)
    '▁ █▁'
    """
    columns = min(len(shares), width)
    sums = [0.0] * columns
    for index, share in enumerate(shares):
        sums[index * columns // len(shares)] += share
    largest = max(sums) or 1.0
    # What is not nothing is seen.
    heights = [round(8 * value / largest) or (1 if value > largest / 64 else 0) for value in sums]
    repeat = max(1, min(4, width // columns))
    return "".join(_BARS[height] * repeat for height in heights)
