"""XLA: known by name, not timed yet. Lazy tensors need their results kept, steps marked and executions counted."""

from accel_micro.devices.base import Device


class Xla(Device):
    """The device type of torch_xla."""

    kind = "xla"
    asynchronous = True

    def unavailable(self) -> str | None:
        return "xla is not timed yet: lazy execution must be proven by its counters first"
