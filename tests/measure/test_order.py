"""In which order a process does what, on each backend: on CUDA and on others of torch.accelerator in tests/devices."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import pytest
import torch

from accel_micro.devices.base import Device
from accel_micro.devices.cpu import Cpu
from accel_micro.measure import case as case_module
from accel_micro.measure import sampling
from accel_micro.measure.case import measure_case
from accel_micro.measure.inputs import Inputs
from accel_micro.measure.records import Case
from accel_micro.measure.sampling import Sampler
from tests.devices.lazy_xla import Backend, XlaOnPaper
from tests.devices.simulated_mps import Gpu, MpsOnPaper
from tests.fake import Clock

LETTERS = {"synchronise": "s", "call": "c", "mark": "m", "wait": "w"}


class LoggingCpu(Cpu):
    """A CPU that notes what is done with it."""

    def __init__(self, log: list[str]) -> None:
        super().__init__("cpu")
        self.log = log

    @contextmanager
    def _threads(self) -> Iterator[None]:
        self.log.append("session begins")
        with super()._threads():
            yield
        self.log.append("session ends")

    def synchronize(self) -> None:
        self.log.append("synchronise")

    def probe_host_speed(self) -> float:
        self.log.append("probe")
        return super().probe_host_speed()

    def peak_memory_bytes(self, call: Any) -> int | None:
        self.log.append("memory")
        return 0


@pytest.mark.usefixtures("known_machine")
def test_a_case_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    monkeypatch.setattr(sampling.devices, "get", lambda name: LoggingCpu(log))
    for name in ("_check", "count", "_peak"):
        monkeypatch.setattr(case_module, name, _noted(getattr(case_module, name), name.strip("_"), log))

    def build(t: Inputs) -> Callable[[], torch.Tensor]:
        log.append("reference" if t.reference else "inputs")
        a, b = t(32, 32), t(32, 32)
        reference = t.reference

        def call() -> torch.Tensor:
            log.append("reference call" if reference else "call")
            return a @ b

        return call

    record = measure_case(
        Case("f.op", "forward", "cpu", "float32", "n=1"),
        build,
        clocks=("throughput",),
        samples=3,
        budget_seconds=0.05,
    )
    assert record.failure is None
    steps = [what for what, _ in groupby(log)]
    assert steps[:13] == [
        "session begins", "inputs",
        "synchronise", "call", "synchronise",  # the first call by itself
        "count", "call",  # once more under torch's counter
        "check", "reference", "reference call",
        "peak",
        "synchronise", "call",  # the warm-up begins
    ]  # fmt: skip
    assert steps[-2:] == ["memory", "session ends"]
    measured = "".join(step[0] for step in steps[13:-2])
    # The warm-up ends with a probe; blocks, in shares that are waited for each, lie between probes.
    assert re.fullmatch(r"(?:sc|s|p)+", measured)
    assert re.search(r"(?:p(?:sc)+s){3,}p$", measured.replace("pp", "p")), measured


def _noted(function: Callable[..., Any], name: str, log: list[str]) -> Callable[..., Any]:
    def noted(*arguments: Any, **options: Any) -> Any:
        log.append(name)
        return function(*arguments, **options)

    return noted


def steps_of(
    device: Device, call: Callable[[], Any], clock: Clock, name: str
) -> tuple[list[str], str, list[int]]:
    """What the first call did; the last turns of a clock as letters; how many calls each group of these had."""
    sampler = Sampler(device, call, 0.1)
    sampler.first_call()
    first = list(clock.log)
    sampler.warm_up()
    clock.log.clear()
    sampler.read_together((name,), 2)
    groups = [(LETTERS[what], len(list(run))) for what, run in groupby(clock.log)]
    return (
        first,
        "".join(letter for letter, _ in groups),
        [count for letter, count in groups if letter == "c"],
    )


def test_mps_waits_around_n_2n_and_3n_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(Clock())
    gpu.install(monkeypatch)
    first, letters, counts = steps_of(MpsOnPaper(gpu.clock), gpu.call, gpu.clock, "throughput")
    assert first == ["synchronise", "call", "synchronise"]
    assert re.search(r"(?:scscscsc){2}s$", letters), letters
    waking, n, two_n, three_n = counts[-4:]
    assert (waking, two_n, three_n) == (max(1, n // 2), 2 * n, 3 * n)


def test_mps_s_dispatch_waits_before_and_after_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(Clock())
    gpu.install(monkeypatch)
    _, letters, counts = steps_of(MpsOnPaper(gpu.clock), gpu.call, gpu.clock, "dispatch")
    assert re.search(r"(?:sc){2}s$", letters), letters
    assert counts[-1] == counts[-2]


def test_xla_marks_each_call_and_waits_at_the_end_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Backend(Clock())
    backend.install(monkeypatch)
    first, letters, counts = steps_of(XlaOnPaper(backend.clock), backend.op, backend.clock, "throughput")
    waited = [
        "mark",
        "wait",
    ]  # what is left is marked, all is waited for: for what was before, and for the counters
    assert first == [*waited, *waited, "call", "mark", *waited]
    assert set(counts) == {1}, "no two calls share a step"
    assert re.fullmatch(r"(?:mwmw(?:cm)+w)+", letters), letters
