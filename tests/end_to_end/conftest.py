"""A suite of its own for each test, and an index of nightlies that are the installed torch."""

import shutil
from collections.abc import Callable, Iterator

import pytest

from tests.asv_plugin.conftest import Suite, suite, uv_cache
from tests.end_to_end.repacked import CannotRepack, Repacked, Served, serving

__all__ = ["Nightlies", "nightlies", "suite", "uv_cache"]


class Nightlies:
    """Wheels of the installed torch under versions of nightlies, on an index on loopback."""

    def __init__(self, torch: Repacked, served: Served) -> None:
        self._torch, self._served = torch, served
        variant = torch.version.partition("+")[2]
        self._local = f"+{variant}" if variant else ""

    def add(self, version: str, commit: str, change: Callable[[str], str] = str, half: bool = False) -> None:
        """One more; `change` makes another `torch/nn/functional.py`, and of half a wheel no more is served."""
        wheel = self._torch.wheel(version + self._local, commit, change)
        self._served.add(wheel, wheel.size_bytes // 2 if half else None)


@pytest.fixture(scope="session")
def repacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repacked]:
    common = tmp_path_factory.mktemp("repacked") / "common"
    try:
        yield Repacked(common)
    except CannotRepack as why:
        pytest.skip(str(why))
    finally:
        common.unlink(missing_ok=True)


@pytest.fixture
def nightlies(suite: Suite, repacked: Repacked) -> Iterator[Nightlies]:
    """An index without any, which the suite uses. What is installed from it, gigabytes, goes with the test."""
    with serving() as served:
        suite.environment["ACCEL_MICRO_INDEXES"] = served.url
        yield Nightlies(repacked, served)
    shutil.rmtree(suite.path / "env", ignore_errors=True)
