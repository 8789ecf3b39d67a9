"""What an explanation is: contributions that add up to a difference, closures, and what is left over."""

from dataclasses import dataclass, field
from typing import Final

from accel_micro.explain.aligning import Group
from accel_micro.explain.capture import Capture
from accel_micro.stats.verdict import Verdict

SIDES: Final = ("baseline", "contender")
ALPHA: Final = 0.01
TOLERANCE: Final = 0.01
CONFIDENCE: Final = 0.95
CLOSED: Final = (0.85, 1.15)
"""Bounds of a closure between which a side counts as explained (proposed; a good model of ops reaches 5 to 12 %)."""
MOST_LEFT: Final = 0.2
"""Share of the difference from which on what is left over is too much."""


@dataclass(frozen=True)
class Interval:
    """A value with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Contribution:
    """What a group adds to the difference of the sides, seconds an example; positive: the baseline takes longer.

    Attributes:
        baseline, contender: its seconds on either side, the mean over processes.
        q_value: None where too few processes tell.
        factor: by which it multiplies the speedup.
    """

    group: Group
    baseline: float
    contender: float
    seconds: Interval
    factor: float
    q_value: float | None = None
    significant: bool = False


@dataclass(frozen=True)
class Closure:
    """Sum of the parts ÷ measured step, of one side: in place, and with hot and cold replays instead.

    `host` and `device` are those clocks of the step ÷ the step, where the device has them.
    """

    in_place: Interval
    hot: float | None = None
    cold: float | None = None
    host: float | None = None
    device: float | None = None

    @property
    def is_certain(self) -> bool:
        """The parts add up to the step, and the interval leaves no doubt about it."""
        return CLOSED[0] <= self.in_place.low and self.in_place.high <= CLOSED[1]


@dataclass(frozen=True)
class Explanation:
    """Why the contender is faster than the baseline, or slower.

    Attributes:
        speedup: baseline ÷ contender, seconds an example, with interval. verdict: whether they differ.
        predicted: the same from replays, hot and cold; None where there are none.
        difference: seconds an example, baseline less contender; contributions add up to it.
        unexplained: its share of the difference, by magnitude; None where the sides do not differ.
    """

    baseline: Capture
    contender: Capture
    interleaved: bool
    speedup: Interval
    verdict: Verdict
    difference: float
    predicted: tuple[float, float] | None
    closures: tuple[Closure | None, Closure | None]
    contributions: tuple[Contribution, ...]
    unexplained: float | None
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def differs(self) -> bool:
        """The sides differ by more than noise."""
        return self.verdict.kind in ("regression", "improvement")

    @property
    def is_closed(self) -> bool:
        """Both sides close, and little of the difference is left over."""
        certain = all(closure is not None and closure.is_certain for closure in self.closures)
        return certain and self.unexplained is not None and self.unexplained < MOST_LEFT

    @property
    def significant(self) -> tuple[Contribution, ...]:
        """Those that are no noise, the largest first; what is unexplained is none."""
        found = [each for each in self.contributions if each.significant and each.group.kind != "unexplained"]
        return tuple(sorted(found, key=lambda each: -abs(each.seconds.value)))
