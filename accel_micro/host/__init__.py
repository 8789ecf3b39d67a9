"""What this machine is. Reading a fact never raises: one that cannot be read is absent.

Nothing here imports torch, psutil or py-cpuinfo until it is needed: a measuring process asks only for
`allowed_cores`.
"""

from typing import TYPE_CHECKING, Any

from accel_micro.host.cores import allowed_cores

if TYPE_CHECKING:
    from accel_micro.host.gather import facts as facts
    from accel_micro.host.gather import machine_facts as machine_facts
    from accel_micro.host.torch_build import torch_facts as torch_facts

__all__ = ["allowed_cores", "facts", "machine_facts", "torch_facts"]


def __getattr__(name: str) -> Any:
    if name in ("facts", "machine_facts"):
        from accel_micro.host import gather

        return getattr(gather, name)
    if name == "torch_facts":
        from accel_micro.host.torch_build import torch_facts

        return torch_facts
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
