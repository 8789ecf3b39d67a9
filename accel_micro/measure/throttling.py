"""Was the device's clock held down during a block? What the driver says before and after it, and since when."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from accel_micro.devices.base import WatchState

LITTLE_HELD: Final = 0.02
"""Share of a block for which a limit may have held the clock down before the block counts as throttled."""


def reasons(before: WatchState, after: WatchState, seconds: float) -> tuple[str, ...]:
    """Why the clock was held down during a block of that many seconds; empty when it was not.

    A reason counts that the driver gives on either side of the block, or whose counter of seconds went on within it by
    more than 2 % of the block.
    """
    counted = (
        name
        for name, held in after.held_seconds.items()
        if held - before.held_seconds.get(name, held) > LITTLE_HELD * seconds
    )
    return tuple(dict.fromkeys((*before.reasons, *after.reasons, *counted)))


@dataclass
class Seen:
    """What a watch said over a whole process.

    Attributes:
        blocks: blocks during which the clock was held down, by reason.
    """

    blocks: Counter[str] = field(default_factory=Counter)
    _hertz: list[float] = field(default_factory=list)
    _celsius: list[float] = field(default_factory=list)

    def note(self, before: WatchState, after: WatchState, why: Iterable[str]) -> None:
        """One more block."""
        self.blocks.update(why)
        self._hertz += [state.hertz for state in (before, after) if state.hertz is not None]
        self._celsius += [state.celsius for state in (before, after) if state.celsius is not None]

    def facts(self) -> Mapping[str, float | dict[str, int]]:
        """For the record: clock and temperature, least and most, and the reasons."""
        found: dict[str, float | dict[str, int]] = {"throttled_blocks": dict(sorted(self.blocks.items()))}
        if self._hertz:
            found |= {"lowest_hertz": min(self._hertz), "highest_hertz": max(self._hertz)}
        if self._celsius:
            found |= {"lowest_celsius": min(self._celsius), "highest_celsius": max(self._celsius)}
        return found
