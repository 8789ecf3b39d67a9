"""Microbenchmarks of PyTorch ops that can be trusted: synchronised, gated, checked and tested for significance.

>>> import torch
>>> from accel_micro import measure
>>> a = torch.randn(64, 64)
>>> measure(lambda: a @ a).median_seconds  # doctest: +SKIP
3.1e-06
"""

# The function takes the place of its package as an attribute; `from accel_micro.measure import …` works as ever.
# Nothing here imports torch: the command line must answer `--help` before torch could be loaded.
from accel_micro.measure import Flag, Process, measure

__version__ = "0.1.0"
__all__ = ["Flag", "Process", "__version__", "measure"]
