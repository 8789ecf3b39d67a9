"""What comes out of a comparison."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

Kind = Literal["regression", "improvement", "invariant", "inconclusive"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@dataclass(frozen=True)
class Verdict:
    """Contender against baseline.

    Attributes:
        kind: `regression` (the contender is slower, significantly and by more than the tolerance),
            `improvement` (the same the other way), `invariant` (shown to be equal within the tolerance), or
            `inconclusive`.
        ratio: contender ÷ baseline, of seconds per call; NaN when a side has no process.
        ratio_low, ratio_high: its 95 % interval; (0, inf) while processes are too few to tell.
        p_value: how often two sides that do not differ would look at least this different; 1 when it cannot be
            told.
        q_value: the p-value adjusted for the family of comparisons it was judged in (Benjamini-Hochberg); None
            when it was judged alone.
        processes_needed: about how many more processes a side would decide it; 0 when it is decided, None when
            no number in reach would: the difference is as large as the tolerance.
        reason: in words, what decided it or what is missing.
        baseline_processes, contender_processes: how many processes each side has.
        baseline_spread, contender_spread: standard deviation of the log process medians that ran in one speed
            mode, so about the relative one; NaN with fewer than two.
        set_aside: processes of baseline and contender that ran in another speed mode than most, compared among
            themselves or not at all.
    """

    kind: Kind
    ratio: float
    ratio_low: float
    ratio_high: float
    p_value: float
    processes_needed: int | None
    q_value: float | None = None
    reason: str = ""
    baseline_processes: int = 0
    contender_processes: int = 0
    baseline_spread: float = float("nan")
    contender_spread: float = float("nan")
    set_aside: tuple[int, int] = (0, 0)

    @property
    def decided(self) -> bool:
        """Whether more processes are not needed."""
        return self.kind != "inconclusive"
