"""The hunt for one step in one range of builds: gate, search, certificate.

It knows builds by their numbers only, decides what to run next and when to pass from stage to stage. What it decides
depends on the blocks that it was given and on nothing else.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import numpy as np

from accel_micro.bisect.dates import Dates
from accel_micro.bisect.evidence import Evidence
from accel_micro.bisect.likelihood import Floats, Grid
from accel_micro.bisect.result import Stage

GATE_SHARE: Final = 0.2
"""Of the error rate: what the gates may spend. Certificates share the rest."""

GATE_BLOCKS: Final = 48
"""After that many the ends count as not shown to differ."""

# Chosen by simulation (`python -m benchmarks.harness bisect`); 0.8 to 0.95 and 0.3 to 0.5 differ by a tenth.
_SURE: Final = 0.9  # posterior from which a pair is put to the test
_DOUBT: Final = 0.5  # below this the test is left and the search goes on
_NOISE_LEAST: Final = 1e-6  # noises less likely after the gate are left out: a third of the time
_PAUSE: Final = 4  # blocks of search before a pair that failed is tested again

_QUANTILES: Final = ((1 / 3, 2 / 3), (1 / 6, 5 / 6), (0.45, 0.9), (0.1, 0.55))
"""Of the posterior: which builds are run next, for the first slot of blocks in flight, the second, and so on."""

Pair = tuple[int, int]
Outcome = Literal["confirmed", "not_reproduced"]


@dataclass(frozen=True)
class Measured:
    """A block with its values.

    Attributes:
        stage: what it was for. pair: the two builds that it compares, for gate and certificate.
        builds: the numbers of those that gave a value. values: their log seconds.
    """

    stage: Stage
    pair: Pair
    builds: tuple[int, ...]
    values: Floats


class Levels:
    """Hands out the error rate: what is spent over all tests of a whole search is at most that.

    A pair keeps its level and its evidence, however often and from which hunt the search comes back to it.

    Attributes:
        tests: the evidence of each gate and certificate, of all hunts.
    """

    def __init__(self, error_rate: float) -> None:
        self.tests: dict[tuple[Stage, Pair], Evidence] = {}
        self.gate = GATE_SHARE * error_rate
        self._left = (1 - GATE_SHARE) * error_rate
        self._certificates: dict[Pair, float] = {}

    def certificate(self, pair: Pair) -> float:
        """Half of what is left, at the first time that a pair is asked about."""
        if pair not in self._certificates:
            self._left /= 2
            self._certificates[pair] = self._left
        return self._certificates[pair]


class Hunt:
    """One range, in which at most one step is found; what lies on both sides of it is another hunt's."""

    def __init__(self, low: int, high: int, hypotheses: Grid, levels: Levels) -> None:
        self.hypotheses, self.levels = hypotheses, levels
        self.outcome: Outcome | None = None
        self.stage: Stage = "gate"
        self.pair: Pair = (low, high)
        self._paused: dict[Pair, int] = {}
        self._reset(low, high)

    def _reset(self, low: int, high: int) -> None:
        self.low, self.high, self.pair = low, high, (low, high)
        self.dates = Dates(low, high, self.hypotheses)
        self._searched = 0

    def add(self, block: Measured) -> None:
        """Take in a new block."""
        test = self.levels.tests.get((block.stage, block.pair))
        if test is not None:
            test.add(block.values, [build == block.pair[1] for build in block.builds])
        self._searched += block.stage == "search"
        self.know(block)

    def know(self, block: Measured) -> None:
        """Take in a block that another hunt has had: it is no fresh evidence."""
        self.dates.add(block.values, block.builds)

    def advance(self, usable: Sequence[int]) -> bool:
        """Pass to another stage if it is time. True if something changed, and more may.

        Args:
            usable: builds of the range that are not known to be broken, in order; at least two.
        """
        if self.outcome:
            return False
        if self.stage == "gate":
            return self._gate(usable)
        if self.stage == "search":
            return self._search(usable)
        return self._certify(usable)

    def _gate(self, usable: Sequence[int]) -> bool:
        if (usable[0], usable[-1]) != (self.low, self.high):
            self._reset(usable[0], usable[-1])
            return True
        test = self._test()
        reached = test.reaches(self.levels.gate)
        if reached and not test.is_opposite:
            self.stage = "search"
            self.dates.narrow(_NOISE_LEAST)
            self.hypotheses = self.dates.hypotheses
            return True
        if reached or test.blocks >= GATE_BLOCKS or test.is_futile():
            self.outcome = "not_reproduced"
            return True
        return False

    def _search(self, usable: Sequence[int]) -> bool:
        mass = self._mass(usable)
        top = int(mass.argmax())
        pair = usable[top], usable[top + 1]
        alone = len(usable) == 2
        if alone or (mass[top] >= _SURE and self._searched >= self._paused.get(pair, 0)):
            self.stage, self.pair = "certificate", pair
            self._test()
            return True
        return False

    def _certify(self, usable: Sequence[int]) -> bool:
        test = self._test()
        reached = test.reaches(self.levels.certificate(self.pair))
        if reached and not test.is_opposite:
            self.outcome = "confirmed"
            return True
        if self.pair not in pairwise(usable):
            self.stage = "search"  # one of the two turned out not to work
            return True
        doubtful = self._mass(usable)[usable.index(self.pair[0])] < _DOUBT or reached or test.is_futile()
        if doubtful and len(usable) > 2:
            self.stage = "search"
            self._paused[self.pair] = self._searched + _PAUSE
            return True
        return False

    def _test(self) -> Evidence:
        key = self.stage, self.pair
        if key not in self.levels.tests:
            machine = self.dates.machine if self.stage == "gate" else self.dates.sizes(*self.pair)
            noise = machine.sum(axis=0)
            # The step of this pair may be the one that was searched, or a part of it.
            steps = np.sign(self.hypotheses.steps)
            sides = {sign: machine[steps == sign].sum() / (steps == sign).sum() for sign in set(steps)}
            other = np.array([sides[sign] for sign in steps])[:, None, None] * noise
            weights = np.log(0.5 * machine + 0.5 * other + 1e-300)
            self.levels.tests[key] = Evidence(self.hypotheses, weights)
        return self.levels.tests[key]

    def propose(self, usable: Sequence[int], slot: int) -> tuple[Stage, Pair, list[int]]:
        """What to run next: for what, which two builds it compares, and the builds, in order of number.

        Args:
            slot: 0 for the only block in flight; blocks in flight at once have slots of their own.
        """
        if self.stage != "search":
            low, high = self.pair
            return self.stage, self.pair, [low, low, high, high]
        ends = usable[0], usable[-1]
        return "search", ends, sorted([*ends, *self._between(usable, slot)])

    def likely(self, usable: Sequence[int]) -> list[int]:
        """Builds that coming blocks may ask for, the likeliest first; none while the ends may be alike."""
        test = self.levels.tests.get(("gate", self.pair))
        if self.stage == "gate" and (test is None or test.log_evidence <= 0):
            return []
        found: dict[int, None] = {}
        if self.stage != "gate":
            top = int(self._mass(usable).argmax())
            found |= dict.fromkeys(usable[top : top + 2])
        if len(usable) > 2:
            for slot in range(len(_QUANTILES)):
                found |= dict.fromkeys(self._between(usable, slot))
        return list(found)

    def _between(self, usable: Sequence[int], slot: int) -> tuple[int, int]:
        # Of build usable[i + 1]: how likely the step is before it. Rounded, so that all machines break ties alike.
        mass = self._between_usable(self.dates.searched, usable)
        inner = np.round(np.cumsum(mass / mass.sum())[:-1], 9)
        first, second = (int(np.abs(inner - q).argmin()) for q in _QUANTILES[slot % len(_QUANTILES)])
        if first == second and len(inner) > 1:
            up = second + 1 < len(inner) and (inner[second] < 0.5 or second == 0)
            second += 1 if up else -1
        return usable[first + 1], usable[second + 1]

    def _mass(self, usable: Sequence[int]) -> Floats:
        """How likely the step is between each of the usable builds and the next."""
        return self._between_usable(self.dates.first_bad, usable)

    def _between_usable(self, first_bad: Floats, usable: Sequence[int]) -> Floats:
        sums = np.concatenate([[0.0], np.cumsum(first_bad)])
        places = np.array(usable) - self.low
        result: Floats = np.diff(sums[places])
        return result

    def suspects(self, probability: float) -> Pair:
        """Last build taken for good and first taken for bad: the step is between with this probability."""
        tail = (1 - probability) / 2
        first_bad = self.dates.first_bad / self.dates.first_bad.sum()
        below, above = np.cumsum(first_bad), np.cumsum(first_bad[::-1])[::-1]
        first = int(np.argmax(below > tail))
        last = len(first_bad) - 1 - int(np.argmax(above[::-1] > tail))
        return self.low + first, self.low + 1 + last

    def runs_to_go(self, usable: Sequence[int]) -> int:
        """About how many processes are missing, from the step and the noise as they look now.

        A fit by eye to simulated searches, right within a factor of three; until the gate is passed it is mostly a
        guess about how large the step is. While the ends look alike there they are those that the gate may still take.
        """
        machine = self.dates.machine
        steps, noises, shares = self.hypotheses.steps, self.hypotheses.noises, self.hypotheses.shares
        size = math.exp((machine.sum(axis=(1, 2)) * np.log(np.abs(steps))).sum())
        noise = math.exp((machine.sum(axis=(0, 2)) * np.log(noises)).sum())
        stray = float((machine.sum(axis=(0, 1)) * shares).sum())
        in_units = min(max(size / noise, 0.3), 20.0) * (1 - stray)
        compared = math.log(6) * (1 - math.exp(-(in_units**2) / 3.5))  # evidence a block of a pair brings
        searched = math.log(3) * (1 - math.exp(-(in_units**2) / 4.5))
        certificate = -math.log(self.levels.gate) / compared
        blocks = certificate
        if self.stage != "certificate":
            mass = self._mass(usable)
            mass /= mass.sum()
            entropy = -float((mass * np.log(mass + 1e-300)).sum())
            blocks += (entropy + 2 * (len(usable) > 2)) / searched
        else:
            blocks -= self._test().log_evidence / compared
        if self.stage == "gate":
            # A test begins with what is known then; to look how far it is must not begin it.
            test = self.levels.tests.get((self.stage, self.pair))
            evidence = test.log_evidence if test is not None else 0.0
            blocks += (-math.log(self.levels.gate) - evidence) / compared
            if test is not None and test.blocks and evidence <= 0:
                blocks = min(blocks, GATE_BLOCKS - test.blocks)
        return 4 * math.ceil(max(blocks, 1.0))
