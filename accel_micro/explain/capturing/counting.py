"""What should not happen in a steady step, counted: compilations, and ops that run on the CPU in a device's place."""

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from accel_micro.devices.base import Device

_FALLS_BACK: Final = re.compile(r"operator '([\w:.]+)'.{0,80}fall back to run on the CPU", re.DOTALL)
"""What torch says once of each op that MPS has no kernel for."""


class Counts:
    """Counts over the blocks of a process."""

    def __init__(self) -> None:
        self._steps = 0
        self._compilations = 0
        self._seconds = 0.0
        self._on_host: dict[str, None] = {}

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Entered around the first step: an op that falls back is warned of once."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for each in caught:
            self._on_host |= dict.fromkeys(fallen(str(each.message)))

    @contextmanager
    def block(self, device: Device, steps: int) -> Iterator[None]:
        """Entered around a block of that many steady steps."""
        graphs = _graphs()
        with device.block() as counted:
            yield
        self._steps += steps
        self._compilations += counted.compilations + _graphs() - graphs
        self._seconds += counted.compile_seconds or 0.0
        self._on_host |= dict.fromkeys(counted.on_host)

    def facts(self) -> dict[str, Any]:
        """As `capture.Reading` has them."""
        steps = max(1, self._steps)
        return {
            "compilations": self._compilations / steps,
            "compile_seconds": self._seconds / steps,
            "on_host": list(self._on_host),
        }


def fallen(message: str) -> list[str]:
    """The ops that a warning says will run on the CPU."""
    return _FALLS_BACK.findall(message)


def _graphs() -> int:
    """Graphs that torch.compile made in this process; a function that is compiled anew makes another."""
    if "torch._dynamo" not in sys.modules:
        return 0
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


def finite(result: Any) -> bool:
    """Whether there is neither NaN nor infinity in what a step gives."""
    from accel_micro.explain.capturing.describing import tensors_in

    return all(bool(tensor.isfinite().all()) for tensor in tensors_in(result) if tensor.is_floating_point())
