"""A torch_xla on paper, with the habits that make lazy backends easy to mistime, and a virtual clock.

- A call costs its tracing and leaves a result that nobody has computed.
- A step mark computes what is alive, in one program; what was dropped is forgotten.
- A program that was not seen before is compiled first. Marks do not wait; `sync(wait=True)` waits for its own program
  and not for those before it when it has none.
- `wait_device_ops` waits for all programs, and starts none.
- An op without a kernel runs on the CPU and is counted under its name.
"""

import sys
import weakref
from collections import Counter
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest

from accel_micro.devices.xla import Xla
from tests.fake import Clock, OnPaper

TRACE, MARK, COMPUTE, COMPILE, WAIT = 20e-6, 50e-6, 400e-6, 0.1, 1e-3


class Lazy:
    """A result that is computed when a step is marked while it is alive."""

    def __init__(self, program: str, elements: int = 256) -> None:
        self.program, self.elements = program, elements

    def numel(self) -> int:
        return self.elements

    def element_size(self) -> int:
        return 4


class Backend:
    """The state of the backend; `installed` puts it in place of torch_xla."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.counters: Counter[str] = Counter()
        self.compile_nanoseconds = 0.0
        self.pending: list[weakref.ref[Lazy]] = []
        self.programs: set[tuple[str, ...]] = set()
        self.ends: list[float] = []
        self.hardware = "CPU"
        self.memory: dict[str, int] | None = None

    # What a program does

    def op(self, program: str = "mm", elements: int = 256) -> Lazy:
        """Trace an op, and return its result."""
        self.clock.log.append("call")
        self.clock.work(TRACE)
        result = Lazy(program, elements)
        self.pending.append(weakref.ref(result))
        return result

    def on_host(self) -> Lazy:
        """An op without a kernel."""
        self.counters["aten::bincount"] += 1
        return self.op()

    # What torch_xla offers

    def sync(self, wait: bool = False) -> None:
        self.clock.log.append("mark")
        self.clock.work(MARK)
        alive = [result for ref in self.pending if (result := ref()) is not None]
        self.pending.clear()
        if not alive:
            return
        program = tuple(result.program for result in alive)
        if program not in self.programs:
            self.programs.add(program)
            self.clock.work(COMPILE)
            self.counters["UncachedCompile"] += 1
            self.compile_nanoseconds += 1e9 * COMPILE
        self.counters["ExecuteComputation"] += 1
        start = max(self.clock.seconds, self.ends[-1] if self.ends else 0.0)
        self.ends.append(start + COMPUTE * len(alive))
        if wait:
            self.wait_device_ops()

    def wait_device_ops(self) -> None:
        self.clock.log.append("wait")
        self.clock.seconds = max([self.clock.seconds, *self.ends[-1:]])
        self.clock.work(WAIT)

    def counter_value(self, name: str) -> int | None:
        return self.counters.get(name)

    def metric_data(self, name: str) -> tuple[int, float, list[Any]] | None:
        if name == "ExecuteTime":
            return sum(end <= self.clock.seconds for end in self.ends), 0.0, []
        compiled = self.counters["UncachedCompile"]
        return (compiled, self.compile_nanoseconds, []) if name == "CompileTime" and compiled else None

    def get_memory_info(self, device: str) -> dict[str, int]:
        if self.memory is None:
            raise RuntimeError("UNIMPLEMENTED: GetAllocatorStats is not supported")
        return self.memory

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let `import torch_xla` find this backend."""
        modules = {
            "torch_xla": {"sync": self.sync, "device": lambda: "xla:0"},
            "torch_xla.core": {},
            "torch_xla.core.xla_model": {
                "mark_step": self.sync,
                "wait_device_ops": self.wait_device_ops,
                "get_memory_info": self.get_memory_info,
            },
            "torch_xla.debug": {},
            "torch_xla.debug.metrics": {
                "counter_names": lambda: list(self.counters),
                "counter_value": self.counter_value,
                "metric_data": self.metric_data,
            },
            "torch_xla.runtime": {"device_type": lambda: self.hardware},
            "torch_xla.backends": {"get_mat_mul_precision": lambda: "default"},
        }
        for name, contents in modules.items():
            module = ModuleType(name)
            module.__spec__ = ModuleSpec(name, None)
            module.__dict__.update(contents)
            monkeypatch.setitem(sys.modules, name, module)
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], child, module)


class XlaOnPaper(OnPaper, Xla):
    """The real device, on the clock of the backend."""

    def __init__(self, clock: Clock) -> None:
        super().__init__("xla")
        self.clock = clock

    def free_memory_bytes(self) -> int:
        return 1 << 30
