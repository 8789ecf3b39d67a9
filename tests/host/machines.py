"""File trees of real machines, as far as `accel_micro.host` reads them."""

from pathlib import Path

from accel_micro.host.cards import Listed

CPU = "sys/devices/system/cpu"


def plant(root: Path, files: dict[str, str]) -> Path:
    """Write the files below `root`; returns it."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def cpus(count: int, sibling: int | None = None) -> dict[str, str]:
    """Topology of `count` CPUs; CPU n shares its core with n + `sibling`."""
    files = {f"{CPU}/online": f"0-{count - 1}\n" if count > 1 else "0\n"}
    for cpu in range(count):
        pair = str(cpu) if sibling is None else f"{cpu % sibling},{cpu % sibling + sibling}"
        files[f"{CPU}/cpu{cpu}/topology/thread_siblings_list"] = pair + "\n"
    return files


EPYC = {
    **cpus(256, sibling=128),
    f"{CPU}/smt/active": "1\n",
    f"{CPU}/cpufreq/boost": "1\n",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance\n",
    f"{CPU}/cpu0/cpufreq/scaling_driver": "acpi-cpufreq\n",
    f"{CPU}/cpu0/cpufreq/cpuinfo_min_freq": "1500000\n",
    f"{CPU}/cpu0/cpufreq/cpuinfo_max_freq": "2450000\n",
    f"{CPU}/cpu0/cpufreq/scaling_max_freq": "2450000\n",
    f"{CPU}/cpu0/cpufreq/scaling_cur_freq": "2444123\n",
    f"{CPU}/cpu0/cache/index0/size": "32K\n",
    f"{CPU}/cpu0/cache/index3/size": "32768K\n",
    "sys/devices/system/node/online": "0-1\n",
    "proc/cpuinfo": "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n"
    "model name\t: AMD EPYC 7763 64-Core Processor\nflags\t\t: fpu vme avx2 fma\n\n",
}

# i7-12700: eight performance cores of two threads (0-15), four efficiency cores of one (16-19).
ALDER_LAKE = {
    f"{CPU}/online": "0-19\n",
    **{f"{CPU}/cpu{n}/topology/thread_siblings_list": f"{n // 2 * 2}-{n // 2 * 2 + 1}\n" for n in range(16)},
    **{f"{CPU}/cpu{n}/topology/thread_siblings_list": f"{n}\n" for n in range(16, 20)},
    "sys/devices/cpu_core/cpus": "0-15\n",
    "sys/devices/cpu_atom/cpus": "16-19\n",
    f"{CPU}/intel_pstate/no_turbo": "0\n",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave\n",
    f"{CPU}/cpu0/cpufreq/energy_performance_preference": "balance_performance\n",
}

# A board with four little and four big Arm cores.
BIG_LITTLE = {
    **cpus(8),
    **{f"{CPU}/cpu{n}/cpu_capacity": "430\n" for n in range(4)},
    **{f"{CPU}/cpu{n}/cpu_capacity": "1024\n" for n in range(4, 8)},
}

CLOUD_GUEST = {
    **cpus(4, sibling=2),
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: fpu avx2 hypervisor\n",
    "sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
    "sys/class/dmi/id/product_name": "m5.xlarge\n",
}

MOUNT_V2 = (
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
)
MOUNTS_V1 = (
    "25 30 0:23 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:8 - tmpfs tmpfs ro,mode=755\n"
    "33 25 0:29 {root} /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:12 - cgroup cgroup rw,cpu,cpuacct\n"
    "36 25 0:32 {root} /sys/fs/cgroup/memory rw,nosuid shared:15 - cgroup cgroup rw,memory\n"
)

TWO_CARDS = [
    Listed(0, "GPU-5f3a2b1c-0000-4000-8000-000000000001", "NVIDIA H100 80GB HBM3"),
    Listed(1, "GPU-9e8d7c6b-0000-4000-8000-000000000002", "NVIDIA H100 80GB HBM3"),
]
"""As a host with two equal GPUs lists them."""
