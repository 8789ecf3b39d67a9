"""A shape with ranges, and the shapes of the sizes in it: `m=16..4096 k=16..4096 n=64` is swept over m = k.

Pure, and needs no torch. Sizes are low × a whole number of at most four binary digits: kernels like round sizes, and
a model has them. Any two neighbours from eight times the lowest on are within a factor 1.125 of each other.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

_RANGE: Final = re.compile(r"(\d+)\.\.(\d+)")
_SMALL: Final = 1024
"""So few numbers cost less than a launch does."""

_DIGITS: Final = 4
"""Binary digits of a size, over the lowest: 8, 9 … 15, 16, 18 … 30, 32, 36 …"""

COARSE: Final = 4.0
MOST_COARSE: Final = 6
"""A sweep begins with sizes about that factor apart, and with at most so many."""


@dataclass(frozen=True)
class Sweep:
    """Sizes of an op, from `low` to `high`.

    Attributes:
        text: the shape, with a range LOW..HIGH at each argument that is the size.
        names: those arguments. low, high: the ends.
    """

    text: str
    names: tuple[str, ...]
    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> "Sweep":
        """Read a shape with ranges, which must all be the same.

        Raises:
            ValueError: it has no range, several, or one that does not ascend from 1 or more.

        >>> Sweep.parse("gpt2: q=16..64 kv=16..64 d=64").shape(32)
        'gpt2: q=32 kv=32 d=64'
        """
        found: dict[str, tuple[int, int]] = {}
        for word in text.rpartition(": ")[2].split():
            name, _, value = word.partition("=")
            if match := _RANGE.fullmatch(value):
                found[name] = (int(match[1]), int(match[2]))
        ends = set(found.values())
        if len(ends) != 1:
            raise ValueError(f"sweep {text!r} must have one range LOW..HIGH, not {len(ends)}")
        low, high = ends.pop()
        if not 1 <= low < high:
            raise ValueError(f"sweep {text!r}: {low}..{high} does not ascend from 1 or more")
        return cls(text, tuple(found), low, high)

    @classmethod
    def over_only_number(cls, shapes: Iterable[dict[str, Any]]) -> "Sweep | None":
        """The sweep of an op whose shapes have one argument alone, a number: over all values that it has.

        It begins at 1024 or below, where launches cost more than numbers, whatever sizes the op is timed at.

        >>> Sweep.over_only_number([{"n": 1000}, {"n": 64000}]).text
        'n=1000..64000'
        """
        arguments = list(shapes)
        if (
            not arguments
            or {tuple(one) for one in arguments} != {tuple(arguments[0])}
            or len(arguments[0]) != 1
        ):
            return None
        ((name, _),) = arguments[0].items()
        values = [one[name] for one in arguments]
        if not all(type(value) is int for value in values) or not 1 <= min(values) < max(values):
            return None
        return cls.parse(f"{name}={min(*values, _SMALL)}..{max(values)}")

    @property
    def label(self) -> str:
        """The arguments that are the size: `m=k=n`."""
        return "=".join(self.names)

    @property
    def rest(self) -> str:
        """The shape without them: `gpt2: d=64`."""
        name, colon, words = self.text.rpartition(": ")
        kept = " ".join(word for word in words.split() if word.partition("=")[0] not in self.names)
        return f"{name}{colon}{kept}".strip()

    def shape(self, size: int) -> str:
        """The shape of a size."""
        return _RANGE.sub(str(size), self.text)

    def covers(self, shape: str) -> bool:
        """Whether a shape is one of this sweep."""
        fixed = re.split(r"\d+\.\.\d+", self.text)
        found = re.fullmatch(r"(\d+)".join(map(re.escape, fixed)), shape)
        sizes = set(map(int, found.groups())) if found else set()
        return len(sizes) == 1 and self.low <= min(sizes) <= self.high

    def grid(self) -> tuple[int, ...]:
        """Sizes to begin with: from end to end, in even steps on the logarithmic scale."""
        steps = max(1, min(MOST_COARSE - 1, round(math.log(self.high / self.low) / math.log(COARSE))))
        inner = (self._round(self.low * (self.high / self.low) ** (i / steps)) for i in range(1, steps))
        return tuple(sorted({self.low, *inner, self.high}))

    def between(self, low: int, high: int) -> int | None:
        """A size about halfway between two, by their ratio; None when there is none.

        >>> Sweep.parse("n=16..4096").between(64, 256), Sweep.parse("n=16..4096").between(16, 32)
        (128, None)
        """
        size = self._round(math.sqrt(low * high))
        return size if low < size < high else None

    def at_most(self, size: float) -> int:
        """The largest size of the sweep up to one that is at least `low`."""
        quantum = self._quantum(size)
        return max(self.low, min(self.high, int(size / quantum) * quantum))

    def _quantum(self, size: float) -> int:
        return self.low << max(0, int(math.log2(max(size, self.low) / self.low)) + 1 - _DIGITS)

    def _round(self, size: float) -> int:
        quantum = self._quantum(size)
        return max(self.low, min(self.high, round(size / quantum) * quantum))
