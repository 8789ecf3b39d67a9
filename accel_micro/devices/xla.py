"""XLA through torch_xla: lazy, so a block is believed only when the backend's counters say that it ran.

A call merely notes what is to be computed. The program is cut where the step is marked, and computes what is alive
then: a result that was dropped before is never computed. So the result of each call is held until its step is marked.
It is not held longer: memory that is never reused made an addition of 16 MB 12 times as slow as the loop of a
training program, which drops its results too (20 ms and 1.7 ms, torch_xla 2.9 on two CPU cores).
"""

import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from accel_micro import host
from accel_micro.devices.base import Call, Counted, Device, Queue, QueueTooShort
from accel_micro.devices.precision import float32_modes
from accel_micro.devices.tensors import bytes_of_result

MISSING: Final = (
    "torch_xla is not installed; install it in the version of torch: torch==2.9.0 torch_xla==2.9.0, say"
)

_SHARE_OF_FREE_MEMORY: Final = 0.1
_LATE_SECONDS: Final = 1e-3
_TRACE_SECONDS: Final = 2e-3
_MOST_TRACED: Final = 500
_EXECUTIONS: Final = ("ExecuteComputation", "ExecuteReplicated")


class Xla(Device):
    """The default device of torch_xla in this process: a TPU, or the CPU through PJRT."""

    kind = "xla"
    clocks = ("throughput", "latency", "dispatch")
    asynchronous = True
    lazy = True

    @property
    def on_cpu(self) -> bool:  # type: ignore[override]
        """PJRT's CPU client computes on the host's cores, beside the thread that traces."""
        return _hardware() == "CPU"

    @property
    def minimum_warmup_seconds(self) -> float:  # type: ignore[override]
        return 0.1 if self.on_cpu else 0.5

    @property
    def has_float64(self) -> bool:  # type: ignore[override]
        """TPUs emulate float64, or compute in float32 instead."""
        return self.on_cpu

    def unavailable(self) -> str | None:
        if self.name != "xla":
            return "torch_xla has one default device a process; write xla without an index"
        if importlib.util.find_spec("torch_xla") is None:
            return MISSING
        import torch

        # A torch_xla of another torch may end the process when it is imported, and does not ask for its torch itself.
        if _release(_version()) != _release(torch.__version__):
            return f"torch_xla {_version()} needs torch of the same version, and this is {torch.__version__}"
        try:
            import torch_xla

            torch_xla.device()
        except Exception as error:  # no driver, a TPU that another process holds
            reason = (str(error).strip() or type(error).__name__).split("\n")[0]
            return f"torch_xla {_version()} finds no device: {reason}"
        return None

    def synchronize(self) -> None:
        _wait()

    def mark_step(self, result: Any) -> None:
        # `result` is alive until here, so the step computes it.
        _mark(wait=False)

    @contextmanager
    def block(self) -> Iterator[Counted]:
        _wait()  # so that nothing from before ends in this block and is taken for a part of it
        counted, before = Counted(), self._totals(0)
        yield counted
        after = self._totals(before.executions - before.finished)
        counted.executions = after.executions - before.executions
        counted.finished = after.finished - before.finished
        counted.compilations = after.compilations - before.compilations
        counted.compile_seconds = after.compile_seconds - before.compile_seconds
        counted.on_host = tuple(
            op for op, count in after.on_host.items() if count > before.on_host.get(op, 0)
        )

    def _totals(self, unfinished: int) -> "_Totals":
        """The counters, once no more than that many programs run; a program's end is counted a little later."""
        late = self.now() + _LATE_SECONDS
        while (totals := _Totals.read()).executions - totals.finished > unfinished and self.now() < late:
            pass
        return totals

    def most_calls(self, result: Any) -> int | None:
        """Programs that are queued hold the memory of their results: a tenth of what is free, at most."""
        size, free = bytes_of_result(result), self.free_memory_bytes()
        return None if not size or free is None else max(1, int(_SHARE_OF_FREE_MEMORY * free / size))

    def queue(self, call: Call, period: int = 1) -> Queue:
        return Tracing(self, call)

    def peak_memory_bytes(self, call: Call) -> int | None:
        """Known where this call raised the peak of the whole process: torch_xla cannot reset it."""
        self.synchronize()
        before = _memory()
        result = call()
        self.mark_step(result)
        self.synchronize()
        del result
        after = _memory()
        peak, most = after.get("peak_bytes_used"), before.get("peak_bytes_used")
        if peak is None or most is None or peak <= most or "bytes_used" not in before:
            return None
        return peak - before["bytes_used"]

    def free_memory_bytes(self) -> int | None:
        if self.on_cpu:
            import psutil

            return int(psutil.virtual_memory().available)
        memory = _memory()
        return memory["bytes_limit"] - memory.get("bytes_used", 0) if "bytes_limit" in memory else None

    def total_memory_bytes(self) -> int | None:
        if self.on_cpu:
            import psutil

            return int(psutil.virtual_memory().total)
        return _memory().get("bytes_limit")

    def describe(self) -> dict[str, str | int | float]:
        from accel_micro.devices.store import cpu_model

        hardware = _hardware()
        model = (
            f"PJRT CPU on {cpu_model()}" if self.on_cpu else os.environ.get("TPU_ACCELERATOR_TYPE", hardware)
        )
        facts: dict[str, str | int | float] = {"model": model, "pjrt": hardware, "torch_xla": _version()}
        if self.on_cpu:
            facts["allowed_cores"] = host.allowed_cores()
        return facts

    def precision(self) -> dict[str, str | int | bool]:
        import torch

        modes: dict[str, str | int | bool] = {
            "threads": torch.get_num_threads(),
            **float32_modes(),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "xla_matmul_precision": _matmul_precision(),
            # A TPU's matrix unit multiplies float32 in one pass of bfloat16 unless it is told otherwise.
            "bfloat16_products": not self.on_cpu and _matmul_precision() in ("default", "unknown"),
        }
        variables = ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "XLA_USE_BF16", "XLA_DOWNCAST_BF16")
        return {**modes, **{name: os.environ[name] for name in variables if name in os.environ}}


