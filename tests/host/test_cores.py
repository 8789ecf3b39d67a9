"""Cores that may be used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.host import allowed_cores, cores
from tests.host.machines import ALDER_LAKE, BIG_LITTLE, EPYC, plant


@pytest.mark.parametrize(
    ("machine", "cpus", "expected"),
    [
        (EPYC, range(256), 128),
        (EPYC, range(128), 128),
        (EPYC, [0, 128], 1),
        (EPYC, [0, 128, 1], 2),
        (ALDER_LAKE, range(20), 12),
        (ALDER_LAKE, range(16), 8),
        (BIG_LITTLE, range(8), 8),
        ({}, range(3), 3),
    ],
)
def test_cores_behind_cpus(tmp_path: Path, machine: dict[str, str], cpus: list[int], expected: int) -> None:
    assert cores.cores_of(cpus, plant(tmp_path, machine)) == expected


@pytest.mark.parametrize(
    ("physical", "quota", "expected"),
    [(8, None, 8), (8, 16.0, 8), (8, 2.0, 2), (8, 1.5, 2), (8, 0.1, 1), (0, None, 1)],
)
def test_a_quota_cuts_and_rounds_up(physical: int, quota: float | None, expected: int) -> None:
    assert cores.allowed(physical, quota) == expected


@given(st.sets(st.integers(0, 300)))
def test_cpu_lists_survive_a_round_trip(cpus: set[int]) -> None:
    assert cores.parse_cpu_list(cores.format_cpu_list(cpus)) == sorted(cpus)


@given(st.text())
def test_garbage_is_some_list_of_cpus(text: str) -> None:
    assert all(cpu >= 0 for cpu in cores.parse_cpu_list(text))


def test_cpu_lists_are_as_short_as_the_kernels() -> None:
    assert cores.format_cpu_list([0, 1, 2, 3, 8, 10, 11]) == "0-3,8,10-11"
    assert cores.parse_cpu_list("0-3,8,10-11\n") == [0, 1, 2, 3, 8, 10, 11]
    assert cores.parse_cpu_list("3-1,x,-2,5") == [5]


def test_this_machine_allows_at_least_one_core_and_no_more_than_it_has() -> None:
    mine = cores.affinity()
    assert 1 <= allowed_cores() <= (len(mine) if mine else 1024)


def test_counting_cores_loads_neither_torch_nor_a_process() -> None:
    code = (
        "import sys, accel_micro; before = set(sys.modules); from accel_micro import host; host.allowed_cores();"
        "print(sorted({'torch', 'subprocess', 'psutil', 'cpuinfo'} & (set(sys.modules) - before)))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="affinity exists on Linux alone")
def test_a_pinned_process_may_use_one_core() -> None:
    code = (
        "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]);"
        "from accel_micro import host; print(host.allowed_cores())"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "1\n"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="affinity exists on Linux alone")
@pytest.mark.parametrize(
    "before", ["import accel_micro, torch", "import torch; torch.ones(1 << 22).add(1.0); import accel_micro"]
)
def test_threads_that_openmp_binds_take_no_core_away(before: str) -> None:
    count = "from accel_micro import host; print(host.allowed_cores())"
    environment = {**os.environ, "OMP_PROC_BIND": "true"}
    environment.pop("OMP_NUM_THREADS", None)  # which says how many cores are bound
    found = subprocess.run(
        [sys.executable, "-c", f"{before}; {count}"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert int(found.stdout) == allowed_cores()
