"""The GPUs of the tests, which are simulated, and a memory of the machine that is thrown away.

What a simulated or planted clock leaves behind must not become the full speed of this machine.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from accel_micro.devices import store
from benchmarks.harness.reports.row import DoesNotApply

GPUS_HERTZ: Final = 2e9
"""Clock of the simulated GPUs."""


@contextmanager
def own_memory(*, of_here: bool) -> Iterator[None]:
    """Speeds and peaks are remembered in a folder that is removed afterwards.

    Args:
        of_here: what is known of this machine is in it.
    """
    before = os.environ.get(store.ENVIRONMENT_VARIABLE)
    with tempfile.TemporaryDirectory() as folder:
        if of_here:
            for file in store.cache_folder().glob("*.json"):
                shutil.copy(file, folder)
        os.environ[store.ENVIRONMENT_VARIABLE] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[store.ENVIRONMENT_VARIABLE]
            else:
                os.environ[store.ENVIRONMENT_VARIABLE] = before


def _test_module(name: str) -> Any:
    """A module of the tests: they are in a clone, and not in an installed package."""
    try:
        return import_module(name)
    except ImportError as error:
        raise DoesNotApply(f"the simulation is part of the tests, which need pytest: {error}") from None


@contextmanager
def _patched() -> Iterator[Any]:
    with _test_module("pytest").MonkeyPatch.context() as monkeypatch:
        yield monkeypatch


@contextmanager
def simulated_mps() -> Iterator[tuple[Any, Any, Any, Any]]:
    """Torch's MPS is simulated meanwhile: module of the simulation, GPU, device and what patches (pytest's)."""
    simulation = _test_module("tests.devices.simulated_mps")
    with own_memory(of_here=False), _patched() as monkeypatch:
        gpu = simulation.Gpu(simulation.Clock())
        gpu.install(monkeypatch)
        yield simulation, gpu, simulation.MpsOnPaper(gpu.clock), monkeypatch


@contextmanager
def simulated_gpus() -> Iterator[tuple[Any, Any]]:
    """Torch's CUDA is two simulated GPUs meanwhile, without NVML: they and the device of the first."""
    simulation = _test_module("tests.devices.gpus")
    clock = _test_module("tests.fake").Clock()
    with own_memory(of_here=False), _patched() as monkeypatch:
        gpus = simulation.Gpus(clock)
        gpus.install(monkeypatch)
        monkeypatch.setitem(sys.modules, "pynvml", None)
        yield gpus, simulation.CudaOnPaper("cuda:0", clock)
