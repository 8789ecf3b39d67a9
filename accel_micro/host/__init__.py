"""What this machine is. Reading a fact never raises: one that cannot be read is absent.

Nothing here imports torch, psutil or py-cpuinfo until it is needed: a measuring process asks only for
`allowed_cores`.
"""

from accel_micro.host.cores import allowed_cores

__all__ = ["allowed_cores"]
