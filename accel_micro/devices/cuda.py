"""CUDA, and ROCm builds of torch, which use the same names."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from accel_micro.devices.base import Call, Device, Queue

PROBE_CYCLES = 1_000_000
"""Cycles of the clock probe: about half a millisecond."""

_LEAD_CYCLES = 100_000


class Cuda(Device):
    """One GPU. All work of a session runs on a side stream, since the default stream cannot be captured."""

    kind = "cuda"
    asynchronous = True
    minimum_warmup_seconds = 0.5

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.index = int(name.partition(":")[2] or 0)

    @property
    def clocks(self) -> tuple[str, ...]:  # type: ignore[override]
        """On ROCm `_sleep` spins an unproven time, so the clocks behind a busy queue are not offered there."""
        import torch

        host_clocks = ("throughput", "latency")
        return host_clocks if torch.version.hip else (*host_clocks, "dispatch", "device")

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
            with torch.cuda.stream(stream):
                try:
                    yield
                finally:
                    with contextlib.suppress(RuntimeError):
                        torch.cuda.synchronize()

    def probe_device_speed(self) -> float | None:
        import torch

        if torch.version.hip:
            return None
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

    def queue(self, call: Call) -> Queue:
        import torch

        if torch.version.hip:
            return super().queue(call)
        from accel_micro.devices.cuda_queue import CudaQueue

        return CudaQueue(self, call)

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
            facts["hip"] = torch.version.hip
        else:
            facts["compute_capability"] = f"{properties.major}.{properties.minor}"
            facts["cuda"] = torch.version.cuda or ""
        return facts

    def precision(self) -> dict[str, str | int | bool]:
        import torch

        return {
            "threads": torch.get_num_threads(),
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
            "matmul_tf32": torch.backends.cuda.matmul.allow_tf32,
            "cudnn_tf32": torch.backends.cudnn.allow_tf32,
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
            "cudnn_deterministic": torch.backends.cudnn.deterministic,
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "float16_reduced_reduction": bool(
                torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
            ),
            "bfloat16_reduced_reduction": bool(
                torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
            ),
        }
