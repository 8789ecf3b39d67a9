"""Virtual machines, containers, the interpreter and its environment."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.host import system
from tests.host.machines import CLOUD_GUEST, EPYC, plant


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Amazon EC2 m5.xlarge", "Amazon EC2"),
        ("Amazon EC2 m5.metal", None),
        ("Google Google Compute Engine", "Google Compute Engine"),
        ("Microsoft Corporation Virtual Machine", "Hyper-V"),
        ("Microsoft Corporation Surface Laptop 4", None),
        ("VMware, Inc. VMware7,1", "VMware"),
        ("QEMU Standard PC (Q35 + ICH9, 2009)", "QEMU"),
        ("innotek GmbH VirtualBox", "VirtualBox"),
        ("Dell Inc. PowerEdge R7525", None),
    ],
)
def test_firmware_names_the_hypervisor(words: str, expected: str | None) -> None:
    assert system.match_hypervisor(words) == expected


def test_virtual_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system.platform, "machine", lambda: "x86_64")
    assert system.virtual_machine(plant(tmp_path / "guest", CLOUD_GUEST)) == "Amazon EC2"
    assert system.virtual_machine(plant(tmp_path / "metal", EPYC)) is None
    nameless = {"proc/cpuinfo": "flags\t: fpu hypervisor lahf_lm\n"}
    assert system.virtual_machine(plant(tmp_path / "nameless", nameless)) == "unknown hypervisor"
    wsl = {"proc/version": "Linux version 5.15.153.1-microsoft-standard-WSL2"}
    assert system.virtual_machine(plant(tmp_path / "wsl", wsl)) == "WSL"


def test_a_metal_machine_of_a_cloud_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system.platform, "machine", lambda: "x86_64")
    metal = {**EPYC, "sys/class/dmi/id/sys_vendor": "Google\n"}
    assert system.virtual_machine(plant(tmp_path, metal)) is None


@pytest.mark.parametrize(
    ("files", "environment", "expected"),
    [
        ({}, {}, None),
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": ""}, {}, "podman"),
        ({".dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"proc/self/cgroup": "0::/lxc/box\n"}, {}, "lxc"),
        ({"proc/self/cgroup": "0::/init.scope\n"}, {}, None),
        ({}, {"container": "systemd-nspawn"}, "systemd-nspawn"),
    ],
)
def test_containers(
    tmp_path: Path, files: dict[str, str], environment: dict[str, str], expected: str | None
) -> None:
    assert system.container(plant(tmp_path, files), environment) == expected


def test_variables_that_change_speed_are_kept_and_others_are_not() -> None:
    kept = {
        "OMP_NUM_THREADS": "4",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "NVIDIA_TF32_OVERRIDE": "0",
        "ATEN_CPU_CAPABILITY": "avx2",
        "CUDA_LAUNCH_BLOCKING": "1",
    }
    dropped = {
        "CUDA_HOME": "/usr/local/cuda",
        "TORCH_HOME": "/home/someone/.cache",
        "TORCHINDUCTOR_CACHE_DIR": "/home/someone",
        "TORCH_API_TOKEN": "secret",
        "NCCL_VERSION": "2.28.3-1",
        "TORCH_CUDA_ARCH_LIST": "9.0a",
        "HOME": "/home/someone",
        "OMPI_COMM_WORLD_RANK": "0",
    }
    assert system.speed_variables({**kept, **dropped}) == kept


def test_folders_are_cut_off_preloaded_libraries() -> None:
    environment = {"LD_PRELOAD": "/home/someone/lib/libjemalloc.so.2:/opt/x.so"}
    assert system.speed_variables(environment) == {"LD_PRELOAD": "libjemalloc.so.2:x.so"}
    assert system.allocator(environment) == "jemalloc"
    assert system.allocator({}) is None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "[]\n"),
        (["-X", "dev"], "['development mode']\n"),
        (["-X", "tracemalloc"], "['tracemalloc']\n"),
    ],
)
def test_observers_of_a_fresh_interpreter(options: list[str], expected: str) -> None:
    code = "from accel_micro.host import system; print(system.observers())"
    done = subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, check=True, env={"PATH": ""}
    )
    assert done.stdout == expected


@pytest.mark.parametrize(("limit", "expected"), [(1 << 20, 1 << 20), (1 << 59, None), (None, None)])
def test_a_memory_limit_above_the_memory_is_none(
    monkeypatch: pytest.MonkeyPatch, limit: int | None, expected: int | None
) -> None:
    monkeypatch.setattr(system.cgroups, "memory_limit_bytes", lambda root: limit)
    facts = {}
    system.gather_memory(lambda name, value, source: facts.update({name: value}))
    assert facts["memory.limit_bytes"] == expected


def test_a_tracer_and_a_profiler_are_seen() -> None:
    before = sys.gettrace(), sys.getprofile()
    try:
        sys.settrace(lambda *_: None)
        sys.setprofile(lambda *_: None)
        seen = system.observers()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    assert "profiling (sys.setprofile)" in seen
    assert any("tracing" in name or "coverage" in name for name in seen)


def test_small_parsers() -> None:
    assert system.parse_choice("always [madvise] never") == "madvise"
    assert system.parse_os_release('NAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\n') == "Ubuntu 24.04"
    assert system.parse_os_release("NAME=Arch\n") == "Arch"


def test_the_version_of_the_system_is_coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system.platform, "system", lambda: "Linux")
    monkeypatch.setattr(system.platform, "release", lambda: "6.8.0-49-generic")
    assert system.operating_system() == "Linux 6.8"
    monkeypatch.setattr(system.platform, "system", lambda: "Darwin")
    monkeypatch.setattr(system.platform, "mac_ver", lambda: ("14.5.1", ("", "", ""), "arm64"))
    assert system.operating_system() == "macOS 14"


@given(st.text(), st.dictionaries(st.text(), st.text()))
def test_garbage_never_raises(text: str, environment: dict[str, str]) -> None:
    system.parse_choice(text)
    system.parse_os_release(text)
    system.match_hypervisor(text)
    system.allocator(environment)
    system.speed_variables(environment)
