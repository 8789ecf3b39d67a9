"""How long the device works for each call of a step, in place: kernels by the profiler, told apart by the calls.

Calls made again alone would need each call's arguments, which a large step has no memory for; and some cannot be made
again: the gradient of attention with dropout reads the seed of a forward that is not there.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from accel_micro.explain.capturing.recording import Structure

_STEPS: Final = 3
_MARK: Final = "accel_micro call "


class Marking(TorchDispatchMode):
    """Puts each op's own call under its number, for the profiler.

    Attributes:
        funcs: what was called.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.funcs: list[Any] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        with torch.profiler.record_function(f"{_MARK}{len(self.funcs)}"):
            out = func(*args, **(kwargs or {}))
        self.funcs.append(func)
        return out


def device_seconds(step: Callable[[], Any], structure: Structure) -> list[float] | None:
    """Of one call of each row, the median over some steps; None where a step called other ops than the structure has.

    Raises:
        RuntimeError: the profiler cannot be used here.
    """
    steps: list[list[float]] = []
    for _ in range(_STEPS):
        marking = Marking()
        seconds = _by_call(step, marking)
        if marking.funcs != structure.funcs:
            return None
        totals = [0.0] * len(structure.calls)
        for place, number in enumerate(structure.sequence):
            if number >= 0:
                totals[number] += seconds.get(place, 0.0)
        steps.append(totals)
    of_rows = zip(structure.calls, zip(*steps, strict=True), strict=True)
    return [median(totals) / call.count for call, totals in of_rows]


def _by_call(step: Callable[[], Any], marking: Marking) -> dict[int, float]:
    """Seconds for which kernels and copies ran that a call launched, by the number of the call in the step."""
    import warnings

    from torch.profiler import ProfilerActivity, profile

    from accel_micro.devices.base import quiet_stderr

    torch.cuda.synchronize()
    with quiet_stderr(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            with marking:
                step()
            torch.cuda.synchronize()
    return seconds_by_mark(profiler.events() or ())


def seconds_by_mark(events: Sequence[Any]) -> dict[int, float]:
    """Device seconds of the host's events that `Marking` made; each has those of all that happened within it."""
    found: dict[int, float] = {}
    for event in events:
        if event.name.startswith(_MARK) and event.device_type.name == "CPU":
            # "cuda_time_total" before torch 2.4; microseconds
            micro = getattr(event, "device_time_total", None)
            micro = event.cuda_time_total if micro is None else micro
            found[int(event.name[len(_MARK) :])] = 1e-6 * float(micro)
    return found
