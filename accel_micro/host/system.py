"""The system around the process: kernel, virtual machine, container, memory, interpreter, environment."""

import os
import platform
import re
import sys
import tracemalloc
from collections.abc import Mapping
from pathlib import Path

from accel_micro.host import cgroups, read
from accel_micro.host.processor import Put

_HYPERVISORS = (
    ("amazon ec2", "Amazon EC2"),
    ("google", "Google Compute Engine"),
    ("microsoft corporation virtual machine", "Hyper-V"),
    ("vmware", "VMware"),
    ("virtualbox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("parallels", "Parallels"),
    ("apple virtualization", "Apple Virtualization"),
    ("openstack", "OpenStack"),
    ("digitalocean", "DigitalOcean"),
    ("bochs", "Bochs"),
    ("xen", "Xen"),
    ("qemu", "QEMU"),
    ("kvm", "KVM"),
)
_CONTAINERS = (
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("lxc", "lxc"),
    ("garden", "garden"),
    ("containerd", "containerd"),
)
_ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc", "hoard", "snmalloc")
_SPEED_VARIABLES = re.compile(
    r"(OMP|GOMP|KMP|MKL|OPENBLAS|BLIS|VECLIB|TORCH|TORCHINDUCTOR|PYTORCH|CUDA|CUBLAS|CUDNN|NCCL|HIP|ROCR|HSA|MIOPEN"
    r"|ROCBLAS|HIPBLASLT|XLA|PJRT|NEURON|ONEDNN|DNNL|ATEN|SYCL|ZE|IGC|MALLOC|GLIBC|TRITON)_\w+"
    r"|NVIDIA_TF32_OVERRIDE|LD_PRELOAD|DYLD_INSERT_LIBRARIES|PYTHON(DEVMODE|MALLOC|TRACEMALLOC|HASHSEED|_GIL|_JIT)"
)
# Places, versions and secrets say nothing about speed, and facts are shared with results.
_NOT_SPEED = re.compile(
    r".*_(HOME|PATH|DIR|ROOT|CACHE|FILE|VERSION|ARCH_LIST)$|.*(TOKEN|SECRET|PASSWORD|KEY|CREDENTIAL).*"
)


def gather(put: Put, root: Path = read.ROOT) -> None:
    """Facts named `system.…`."""
    put("system.os", operating_system(), "platform")
    put("system.kernel", platform.release() or None, "uname")
    put("system.distribution", parse_os_release(read.text("etc/os-release", root) or ""), "/etc/os-release")
    put("system.architecture", machine_architecture(), "uname, sysctl.proc_translated")
    put("system.virtual_machine", virtual_machine(root), "/sys/class/dmi/id, /sys/hypervisor, /proc/cpuinfo")
    put("system.container", container(root, os.environ), "/.dockerenv, /run/.containerenv, /proc/self/cgroup")
    put(
        "system.aslr",
        read.integer("proc/sys/kernel/randomize_va_space", root),
        "/proc/sys/kernel/randomize_va_space",
    )
    pages = "sys/kernel/mm/transparent_hugepage/enabled"
    put("system.transparent_huge_pages", parse_choice(read.text(pages, root) or ""), f"/{pages}")
    clock = "sys/devices/system/clocksource/clocksource0/current_clocksource"
    put("system.clock_source", read.text(clock, root), f"/{clock}")


def gather_memory(put: Put, root: Path = read.ROOT) -> None:
    """Facts named `memory.…` that do not change while one looks."""
    import psutil

    total, limit = psutil.virtual_memory().total, cgroups.memory_limit_bytes(root)
    put("memory.total_bytes", total, "psutil.virtual_memory")
    binding = limit if limit is not None and limit < total else None
    put("memory.limit_bytes", binding, "cgroup memory.max, memory.high, memory.limit_in_bytes")


def gather_python(put: Put) -> None:
    """Facts named `python.…`, and `environment`: the variables that change speed."""
    put("python.version", platform.python_version(), "platform")
    put("python.implementation", platform.python_implementation(), "platform")
    put("python.architecture", platform.machine() or None, "platform.machine")
    translated = read.sysctl_integer("sysctl.proc_translated")
    put("python.translated", None if translated is None else bool(translated), "sysctl.proc_translated")
    put("python.debug_build", hasattr(sys, "gettotalrefcount"), "sys.gettotalrefcount")
    put(
        "python.observers",
        observers(),
        "sys.gettrace, sys.getprofile, sys.monitoring, tracemalloc, sys.flags",
    )
    enabled = getattr(sys, "_is_gil_enabled", None)
    put("python.gil", None if enabled is None else bool(enabled()), "sys._is_gil_enabled")
    put("python.allocator", allocator(os.environ), "LD_PRELOAD, DYLD_INSERT_LIBRARIES")
    put("environment", speed_variables(os.environ), "os.environ")


def operating_system() -> str:
    """Name and the part of the version that changes speed: `Linux 6.8`, `macOS 14`."""
    if platform.system() == "Darwin":
        return f"macOS {platform.mac_ver()[0].split('.')[0]}".strip()
    numbers = re.match(r"\d+(\.\d+)?", platform.release())
    return f"{platform.system()} {numbers[0] if numbers else ''}".strip()


def machine_architecture() -> str | None:
    """The machine's architecture; the interpreter's may differ, when it is translated."""
    return "arm64" if read.sysctl_integer("hw.optional.arm64") else platform.machine() or None


def parse_os_release(text: str) -> str | None:
    """/etc/os-release → `Ubuntu 24.04`."""
    fields = dict(re.findall(r"^(\w+)=[\"']?([^\"'\n]*)", text, re.MULTILINE))
    return " ".join(fields[name] for name in ("NAME", "VERSION_ID") if fields.get(name)) or None


def parse_choice(text: str) -> str | None:
    """`always [madvise] never` → `madvise`."""
    chosen = re.search(r"\[(\w+)\]", text)
    return chosen[1] if chosen else None


def virtual_machine(root: Path = read.ROOT) -> str | None:
    """Name of the hypervisor, `unknown hypervisor` where there is one without a name, None on bare metal."""
    if read.sysctl_integer("kern.hv_vmm_present"):
        return "Apple Virtualization"
    if "microsoft" in (read.text("proc/version", root) or "").lower():
        return "WSL"
    hypervisor = re.search(r"^flags\s*:.*\bhypervisor\b", read.text("proc/cpuinfo", root) or "", re.MULTILINE)
    words = [
        read.text(f"sys/class/dmi/id/{name}", root) or ""
        for name in ("sys_vendor", "product_name", "bios_vendor")
    ]
    words.append(read.text("sys/hypervisor/type", root) or "")
    named = match_hypervisor(" ".join(words))
    # A bare-metal machine of a cloud bears the cloud's name as well; on x86 the processor's flag decides.
    if platform.machine() in ("x86_64", "AMD64") and not hypervisor:
        return None
    return named or ("unknown hypervisor" if hypervisor else None)


def match_hypervisor(words: str) -> str | None:
    """The hypervisor that the firmware's names tell of; None when they name a real machine."""
    lower = words.lower()
    if ".metal" in lower:
        return None
    return next((name for word, name in _HYPERVISORS if word in lower), None)


def container(root: Path, environment: Mapping[str, str]) -> str | None:
    """Kind of the container that the process runs in; None outside of one."""
    if "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"
    if (root / "run/.containerenv").exists():
        return "podman"
    if (root / ".dockerenv").exists():
        return "docker"
    if environment.get("container"):
        return environment["container"]
    groups = read.text("proc/self/cgroup", root) or ""
    return next((name for word, name in _CONTAINERS if word in groups), None)


def observers() -> list[str]:
    """What slows every Python call down here: tracers, profilers, coverage, development mode."""
    seen = []
    trace, profile = sys.gettrace(), sys.getprofile()
    monitoring = getattr(sys, "monitoring", None)
    tools = [name for slot in range(6) if (name := monitoring.get_tool(slot))] if monitoring else []
    if "coverage" in f"{type(trace).__module__} {tools}" or os.environ.get("COVERAGE_PROCESS_START"):
        seen.append("coverage")
    elif trace is not None:
        seen.append("tracing (sys.settrace)")
    if profile is not None:
        seen.append("profiling (sys.setprofile)")
    seen += [f"monitoring ({name})" for name in tools if "coverage" not in name]
    if tracemalloc.is_tracing():
        seen.append("tracemalloc")
    if sys.flags.dev_mode:
        seen.append("development mode")
    if os.environ.get("PYTHONMALLOC", "").endswith(("debug", "malloc")):
        seen.append(f"PYTHONMALLOC={os.environ['PYTHONMALLOC']}")
    return seen


def allocator(environment: Mapping[str, str]) -> str | None:
    """The memory allocator that is preloaded in place of the system's; None without one."""
    preloaded = environment.get("LD_PRELOAD", "") + environment.get("DYLD_INSERT_LIBRARIES", "")
    return next((name for name in _ALLOCATORS if name in preloaded.lower()), None)


def speed_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that change speed, sorted by name; folders are cut off what is preloaded."""
    return {
        name: re.sub(r"[^ :]*/", "", environment[name]) if "LD_" in name else environment[name]
        for name in sorted(environment)
        if _SPEED_VARIABLES.fullmatch(name) and not _NOT_SPEED.fullmatch(name)
    }
