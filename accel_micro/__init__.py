"""Microbenchmarks of PyTorch ops that can be trusted: synchronised, gated, checked and tested for significance.

>>> import torch
>>> from accel_micro import measure
>>> a = torch.randn(64, 64)
>>> measure(lambda: a @ a).median_seconds  # doctest: +SKIP
3.1e-06
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accel_micro.measure import Flag as Flag
    from accel_micro.measure import Process as Process
    from accel_micro.measure import measure as measure

__version__ = "0.1.0"
__all__ = ["Flag", "Process", "__version__", "measure"]


def __getattr__(name: str) -> Any:
    # Imported when first used: the command line must answer `--help` before torch could be loaded.
    if name in {"Flag", "Process", "measure"}:
        import accel_micro.measure

        return getattr(accel_micro.measure, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
