"""How a benchmark process is started: forked from a server that has imported torch, where that is safe.

asv starts a fresh interpreter for each parameter combination by default, which pays for importing torch each
time. Forking is safe as long as the server only imports torch: no device is initialised and no thread pool
started in it.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import asv.runner
from asv.environment import ExistingEnvironment

from accel_micro.asv_plugin import patching, state
from accel_micro.asv_plugin.timing import RUN_VARIABLE

SPAWNED_DEVICES: Final = frozenset({"xla"})
"""Devices whose runtime does not survive a fork, whatever the parent did."""


def method() -> str:
    """How processes are started here when nobody chose: `forkserver` on Linux, else `spawn`."""
    return "forkserver" if sys.platform == "linux" else "spawn"


def is_chosen(launch_method: str | None) -> bool:
    """Whether somebody chose how processes are started."""
    return launch_method not in (None, "auto")


def spawner_for(spawner: Any, device: str) -> Any:
    """The spawner to use for a device: a plain one where the device cannot be used after a fork."""
    forked_by_default = isinstance(spawner, asv.runner.ForkServer) and not getattr(spawner, "chosen", False)
    if device in SPAWNED_DEVICES and forked_by_default:
        return asv.runner.Spawner(spawner.env, spawner.benchmark_dir)
    return spawner


def install() -> None:
    """Let `auto` mean what is right here; an explicit choice wins."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def get_spawner(env: Any, benchmark_dir: str, launch_method: str | None) -> Any:
            os.environ[RUN_VARIABLE] = str(os.getpid())  # so that a server ends when this process is killed
            chosen = is_chosen(launch_method)
            ready = None if chosen else state.ready_server(env)
            if ready is not None:
                return ready
            spawner = original(env, benchmark_dir, launch_method if chosen else method())
            spawner.chosen = chosen
            return spawner

        return get_spawner

    patching.replace(asv.runner, "get_spawner", make, takes=("env", "benchmark_dir", "launch_method"))
    patching.replace(ExistingEnvironment, "__init__", _name_version, takes=("conf", "executable"))


def _name_version(original: Callable[..., Any]) -> Callable[..., Any]:
    # asv means to store an interpreter's version with the results, and stores its path: then the same case on
    # two machines is two graphs.
    def initialise(self: Any, conf: Any, executable: str, *rest: Any) -> None:
        original(self, conf, executable, *rest)
        if Path(self._executable) == Path(sys.executable):
            self._python = f"{sys.version_info.major}.{sys.version_info.minor}"

    return initialise
