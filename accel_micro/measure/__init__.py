"""A callable and a device in, a process of samples out: see `measure`.

Nothing here imports torch until something is measured, so reports can read stored processes quickly.
"""

from typing import TYPE_CHECKING, Any

from accel_micro.measure.flags import Flag
from accel_micro.measure.process import CLOCKS, SAMPLES, Process

if TYPE_CHECKING:
    from accel_micro.measure.sampling import measure as measure

__all__ = ["CLOCKS", "SAMPLES", "Flag", "Process", "measure"]


def __getattr__(name: str) -> Any:
    if name == "measure":
        from accel_micro.measure.sampling import measure

        return measure
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
