"""CUDA, and ROCm builds of torch, which use the same names."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from typing import Any, Final

from accel_micro.device_names import index_of
from accel_micro.devices import proof
from accel_micro.devices.base import Call, Device, Queue, Unwatched
from accel_micro.devices.nvml import NvmlWatch
from accel_micro.devices.precision import allows_tf32, float32_modes
from accel_micro.host.caches import Cache
from accel_micro.host.cards import fingerprint

CLOCKS: Final = ("throughput", "latency", "dispatch", "device")

PROBE_CYCLES = 1_000_000
"""Cycles of the clock probe: about half a millisecond."""

SPIN_CYCLES = 4 * PROBE_CYCLES
"""Cycles of a call of known length: about two milliseconds."""

_LEAD_CYCLES = 100_000

_ASSUMED_CACHE_BYTES: Final = 128 << 20
"""Where torch does not tell: NVIDIA's largest so far is that of a B200, 126 MB."""

_ASSUMED_CACHE_BYTES_ROCM: Final = 256 << 20
"""ROCm tells the L2 alone. Behind that of an MI300X lie 256 MB of Infinity Cache (AMD CDNA 3 white paper)."""


class Cuda(Device):
    """One GPU. All work of a session runs on a side stream, since the default stream cannot be captured."""

    kind = "cuda"
    asynchronous = True
    minimum_warmup_seconds = 0.5

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.index = index_of(name)

    @property
    def clocks(self) -> tuple[str, ...]:  # type: ignore[override]
        """Dispatch and device need a spin and graphs that do what they say: known of CUDA, shown on ROCm each time."""
        return tuple(clock for clock in CLOCKS if clock not in self.lacks)

    @cached_property
    def lacks(self) -> Mapping[str, str]:  # type: ignore[override]
        import torch

        if not torch.version.hip:
            missing = "this torch has no torch.cuda._sleep to keep the queue busy with"
            return {} if hasattr(torch.cuda, "_sleep") else dict.fromkeys(("dispatch", "device"), missing)
        if self.unavailable() is not None:
            return dict.fromkeys(("dispatch", "device"), "nothing has shown that its spin can be relied on")
        shown = proof.of(self)
        reasons = {"dispatch": shown.spin, "device": shown.spin or shown.graph}
        return {clock: reason for clock, reason in reasons.items() if reason is not None}

    def unavailable(self) -> str | None:
        import torch

        if not torch.backends.cuda.is_built():  # type: ignore[no-untyped-call]
            return f"this torch build ({torch.__version__}) was made without CUDA or ROCm"
        if not torch.cuda.is_available():
            return "torch finds no GPU: no driver, a driver too old for this build, or no permission"
        count = torch.cuda.device_count()
        return (
            None
            if self.index < count
            else f"{self.name} does not exist: this machine shows torch {count} GPUs"
        )

    def synchronize(self) -> None:
        import torch

        torch.cuda.synchronize(self.index)

    def session(self) -> AbstractContextManager[None]:
        return self._side_stream()

    @contextmanager
    def _side_stream(self) -> Iterator[None]:
        import torch

        with torch.cuda.device(self.index):
            # Inputs that a caller made on another stream must be there before the side stream reads them.
            torch.cuda.synchronize()
            stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            with torch.cuda.stream(stream), self._watched():
                try:
                    yield
                finally:
                    with contextlib.suppress(RuntimeError):
                        torch.cuda.synchronize()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """NVML is open meanwhile; without it the probe alone tells the clock."""
        try:
            uuid = self._uuid()
            if uuid is None:
                raise Unwatched(
                    "clock and throttling are not watched: this torch does not tell the card's UUID"
                )
            watch = NvmlWatch(uuid, self.now)
        except Unwatched as reason:
            self.unwatched = str(reason)
            yield
            return
        self.watch = watch
        try:
            yield
        finally:
            self.watch = None
            watch.close()

    def _uuid(self) -> str | None:
        """Without a prefix, of NVIDIA cards only: AMD's tools write another one than torch."""
        import torch

        if torch.version.hip:
            raise Unwatched("clock and throttling are not watched on ROCm")
        uuid = getattr(torch.cuda.get_device_properties(self.index), "uuid", None)
        return None if uuid is None else str(uuid)

    def card(self) -> str:
        """A fingerprint of the UUID, else the address on the bus, else the index."""
        import torch

        properties: Any = torch.cuda.get_device_properties(self.index)
        uuid = getattr(properties, "uuid", None)
        if uuid is not None:
            return fingerprint(str(uuid))
        bus = getattr(properties, "pci_bus_id", None)
        if bus is not None:
            return f"pci {getattr(properties, 'pci_domain_id', 0)}:{bus}:{getattr(properties, 'pci_device_id', 0)}"
        return f"number {self.index}"

    def probe_device_speed(self) -> float | None:
        import torch

        # Of ROCm's ticks nobody knows whether they are the cores'.
        return None if torch.version.hip or "dispatch" in self.lacks else self.spin_hertz()

    def spin_hertz(self) -> float:
        """Cycles per second that `torch.cuda._sleep` counts now."""
        import torch

        cuda: Any = torch.cuda
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        # An idle device stamps an event at once and then waits for the launch, the first time in a process for the
        # spin's code to be loaded as well; a short spin ahead keeps that out of the reading.
        cuda._sleep(_LEAD_CYCLES)
        start.record()
        cuda._sleep(PROBE_CYCLES)
        end.record()
        end.synchronize()
        return float(PROBE_CYCLES / (start.elapsed_time(end) * 1e-3))

    def event_pair(self, call: Call) -> float:
        import torch

        cuda: Any = torch.cuda
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        self.synchronize()
        start.record()
        call()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end) * 1e-3)

    def spin(self) -> tuple[Call, Callable[[], float]] | None:
        import torch

        cuda: Any = torch.cuda
        hertz = self.probe_device_speed()
        if hertz is None:
            return None
        return partial(cuda._sleep, SPIN_CYCLES), lambda: SPIN_CYCLES / (self.probe_device_speed() or hertz)

    def queue(self, call: Call, period: int = 1) -> Queue:
        if "dispatch" in self.lacks:
            return super().queue(call, period)
        from accel_micro.devices.cuda_queue import CudaQueue

        return CudaQueue(self, call, period)

    def peak_memory_bytes(self, call: Call) -> int | None:
        import torch

        call()
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        torch.cuda.synchronize()
        return int(torch.cuda.max_memory_allocated() - before)

    def free_memory_bytes(self) -> int | None:
        import torch

        return int(torch.cuda.mem_get_info(self.index)[0])

    def total_memory_bytes(self) -> int | None:
        import torch

        return int(torch.cuda.mem_get_info(self.index)[1])

    def last_level_cache(self) -> Cache | None:
        import torch

        told = int(getattr(torch.cuda.get_device_properties(self.index), "L2_cache_size", 0))
        if torch.version.hip:
            size, why = _ASSUMED_CACHE_BYTES_ROCM, "ROCm tells the size of the L2 alone"
            return Cache(max(told, size), f"assumed: {why}", assumed=True)
        if not told:
            return Cache(
                _ASSUMED_CACHE_BYTES, "assumed: this torch does not tell the L2's size", assumed=True
            )
        return Cache(told, "L2_cache_size of torch.cuda.get_device_properties")

    def describe(self) -> dict[str, str | int | float]:
        import torch

        properties: Any = torch.cuda.get_device_properties(self.index)
        facts: dict[str, str | int | float] = {
            "model": properties.name,
            "memory_bytes": properties.total_memory,
            "multiprocessors": properties.multi_processor_count,
            "l2_bytes": getattr(properties, "L2_cache_size", 0),
        }
        if torch.version.hip:
            facts |= {"platform": "ROCm", "hip": torch.version.hip}
            facts["architecture"] = getattr(properties, "gcnArchName", "").split(":")[0]
        else:
            facts["compute_capability"] = f"{properties.major}.{properties.minor}"
            facts["cuda"] = torch.version.cuda or ""
        return facts

    def precision(self) -> dict[str, str | int | bool]:
        import torch

        cuda, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
        modes: dict[str, str | int | bool] = {
            "threads": torch.get_num_threads(),
            **float32_modes(),
            "cudnn_benchmark": cudnn.benchmark,
            "cudnn_deterministic": cudnn.deterministic,
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "float16_reduced_reduction": bool(cuda.allow_fp16_reduced_precision_reduction),
            "bfloat16_reduced_reduction": bool(cuda.allow_bf16_reduced_precision_reduction),
        }
        if (
            torch.version.hip
        ):  # the switches for TF32 are there and mean nothing: AMD's cards have no such arithmetic
            return modes
        return {
            **modes,
            "matmul_tf32": allows_tf32(cuda, "cuda.matmul"),
            "cudnn_tf32": allows_tf32(cudnn, "cudnn.conv"),
        }
