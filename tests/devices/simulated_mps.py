"""An Apple GPU on paper, with the habits of torch's MPS backend, and a virtual clock.

- A call encodes commands; the GPU does nothing yet.
- Commands are committed by a synchronisation or, as some ops do, after every few calls.
- A synchronisation commits, waits and costs time of its own, more than many calls.
- Its event stamps the host, so it can even run backwards.
"""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from accel_micro.devices.mps import Mps
from tests.fake import Clock, OnPaper

ENCODE, GPU, SYNCHRONISE = 20e-6, 30e-6, 4e-3


class LyingEvent:
    """`torch.mps.Event`: whoever reads it is wrong."""

    def __init__(self, *options: Any, **named: Any) -> None:
        raise AssertionError("torch.mps.Event is never read")


@dataclass
class Gpu:
    """The state of the GPU; `install` puts it in place of torch.mps.

    Attributes:
        commit_every: encoded calls after which they are committed by themselves; None: never.
        slowing: how much longer each further call of a commit takes the GPU, as a share of the first.
    """

    clock: Clock
    commit_every: int | None = None
    slowing: float = 0.0
    encoded: int = 0
    busy_until: float = 0.0
    done: int = 0

    def call(self) -> None:
        """The op under test."""
        self.clock.log.append("call")
        self.clock.work(ENCODE)
        self.encoded += 1
        if self.commit_every is not None and self.encoded >= self.commit_every:
            self.commit()

    def commit(self) -> None:
        start = max(self.clock.seconds, self.busy_until)
        seconds = sum(GPU * (1 + self.slowing * number) for number in range(self.encoded))
        self.busy_until, self.done, self.encoded = start + seconds, self.done + self.encoded, 0

    def synchronize(self) -> None:
        self.clock.log.append("synchronise")
        self.commit()
        self.clock.seconds = max(self.clock.seconds, self.busy_until)
        self.clock.work(SYNCHRONISE)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let torch.mps be this GPU."""
        monkeypatch.setattr(torch.mps, "synchronize", self.synchronize)
        monkeypatch.setattr(torch.mps, "Event", LyingEvent, raising=False)
        monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 1 << 30, raising=False)
        monkeypatch.setattr(torch.mps, "driver_allocated_memory", lambda: 1 << 28)


class MpsOnPaper(OnPaper, Mps):
    """The real device, on the clock of the GPU."""

    def __init__(self, clock: Clock) -> None:
        super().__init__("mps")
        self.clock = clock
