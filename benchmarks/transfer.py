"""Between the host's memory and the device's: batches on their way there, results on their way back.

Pageable memory is copied by way of a buffer of the driver, and the host waits. From pinned memory the device reads by
itself, and with `non_blocking` the host goes on. A thousand numbers show what a transfer costs, and what waiting for it
costs; sixteen million the rate of the link. On a CPU there is nothing to transfer.
"""

import torch

from accel_micro.measure.inputs import Timed
from accel_micro.suite import op

FACTS = {
    "standard": [
        f"n={n}{how}"
        for n in (1000, 1000000)
        for how in ("", " pinned=True", " pinned=True non_blocking=True")
    ],
    "full": ["n=16777216", "n=16777216 pinned=True non_blocking=True"],
    "dtypes": ("float32",),
    "backward": False,
    "flops": lambda: 0,
    "bytes": lambda n, itemsize: n * itemsize,
    "link": True,
    "unsupported": lambda device: "a CPU has no other device to transfer to" if device == "cpu" else None,
}


@op(**FACTS)
def to_device(t, n, pinned=False, non_blocking=False):
    """From the host to the device, into new memory."""
    x = t.host(n, pinned=pinned)
    return lambda: x.to(t.here, non_blocking=non_blocking, copy=True)


@op(**FACTS)
def to_host(t, n, pinned=False, non_blocking=False):
    """From the device into memory of the host that is there."""
    x, out = t(n), torch.empty_like(t.host(n, pinned=pinned))
    return Timed(lambda: out.copy_(x, non_blocking=non_blocking), lambda: out)


@op(**{**FACTS, "bytes": lambda n, itemsize: 2 * n * itemsize})
def there_and_back(t, n, pinned=False, non_blocking=False):
    """To the device, doubled there, and back: the host waits at the end."""
    x = t.host(n, pinned=pinned)
    return lambda: x.to(t.here, non_blocking=non_blocking).mul_(2).cpu()
