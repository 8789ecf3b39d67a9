"""Which sections there are, and what share of the time each gets. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple


class Part(NamedTuple):
    """A section: its name on the command line, its title, its question, and its share of the time of all."""

    key: str
    title: str
    question: str
    share: float


PARTS: Final = (
    Part("truth", "Truth", "Is what a stopwatch reads what the work took?", 0.15),
    Part("power", "False alarms and power", "Who cries wolf, and who misses one?", 0.42),
    Part("cost", "Cost", "What does an answer cost?", 0.13),
    Part("bisect", "Bisect", "Which search names an innocent build?", 0.13),
    Part("explain", "Explain", "Do the parts of a model's step add up to the step?", 0.10),
    Part("scale", "Scale", "What do ten and a hundred times as many cases and builds cost?", 0.07),
)
BUDGET_SECONDS: Final = 600.0


class UnknownSection(ValueError):
    """There is no such section; the message lists those there are."""


def plan(names: Sequence[str], budget_seconds: float) -> list[tuple[Part, float]]:
    """The sections that are asked for, all without names, each with its seconds; in the order of `PARTS`.

    Raises:
        UnknownSection: a name is none.
    """
    known = {part.key for part in PARTS}
    if unknown := [name for name in names if name not in known]:
        raise UnknownSection(f"unknown section {unknown[0]!r}; there are {', '.join(known_names())}")
    chosen = [part for part in PARTS if not names or part.key in names]
    whole = sum(part.share for part in chosen)
    return [(part, budget_seconds * part.share / whole) for part in chosen]


def known_names() -> list[str]:
    """The names of all sections."""
    return [part.key for part in PARTS]
