"""The last-level caches of several machines: each once, and a default where nothing tells them."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_micro.host import caches, cores, read
from accel_micro.host.caches import ASSUMED_BYTES, last_level
from tests.host.machines import CPU, plant

MIB = 1 << 20


def listed(cpu: int, level: int, kib: int, shared: str, kind: str = "Unified") -> dict[str, str]:
    folder = f"{CPU}/cpu{cpu}/cache/index{level if kind != 'Instruction' else 9}"
    return {
        f"{folder}/level": f"{level}\n",
        f"{folder}/type": f"{kind}\n",
        f"{folder}/size": f"{kib}K\n",
        f"{folder}/shared_cpu_list": f"{shared}\n",
    }


def machine(count: int, *per_cpu: tuple[int, int, int]) -> dict[str, str]:
    """`count` CPUs; caches are (level, KiB, CPUs that share one)."""
    files = {f"{CPU}/online": f"0-{count - 1}\n"}
    for cpu in range(count):
        for level, kib, sharing in per_cpu:
            first = cpu // sharing * sharing
            files |= listed(cpu, level, kib, f"{first}-{first + sharing - 1}")
        files |= listed(cpu, 1, 1 << 20, str(cpu), "Instruction")  # larger than any, and holds no data
    return files


@pytest.fixture(autouse=True)
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "virtual_machine", lambda root: None)
    monkeypatch.setattr(read, "sysctl_integer", lambda name: None)


def test_caches_that_cpus_share_count_once(tmp_path: Path) -> None:
    cache = last_level(plant(tmp_path, machine(16, (1, 32, 1), (2, 1024, 1), (3, 32768, 8))))
    assert cache.bytes == 2 * 32 * MIB
    assert not cache.assumed
    assert cache.source == "2 caches of 32 MiB, from /sys/devices/system/cpu/cpu*/cache"


@settings(max_examples=30, deadline=None)  # it writes files, and the machine may be busy
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 1 << 20))
def test_the_sum_is_that_of_the_distinct_ones(
    tmp_path_factory: pytest.TempPathFactory, groups: int, sharing: int, kib: int
) -> None:
    root = plant(tmp_path_factory.mktemp("machine"), machine(groups * sharing, (2, 64, 1), (3, kib, sharing)))
    assert last_level(root).bytes == groups * kib * 1024


def test_only_those_of_cpus_that_may_be_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = plant(tmp_path, machine(16, (3, 32768, 8)))
    monkeypatch.setattr(read, "ROOT", root)
    monkeypatch.setattr(cores, "affinity", lambda: {0, 1})
    assert last_level(root).bytes == 32 * MIB
    monkeypatch.setattr(cores, "affinity", lambda: {0, 8})
    assert last_level(root).bytes == 64 * MIB


def test_a_virtual_machine_s_is_named_as_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(caches, "virtual_machine", lambda root: "KVM")
    cache = last_level(plant(tmp_path, machine(2, (3, 32768, 2))))
    assert cache.source.endswith(", as the host of this virtual machine tells it")
    assert not cache.assumed


@pytest.mark.parametrize(
    "files",
    [
        {},
        machine(4, (1, 64, 1), (2, 1024, 1)),  # some Arm servers list no system-level cache
        machine(4, (3, 32768, 4)) | listed(3, 3, 0, "3"),
    ],
    ids=["nothing", "no third level", "no size"],
)
def test_what_is_not_told_is_assumed(files: dict[str, str], tmp_path: Path) -> None:
    cache = last_level(plant(tmp_path, files))
    assert cache.bytes == ASSUMED_BYTES
    assert cache.assumed
    assert cache.source.startswith("assumed: ")


def test_an_intel_mac_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(read, "sysctl_integer", {"hw.l3cachesize": 12 * MIB}.get)
    assert last_level(tmp_path) == caches.Cache(12 * MIB, "hw.l3cachesize")
