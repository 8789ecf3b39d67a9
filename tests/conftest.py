"""Every test has a machine memory of its own: what one test measures must not reach the next."""

import os
from pathlib import Path

# Set before torch is loaded: tests look at results and order, and threads of a busy machine wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

from accel_micro.devices import store


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv(store.ENVIRONMENT_VARIABLE, str(folder))
    return folder
