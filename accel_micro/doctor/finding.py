"""What a finding is, and typed access to facts that may be absent or, from a foreign file, of any shape."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

SEVERITIES: Final = ("problem", "warning", "note")
"""Worst first. A problem makes timings meaningless, a warning makes them noisy or unlike other machines'."""


@dataclass(frozen=True)
class Finding:
    """One thing about this machine that a reader of its timings must know.

    Attributes:
        name: short and stable; the same for every machine with the same trouble.
        severity: one of `SEVERITIES`.
        what: one sentence with the figure.
        remedy: one sentence that the user can act on.
    """

    name: str
    severity: str
    what: str
    remedy: str

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise ValueError(f"unknown severity {self.severity!r}; known: {', '.join(SEVERITIES)}")


_LARGEST: Final = 1e100


class View:
    """Facts by dotted name, read with the type that a rule needs; a fact of another type counts as absent."""

    def __init__(self, facts: Mapping[str, Any] | None) -> None:
        self._facts = facts if isinstance(facts, Mapping) else {}

    def get(self, name: str) -> Any:
        """The fact as it is; None when it is absent."""
        value: Any = self._facts
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    def number(self, name: str) -> float | None:
        """The fact, when it is a finite number and no truth value."""
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < _LARGEST:
            return None
        return float(value)

    def text(self, name: str) -> str:
        """The fact, when it is a text; else an empty one."""
        value = self.get(name)
        return value if isinstance(value, str) else ""

    def flag(self, name: str) -> bool | None:
        """The fact, when it is a truth value."""
        value = self.get(name)
        return value if isinstance(value, bool) else None

    def texts(self, name: str) -> list[str]:
        """The texts in a fact that is a list."""
        value = self.get(name)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

    def views(self, name: str) -> "list[View]":
        """The dictionaries in a fact that is a list."""
        value = self.get(name)
        return [View(item) for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []

    def variable(self, name: str) -> str:
        """An environment variable; empty when it is not set."""
        return self.text(f"environment.{name}")


Rule = Callable[[View, View], Iterator[Finding]]
"""Takes the facts of the host and those of torch; yields what it finds."""


def gib(size: float) -> str:
    """Bytes in GiB, for a sentence."""
    return f"{size / (1 << 30):.1f} GiB"


def ghz(hertz: float) -> str:
    """Hertz in GHz, for a sentence."""
    return f"{hertz / 1e9:.2f} GHz"


def counted(number: float, noun: str) -> str:
    """`1 core`, `2 cores`, `1.5 cores`."""
    return f"{number:g} {noun}" + ("" if number == 1 else "s")


def whole(text: str) -> int:
    """The whole number that a text is; 0 when it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
