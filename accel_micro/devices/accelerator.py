"""Any device that torch.accelerator offers and no file here knows better: Intel's XPU, backends outside torch.

All that is relied on is that `torch.accelerator.synchronize` waits until queued work is done. So: throughput and
latency by the host clock. Events and streams of such backends are not read, since nothing here has proven what they
stamp. Memory and description are asked of `torch.accelerator`, else of the backend's own module (`torch.xpu`), and are
unknown where neither tells.
"""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from accel_micro.devices.base import Call, Device, DeviceUnavailable
from accel_micro.devices.precision import float32_modes
from accel_micro.host.cards import fingerprint

_PROPERTIES: Final = {
    "driver": "driver_version",
    "compute_units": "max_compute_units",
    "subslices": "gpu_subslice_count",
    "architecture": "architecture",
}
"""Facts of `get_device_properties` as Intel's XPU names them; another backend's are taken where they are called so."""

UNNAMED = "privateuseone"
"""What torch calls the device of a backend outside torch until that backend gives it a name."""


class Accelerator(Device):
    """The one kind of accelerator that this torch drives, by its index: `xpu:1`."""

    asynchronous = True
    minimum_warmup_seconds = 0.5

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.kind, _, index = name.partition(":")
        self.index = int(index or 0)

    def unavailable(self) -> str | None:
        try:
            kind = current_kind()
        except DeviceUnavailable as reason:
            return str(reason)
        import torch

        if kind is None:
            return f"this torch ({torch.__version__}) drives no accelerator here: none is built in, or none is found"
        if kind != self.kind:
            return f"this torch build drives {kind}, not {self.kind}"
        count = torch.accelerator.device_count()
        return (
            None if self.index < count else f"{self.name} does not exist: torch shows {count} of {self.kind}"
        )

    def synchronize(self) -> None:
        import torch

        torch.accelerator.synchronize(self.index)

    def session(self) -> AbstractContextManager[None]:
        return self._current()

    @contextmanager
    def _current(self) -> Iterator[None]:
        """It is the current device meanwhile: what an op makes without naming a device lies there too."""
        import torch

        before = current_index()
        if before is None or before == self.index:
            yield
            return
        set_index = getattr(torch.accelerator, "set_device_index", None) or torch.accelerator.set_device_idx
        set_index(self.index)
        try:
            yield
        finally:
            with contextlib.suppress(RuntimeError):
                self.synchronize()
            set_index(before)

    def event_pair(self, call: Call) -> float:
        raise NotImplementedError("nothing has shown what its events stamp")

    def peak_memory_bytes(self, call: Call) -> int | None:
        module = self._module("reset_peak_memory_stats", "max_memory_allocated", "memory_allocated")
        if module is None:
            return None
        call()
        self.synchronize()
        try:
            before = int(module.memory_allocated(self.index))
            module.reset_peak_memory_stats(self.index)
            call()
            self.synchronize()
            return int(module.max_memory_allocated(self.index)) - before
        except (RuntimeError, NotImplementedError):  # an allocator that keeps no statistics
            return None

    def free_memory_bytes(self) -> int | None:
        memory = self._memory_info()
        return None if memory is None else memory[0]

    def total_memory_bytes(self) -> int | None:
        memory = self._memory_info()
        return None if memory is None else memory[1]

    def _memory_info(self) -> tuple[int, int] | None:
        for name in ("get_memory_info", "mem_get_info"):
            module = self._module(name)
            if module is not None:
                with contextlib.suppress(RuntimeError, NotImplementedError):
                    free, total = getattr(module, name)(self.index)
                    return int(free), int(total)
        return None

    def _module(self, *names: str) -> Any:
        """`torch.accelerator` or the backend's own module, whichever has all of these functions; else None."""
        import torch

        offered = (torch.accelerator, getattr(torch, self.kind, None))
        return next((module for module in offered if all(hasattr(module, name) for name in names)), None)

    def card(self) -> str:
        """A fingerprint of the UUID where the backend tells one, else the index where there are several."""
        import torch

        properties = self._properties()
        uuid = getattr(properties, "uuid", None)
        if uuid is not None:
            return fingerprint(str(uuid))
        return f"number {self.index}" if torch.accelerator.device_count() > 1 else ""

    def _properties(self) -> Any:
        """What the backend's `get_device_properties` says; None where it has none."""
        import torch

        ask = getattr(getattr(torch, self.kind, None), "get_device_properties", None)
        if ask is not None:
            with contextlib.suppress(RuntimeError, NotImplementedError, TypeError):
                return ask(self.index)
        return None

    def describe(self) -> dict[str, str | int | float]:
        import torch

        module = getattr(torch, self.kind, None)
        name = getattr(module, "get_device_name", None)
        facts: dict[str, str | int | float] = {"model": self.kind}
        if name is not None:
            with contextlib.suppress(RuntimeError, NotImplementedError, TypeError):
                facts["model"] = str(name(self.index))
        properties = self._properties()
        for fact, attribute in _PROPERTIES.items():
            value = getattr(properties, attribute, None)
            if isinstance(value, (str, int, float)) and not isinstance(value, bool) and value:
                facts[fact] = value
        version = getattr(torch.version, self.kind, None)
        if version:
            facts[self.kind] = str(version)
        memory = self._memory_info()
        return facts if memory is None else {**facts, "memory_bytes": memory[1]}

    def precision(self) -> dict[str, str | int | bool]:
        import torch

        return {
            "threads": torch.get_num_threads(),
            **float32_modes(),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
        }


def current_index() -> int | None:
    """Index of the current accelerator; None where this torch cannot tell."""
    import torch

    ask = getattr(torch.accelerator, "current_device_index", None) or getattr(
        torch.accelerator, "current_device_idx", None
    )
    return None if ask is None else int(ask())


def current_kind() -> str | None:
    """The kind of accelerator that this torch drives here, such as `xpu`; None: none.

    Raises:
        DeviceUnavailable: this torch is older than `torch.accelerator`.
    """
    import torch

    offered: Any = getattr(torch, "accelerator", None)
    if offered is None:
        raise DeviceUnavailable(f"torch {torch.__version__} has no torch.accelerator; it came with torch 2.6")
    device = offered.current_accelerator() if offered.is_available() else None
    return None if device is None else str(device.type)


def named_backend() -> str | None:
    """The name that a backend outside torch gave its device in this process; None: there is none."""
    import torch

    name = str(torch._C._get_privateuse1_backend_name())
    return None if name == UNNAMED else name
