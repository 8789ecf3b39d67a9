"""The CPU: synchronous, so its throughput needs no slope and its dispatch no queue."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from accel_micro import host
from accel_micro.devices.base import Call, Device, quiet_stderr
from accel_micro.devices.precision import float32_modes
from accel_micro.host import caches, cgroups


class Cpu(Device):
    """All cores that this process may use: physical cores within its affinity and its cgroup's quota."""

    kind = "cpu"
    on_cpu = True

    def unavailable(self) -> str | None:
        return None if self.name == "cpu" else "there is one cpu device; write cpu without an index"

    def session(self) -> AbstractContextManager[None]:
        return self._threads()

    @contextmanager
    def _threads(self) -> Iterator[None]:
        import os

        import torch

        if "OMP_NUM_THREADS" in os.environ or "MKL_NUM_THREADS" in os.environ:
            yield
            return
        before = torch.get_num_threads()
        # torch counts the machine's cores and not a container's quota; too many threads wait for each other.
        torch.set_num_threads(host.allowed_cores())
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def own_waited_seconds(self) -> float:
        from accel_micro.devices.waiting import thread_waited_seconds

        return thread_waited_seconds()

    def peak_memory_bytes(self, call: Call) -> int | None:
        from torch.autograd import DeviceType  # type: ignore[attr-defined]
        from torch.profiler import ProfilerActivity, profile

        call()
        with quiet_stderr(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            kept = call()
        del kept
        results = profiler.profiler.kineto_results if profiler.profiler is not None else None
        if results is None:
            return None
        events = [
            # torch counts in nanoseconds since 2.4
            (event.start_ns() if hasattr(event, "start_ns") else event.start_us(), event.nbytes())
            for event in results.events()
            if event.name() == "[memory]" and event.device_type() == DeviceType.CPU
        ]
        held = most = 0
        for _, change in sorted(events, key=lambda event: event[0]):
            held += change
            most = max(most, held)
        return most

    def free_memory_bytes(self) -> int | None:
        import psutil

        available, limit = int(psutil.virtual_memory().available), cgroups.memory_limit_bytes()
        return available if limit is None else min(available, limit)

    def total_memory_bytes(self) -> int | None:
        import psutil

        return int(psutil.virtual_memory().total)

    def last_level_cache(self) -> caches.Cache | None:
        return caches.last_level()

    def describe(self) -> dict[str, str | int | float]:
        from accel_micro.devices.store import cpu_model

        return {"model": cpu_model(), "allowed_cores": host.allowed_cores()}

    def precision(self) -> dict[str, str | int | bool]:
        import torch

        mkldnn: Any = torch.backends.mkldnn
        return {
            "threads": torch.get_num_threads(),
            **float32_modes(mkldnn_matmul_precision="mkldnn.matmul", mkldnn_conv_precision="mkldnn.conv"),
            "mkldnn": bool(mkldnn.is_available() and mkldnn.enabled),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "capability": torch.backends.cpu.get_cpu_capability(),
        }
