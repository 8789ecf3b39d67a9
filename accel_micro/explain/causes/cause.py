"""What a cause is, what became of its ablation, and the questions that rules of several families ask."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from accel_micro.explain.aligning import rows_of
from accel_micro.explain.capture import Capture, Row
from accel_micro.explain.explanation import SIDES, Contribution, Explanation
from accel_micro.explain.setting import Setting


@dataclass(frozen=True)
class Cause:
    """Something that explains a difference, or that holds one side back.

    Attributes:
        name: a key of the catalogue.
        side: `baseline` or `contender`, the one that it is about.
        text: a sentence with its figures.
        ablation: in words, what would confirm it.
        setting: the changed setting of that side which does so on this machine; None where that is not cheap.
        seconds: by how much the ablation should move that side's step, seconds an example; None where unknown.
    """

    name: str
    side: str
    text: str
    ablation: str
    setting: Setting | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Ablation:
    """What became of a cause's ablation: the step ÷ that of the changed setting, with interval and verdict."""

    cause: Cause
    speedup: float
    low: float
    high: float
    confirmed: bool
    text: str


def of_sides(e: Explanation) -> Iterator[tuple[str, Capture, int]]:
    yield SIDES[0], e.baseline, 0
    yield SIDES[1], e.contender, 1


def slower(e: Explanation) -> int:
    """Number of the side that takes longer."""
    return 0 if e.difference > 0 else 1


def slowing(e: Explanation, side: int) -> Iterator[Contribution]:
    """Significant contributions that make this side slower."""
    for each in e.significant:
        if each.seconds.value * (1 if side == 0 else -1) > 0:
            yield each


def worst(e: Explanation, side: int, fits: Callable[[Row], bool]) -> list[Contribution]:
    """Of these the groups of ops that have rows which fit, on this side."""
    capture = (e.baseline, e.contender)[side]
    return [
        each for each in slowing(e, side)
        if each.group.kind == "op" and any(fits(row) for row in rows_of(each.group, side, capture))
    ]  # fmt: skip


def names(pieces: list[Contribution]) -> str:
    return ", ".join(dict.fromkeys(f"{each.group.phase} {each.group.label}" for each in pieces[:3]))


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"
