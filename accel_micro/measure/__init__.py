"""A callable and a device in, a process of samples out: see `measure`.

Nothing here imports torch until something is measured, so reports can read stored processes quickly.
"""

from accel_micro.measure.blocks import Implausible, Rejected
from accel_micro.measure.flags import Flag
from accel_micro.measure.process import CLOCKS, SAMPLES, Process
from accel_micro.measure.sampling import measure

__all__ = ["CLOCKS", "SAMPLES", "Flag", "Implausible", "Process", "Rejected", "measure"]
