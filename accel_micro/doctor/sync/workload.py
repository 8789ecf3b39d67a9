"""Work whose length is known without believing any synchronisation.

The witness of a product is a chain: each product takes the result of the one before, and a number of the last is
fetched to the host. That number cannot be there before all products were computed, whatever a synchronisation does.
The slope over n and 3n products drops the fetching. What no witness may fall below is the work over the peak of the
machine. The witness of a spin is the device's own clock.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from accel_micro.devices import peaks
from accel_micro.devices.base import Call, Device

SMALL_SIDE: Final = 64
_LARGE_SIDES: Final = (256, 512, 1024, 2048, 4096, 8192)
_LARGE_SECONDS: Final = 2e-3
"""So long a call hides what launching and waiting cost, and some ten of them still fit a block."""


@dataclass(frozen=True)
class Workload:
    """A call to time, and who knows how long it takes.

    Attributes:
        name: `small`, `large` or `spin`. what: in words.
        call: the work.
        witness: true seconds per call, over about that many calls.
        least: seconds that a call takes at least, by the peak of the machine; with True that is measured again. None
            where there is no such bound.
        known_by: who the witness is, in words.
    """

    name: str
    what: str
    call: Call
    witness: Callable[[int], float]
    least: Callable[[bool], float | None]
    known_by: str


def workloads(device: Device) -> Iterator[Workload]:
    """A small product, bound by launches where there are any; a large one; a spin, where the device has one.

    Inside the device's session. The small one is made before anything else is measured, so that its first call can be
    the first of the process.
    """
    yield product(device, SMALL_SIDE, "small")
    peak = peaks.flops_per_second(device, "float32") or 0.0
    side = next((side for side in _LARGE_SIDES if 2 * side**3 >= _LARGE_SECONDS * peak), _LARGE_SIDES[-1])
    yield product(device, side, "large")
    spin = device.spin()
    if spin is not None:
        call, seconds = spin
        yield Workload(
            "spin",
            "a kernel that spins a fixed number of cycles",
            call,
            lambda calls: seconds(),
            lambda again: None,
            "the clock of the device itself, read between two events around a spin",
        )


def product(device: Device, side: int, name: str) -> Workload:
    """A square matrix of float32 times a reflection, which keeps the size of numbers from product to product."""
    import torch

    normal = torch.nn.functional.normalize(torch.randn(side), dim=0)
    reflection = torch.eye(side) - 2 * torch.outer(normal, normal)
    a, w = torch.randn(side, side).to(device.name), reflection.to(device.name)

    def chain(calls: int) -> None:
        last = a
        for _ in range(calls):
            last = torch.mm(last, w)
            device.mark_step(last)
        last[0, 0].item()

    def least(again: bool) -> float | None:
        tf32 = bool(device.precision().get("matmul_tf32"))
        peak = peaks.flops_per_second(device, "tf32" if tf32 else "float32", again=again)
        return None if peak is None else 2 * side**3 / peak

    return Workload(
        name,
        f"product of two {side}×{side} float32 matrices",
        lambda: torch.mm(a, w),
        lambda calls: slope_of(device, chain, calls),
        least,
        "a chain of products, each of the result of the one before, until a number of the last is on the host",
    )


def slope_of(device: Device, chain: Callable[[int], None], calls: int) -> float:
    """Seconds per call from n and 3n calls of a chain that ends when its result is there."""
    chain(1)  # what was queued before is done then, even where a synchronisation does not wait
    times = []
    for count in (calls, 3 * calls):
        start = device.now()
        chain(count)
        times.append(device.now() - start)
    return max(times[1] - times[0], 1e-12) / (2 * calls)
