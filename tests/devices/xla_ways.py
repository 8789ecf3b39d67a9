"""What torch_xla reads in right and wrong ways, for docs/measuring.md: `python -m tests.devices.xla_ways`.

Each way is read nine times, in turns, since other programs have the cores too: the least is printed.
"""

import sys
from collections.abc import Callable
from itertools import count
from typing import Any

import torch

from accel_micro.devices.base import Counted, Device, DeviceUnavailable
from accel_micro.devices.xla import Xla
from accel_micro.measure.sampling import opened

CALLS = 30
TURNS = 9


def wait(device: Device) -> None:
    device.synchronize()


def leave(device: Device) -> None:
    import torch_xla

    torch_xla.sync()


def read(
    call: Callable[[], Any],
    calls: int = CALLS,
    *,
    keep: str = "until the mark",
    mark: bool = True,
    end: Callable[[Device], None] = wait,
) -> tuple[float, Counted]:
    """Seconds per call, and what was counted."""
    device = Xla("xla")
    kept: list[Any] = []
    with device.block() as counted:
        device.synchronize()
        start = device.now()
        for _ in range(calls):
            result = call() if keep != "dropped" else call() is None
            if mark:
                device.mark_step(result)
            if keep == "all":
                kept.append(result)
            del result
        end(device)
        seconds = (device.now() - start) / calls
    return seconds, counted


def main() -> None:
    """Print the tables."""
    with opened("xla"):
        a, b = (torch.randn(512, 512).to("xla") for _ in range(2))
        x, rows = torch.randn(1 << 22).to("xla"), count(2)

        def product() -> torch.Tensor:
            return a @ b

        def changing() -> torch.Tensor:
            return a[: next(rows)] @ b

        def addition() -> torch.Tensor:
            return x + 1.5

        ways: dict[str, Callable[[], tuple[float, Counted]]] = {
            "mm 512, only traced": lambda: read(product, keep="dropped", mark=False, end=lambda device: None),
            "mm 512, dropped before the mark": lambda: read(product, keep="dropped"),
            "mm 512, marked and not waited for": lambda: read(product, end=leave),
            "mm 512, a new shape each call": lambda: read(changing, 3),
            "mm 512, 10 calls": lambda: read(product, 10),
            "mm 512, 30 calls": lambda: read(product, 30),
            "mm 512, 90 calls": lambda: read(product, 90),
            "add 16 MB, held until the mark": lambda: read(addition),
            "add 16 MB, all held to the end": lambda: read(addition, keep="all"),
        }
        found: dict[str, list[tuple[float, Counted]]] = {name: [] for name in ways}
        for _ in range(TURNS):
            for name, way in ways.items():
                found[name].append(way())
        for name, readings in found.items():
            seconds, counted = min(readings, key=lambda reading: reading[0])
            print(f"{name:34s} {1e6 * seconds:10.1f} µs a call, counted: {counted}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except DeviceUnavailable as reason:
        sys.exit(str(reason))
