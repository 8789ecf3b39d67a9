"""Every test has a machine memory and locks of its own: what one test measures must not reach the next."""

import os
import signal
from pathlib import Path

# Set before torch is loaded: tests look at results and order, and threads of a busy machine wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

from accel_micro.devices import store

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Begun in the background of a shell, where this and all that tests start would ignore the Ctrl-C that they send.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv(store.ENVIRONMENT_VARIABLE, str(folder))
    # Locks of devices lie there: tests run beside each other, and beside what their reader measures.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    return folder


@pytest.fixture
def known_machine(_own_cache: Path) -> None:
    """Peaks of a fast CPU and its full speed are known, so that a test that measures waits for neither."""
    from accel_micro import devices
    from accel_micro.devices import full_speed, peaks

    cpu = devices.get("cpu")
    full_speed.contribute(full_speed.host_key(), [cpu.probe_host_speed() for _ in range(10)])
    rates: dict[str, object] = {f"flops {kind}": 1e13 for kind in peaks.ARITHMETICS}
    rates["bytes"] = {"65536": 1e13}
    store.update("peaks", lambda data: data.update({peaks.machine_key(cpu): rates}))