class Tracing:
    """XLA's dispatch: the host's time to trace a call, neither marked nor executed. See `base.Queue`.

    Calls are traced in one go and dropped, so nothing is left to compute. A call that changes its inputs, as an
    optimizer does, would leave one long program; its calls are traced one by one, each then computed outside the time.
    """

    device_flags: tuple[tuple[str, str], ...] = ()

    def __init__(self, device: Xla, call: Call) -> None:
        self._device = device
        self._call = call
        self._calls = 0
        self._together = True

    def dispatch_calls(self) -> int:
        if not self._calls:
            with self._device.block() as counted:
                self._device.synchronize()
                self.dispatch(1)
                self._device.synchronize()
            self._together = counted.executions == 0
            seconds = min(self.dispatch(2) for _ in range(3))
            most = _MOST_TRACED if self._together else 20
            self._calls = max(1, min(most, round(_TRACE_SECONDS / max(seconds, 1e-9))))
        return self._calls

    def dispatch(self, calls: int) -> float:
        device, call = self._device, self._call
        at_once = calls if self._together else 1
        seconds = 0.0
        for _ in range(calls // at_once):
            device.synchronize()
            start = device.now()
            for _ in range(at_once):
                call()
            seconds += device.now() - start
        device.synchronize()
        return seconds / calls

    def device_at_most(self) -> float:
        raise QueueTooShort("torch_xla has no clock of the device")

    def device_calls(self, block_seconds: float) -> int:
        raise QueueTooShort("torch_xla has no clock of the device")

    def device(self, calls: int) -> float:
        raise QueueTooShort("torch_xla has no clock of the device")

    def busy_share(self) -> float | None:
        return None


@dataclass(frozen=True)
class _Totals:
    """Counters of torch_xla since the process began."""

    executions: int
    finished: int
    compilations: int
    compile_seconds: float
    on_host: dict[str, int]

    @classmethod
    def read(cls) -> "_Totals":
        import torch_xla.debug.metrics as met

        compiled, executed = met.metric_data("CompileTime"), met.metric_data("ExecuteTime")
        fallen = [name for name in met.counter_names() if name.startswith("aten::")]
        return cls(
            executions=sum(met.counter_value(name) or 0 for name in _EXECUTIONS),
            finished=executed[0] if executed else 0,
            compilations=met.counter_value("UncachedCompile") or 0,
            compile_seconds=compiled[1] * 1e-9 if compiled else 0.0,  # (samples, nanoseconds, …)
            on_host={name: met.counter_value(name) or 0 for name in fallen},
        )


def _mark(wait: bool) -> None:
    import torch_xla

    if hasattr(torch_xla, "sync"):  # since torch_xla 2.7
        torch_xla.sync(wait=wait)
    else:
        import torch_xla.core.xla_model as xm

        xm.mark_step(wait=wait)


def _wait() -> None:
    import torch_xla.core.xla_model as xm

    _mark(wait=True)
    xm.wait_device_ops()  # the mark waits for its own program, this for all that were queued


def _hardware() -> str:
    import torch_xla.runtime as xr

    return str(xr.device_type())


def _memory() -> dict[str, int]:
    """What the device says of its memory; PJRT's CPU client says nothing."""
    import torch_xla
    import torch_xla.core.xla_model as xm

    try:
        facts = xm.get_memory_info(torch_xla.device())
        return {str(name): int(value) for name, value in facts.items()}
    except Exception:  # RuntimeError: unimplemented; other versions, other errors
        return {}


def _version() -> str:
    try:
        return importlib.metadata.version("torch_xla")
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def _release(version: str) -> str:
    """`2.9` of `2.9.0+cpu`."""
    return ".".join(version.split(".")[:2])


def _matmul_precision() -> str:
    try:
        from torch_xla import backends  # since torch_xla 2.8

        return str(backends.get_mat_mul_precision())
    except (ImportError, AttributeError):
        return "unknown"
