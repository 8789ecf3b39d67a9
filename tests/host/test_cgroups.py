"""Limits in the layouts of control groups that are met in the wild."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.host import cgroups
from tests.host.machines import MOUNT_V2, MOUNTS_V1, plant

V2, V1_CPU, V1_MEMORY = "sys/fs/cgroup", "sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/memory"

LAYOUTS: dict[str, tuple[dict[str, str], float | None, int | None]] = {
    "no control groups": ({}, None, None),
    "version 2, a login session without limits": (
        {
            "proc/self/cgroup": "0::/user.slice/user-1000.slice/session-2.scope\n",
            "proc/self/mountinfo": MOUNT_V2,
            f"{V2}/user.slice/cpu.max": "max 100000\n",
            f"{V2}/user.slice/memory.max": "max\n",
        },
        None,
        None,
    ),
    "version 2, a container in its own namespace": (
        {
            "proc/self/cgroup": "0::/\n",
            "proc/self/mountinfo": MOUNT_V2,
            f"{V2}/cpu.max": "150000 100000\n",
            f"{V2}/memory.max": "2147483648\n",
        },
        1.5,
        2 << 30,
    ),
    "version 2, the parent is tighter than the group": (
        {
            "proc/self/cgroup": "0::/system.slice/job.service\n",
            "proc/self/mountinfo": MOUNT_V2,
            f"{V2}/system.slice/cpu.max": "200000 100000\n",
            f"{V2}/system.slice/job.service/cpu.max": "400000 100000\n",
            f"{V2}/system.slice/job.service/memory.high": "1073741824\n",
            f"{V2}/system.slice/job.service/memory.max": "max\n",
        },
        2.0,
        1 << 30,
    ),
    "version 2, the group lies outside of what is mounted": (
        {
            "proc/self/cgroup": "0::/../../job\n",
            "proc/self/mountinfo": MOUNT_V2,
            f"{V2}/cpu.max": "50000 100000\n",
        },
        0.5,
        None,
    ),
    "version 1, docker without a namespace": (
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/docker/4f2a\n4:memory:/docker/4f2a\n1:name=systemd:/\n",
            "proc/self/mountinfo": MOUNTS_V1.format(root="/docker/4f2a"),
            f"{V1_CPU}/cpu.cfs_quota_us": "250000\n",
            f"{V1_CPU}/cpu.cfs_period_us": "100000\n",
            f"{V1_MEMORY}/memory.limit_in_bytes": "4294967296\n",
        },
        2.5,
        4 << 30,
    ),
    "version 1, kubernetes seen from the host": (
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/kubepods/pod1/c1\n4:memory:/kubepods/pod1/c1\n",
            "proc/self/mountinfo": MOUNTS_V1.format(root="/"),
            f"{V1_CPU}/kubepods/pod1/cpu.cfs_quota_us": "300000\n",
            f"{V1_CPU}/kubepods/pod1/cpu.cfs_period_us": "100000\n",
            f"{V1_CPU}/kubepods/pod1/c1/cpu.cfs_quota_us": "-1\n",
            f"{V1_CPU}/kubepods/pod1/c1/cpu.cfs_period_us": "100000\n",
            f"{V1_MEMORY}/kubepods/pod1/c1/memory.limit_in_bytes": "9223372036854771712\n",
        },
        3.0,
        None,
    ),
    "both versions, limits in version 1": (
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/\n0::/\n",
            "proc/self/mountinfo": MOUNTS_V1.format(root="/")
            + MOUNT_V2.replace("cgroup rw", "cgroup/unified rw", 1),
            f"{V1_CPU}/cpu.cfs_quota_us": "100000\n",
            f"{V1_CPU}/cpu.cfs_period_us": "50000\n",
        },
        2.0,
        None,
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_limits(tmp_path: Path, name: str) -> None:
    files, quota, memory = LAYOUTS[name]
    root = plant(tmp_path, files)
    assert cgroups.quota_cores(root) == quota
    assert cgroups.memory_limit_bytes(root) == memory


def test_a_mount_point_with_a_space_is_unescaped() -> None:
    (mount,) = cgroups.parse_mounts(MOUNT_V2.replace("/sys/fs/cgroup", r"/my\040groups"))
    assert mount.point == "/my groups"


def test_the_group_throttled_most_counts(tmp_path: Path) -> None:
    root = plant(
        tmp_path,
        {
            "proc/self/cgroup": "0::/a\n",
            "proc/self/mountinfo": MOUNT_V2,
            f"{V2}/cpu.stat": "usage_usec 5\nnr_periods 100\nnr_throttled 1\n",
            f"{V2}/a/cpu.stat": "usage_usec 5\nnr_periods 40\nnr_throttled 10\nthrottled_usec 7\n",
        },
    )
    assert cgroups.throttled(root) == (40, 10)
    assert cgroups.throttled(tmp_path / "elsewhere") is None


@given(st.text(), st.text(), st.text())
def test_garbage_is_no_limit(membership: str, mounts: str, maximum: str) -> None:
    found = cgroups.groups(cgroups.parse_membership(membership), cgroups.parse_mounts(mounts), "cpu")
    assert all(isinstance(path, str) for path in found)
    limit = cgroups.parse_cpu_max(maximum)
    assert limit is None or limit > 0


@given(st.integers(1, 10**7), st.integers(1, 10**7))
def test_a_quota_is_its_share_of_the_period(quota: int, period: int) -> None:
    assert cgroups.parse_cpu_max(f"{quota} {period}\n") == quota / period
    assert cgroups.parse_cpu_max(f"max {period}\n") is None
