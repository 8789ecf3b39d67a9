"""Every rule fires on the facts that it is about, and on nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.doctor import SEVERITIES, Finding, diagnose, exit_code
from accel_micro.doctor.diagnosis import RULES
from accel_micro.doctor.finding import View
from tests.doctor.machines import CLEAN, TORCH, changed

GPU = "gpu.devices.0"
SPINNER = [{"name": "ffmpeg", "pid": 1234567, "cores": 2.03}]
ARM_MAC = {"system.architecture": "arm64", "system.os": "macOS 14", "gpu.pci": []}
APPLE_GPU = {**ARM_MAC, "gpu.devices": [{"vendor": "Apple", "index": 0, "name": "Apple M2"}]}
INTEL_GPU = {"gpu.devices": [], "gpu.pci": [{"vendor": "Intel", "driver": "xe", "integrated": True}]}
AMD_CPU = {"cpu.vendor": "AMD"}
FASTER = {"product_flops_per_second": {"torch": 60e9, "numpy": 90e9}}
ALIKE = {"product_flops_per_second": {"torch": 88e9, "numpy": 90e9}}

Change = dict[str, Any]

# finding, severity, a part of the sentence with its figure, change of the host's facts, change of torch's
CASES: list[tuple[str, str, str, Change, Change]] = [
    ("more threads than cores", "problem", "THREADS=64 on 8", {"environment.OMP_NUM_THREADS": "64"}, {}),
    ("more threads than cores", "problem", "MKL_NUM_THREADS=9", {"environment.MKL_NUM_THREADS": "9"}, {}),
    ("more threads than cores", "warning", "64 threads on 8 cores", {}, {"threads.intra_op": 64}),
    ("fewer threads than cores", "note", "7 cores of 8 idle", {"environment.OMP_NUM_THREADS": "1"}, {}),
    ("fewer threads than cores", "note", "starts 4 threads by itself",
     {"environment.OMP_NUM_THREADS": None}, {"threads.intra_op": 4}),
    ("thread variable is no count", "warning", "'many'", {"environment.OMP_NUM_THREADS": "many"}, {}),
    ("thread variable is no count", "warning", "'0'", {"environment.OPENBLAS_NUM_THREADS": "0"}, {}),
    ("thread count is not set", "note", "16 CPUs, 8",
     {"environment.OMP_NUM_THREADS": None, "cpu.logical_cores": 16}, {}),
    ("CPU quota", "warning", "1.5 cores of time on 8 cores; it ran out in 25%",
     {"cpu.quota_cores": 1.5, "load.quota_throttled": 0.25}, {}),
    ("pinned to some cores", "note", "4 of 8 cores", {"cpu.affinity_cores": 4, "cpu.affinity": "0-3"}, {}),
    ("cores of two kinds", "warning", "4 fast and 4 slow",
     {"cpu.performance_cores": 4, "cpu.efficiency_cores": 4}, {}),
    ("several memory nodes", "note", "2 nodes", {"cpu.numa_nodes": 2}, {}),
    ("busy machine", "warning", "25% of the CPU time: ffmpeg (pid 1234567) 2.03 cores",
     {"load.busy_elsewhere": 0.25, "load.processes": SPINNER}, {}),
    ("busy machine", "problem", "80% of the CPU time; they are not visible", {"load.busy_elsewhere": 0.8}, {}),
    ("busy a moment ago", "note", "is 9.5 on 8 CPUs", {"load.average": 9.5}, {}),
    ("tasks wait for a core", "warning", "40%", {"load.cpu_pressure": 0.4}, {}),
    ("stolen CPU time", "warning", "5.0%", {"load.steal": 0.05}, {}),
    ("stolen CPU time", "problem", "30.0%", {"load.steal": 0.3}, {}),
    ("swapping", "problem", "64 MiB", {"memory.swapped_bytes": 64 << 20}, {}),
    ("short of memory", "warning", "8.0 GiB of 256.0 GiB", {"memory.available_bytes": 8 << 30}, {}),
    ("short of memory", "warning", "12%", {"load.memory_pressure": 0.12}, {}),
    ("short of memory", "warning", "240.0 GiB of 256.0 GiB",
     {"load.memory_pressure": 0.12, "memory.limit_bytes": 8 << 30}, {}),
    ("short of memory", "warning", "8.0 GiB of 256.0 GiB is free.",
     {"memory.available_bytes": 8 << 30, "load.memory_pressure": None}, {}),
    ("clock follows the load", "warning", "powersave (now 1.20 GHz of 2.00 GHz)",
     {"cpu.governor": "powersave", "cpu.frequency_now_hertz": 1.2e9}, {}),
    ("clock is limited", "warning", "1.50 GHz", {"cpu.frequency_limit_hertz": 1.5e9}, {}),
    ("GPU clock is not watched", "note", "nvidia-ml-py is not installed", {"gpu.clocks_watched": False}, {}),
    ("turbo", "note", "from 2.00 GHz to 3.80 GHz",
     {"cpu.boost": True, "cpu.frequency_maximum_hertz": 3.8e9, "cpu.frequency_limit_hertz": 3.8e9}, {}),
    ("on battery", "warning", "at 17 %", {"power.on_battery": True, "power.battery_percent": 17}, {}),
    ("low power mode", "warning", "held down", {"power.low_power_mode": True}, {}),
    ("too hot", "warning", "3 throttle events while looking, 41 °C", {"power.throttle_events": 3}, {}),
    ("too hot", "warning", "97 °C", {"power.temperature_celsius": 97.0}, {}),
    ("too hot", "warning", "speed limited to 71 %", {"power.speed_limit_percent": 71}, {}),
    ("was too hot", "note", "1234567 times", {"power.throttle_events_since_start": 1234567}, {}),
    ("slow clock", "warning", "hpet", {"system.clock_source": "hpet"}, {}),
    ("virtual machine", "note", "Amazon EC2", {"system.virtual_machine": "Amazon EC2"}, {}),
    ("emulated Python", "problem", "Rosetta", {"python.translated": True}, {}),
    ("emulated Python", "problem", "Rosetta", {"system.architecture": "arm64"}, {}),
    ("debug build of Python", "problem", "debugging", {"python.debug_build": True}, {}),
    ("Python is being watched", "problem", "coverage", {"python.observers": ["coverage"]}, {}),
    ("other allocator", "note", "jemalloc", {"python.allocator": "jemalloc"}, {}),
    ("torch cannot be imported", "problem", "libcudart.so.12", {},
     {"build": None, "unread.build": "ImportError: libcudart.so.12: cannot open shared object file"}),
    ("debug build of torch", "problem", "2.13.0+cu126", {}, {"build.debug": True}),
    ("debug build of torch", "problem", "BUILD_TYPE=Debug", {}, {"libraries.build_type": "Debug"}),
    ("MKL on AMD", "warning", "60 GFLOP/s a thread in a 512×512 float32 product, NumPy's OpenBLAS 90 (1.50",
     AMD_CPU, FASTER),
    ("MKL on AMD", "note", "(1.02 times)", AMD_CPU, ALIKE),
    ("MKL on AMD", "note", "not compared", AMD_CPU, {}),
    ("two OpenMP runtimes", "warning", "libgomp and libiomp5", {}, {"threads.pools": [
        {"user_api": "openmp", "prefix": "libgomp"}, {"user_api": "openmp", "prefix": "libiomp5"}]}),
    ("instruction set is forced", "warning", "CAPABILITY=default",
     {"environment.ATEN_CPU_CAPABILITY": "default"}, {}),
    ("variable without effect", "note", "MKL_DEBUG_CPU_TYPE=5", {"environment.MKL_DEBUG_CPU_TYPE": "5"}, {}),
    ("TF32 is forced", "warning", "NVIDIA_TF32_OVERRIDE=0", {"environment.NVIDIA_TF32_OVERRIDE": "0"}, {}),
    ("reduced float32 precision", "note", "`high`", {}, {"precision.float32_matmul": "high"}),
    ("deterministic algorithms", "note", "is on", {}, {"precision.deterministic": True}),
    ("every launch waits", "problem", "BLOCKING=1", {"environment.CUDA_LAUNCH_BLOCKING": "1"}, {}),
    ("MPS falls back to the CPU", "problem", "=1", {"environment.PYTORCH_ENABLE_MPS_FALLBACK": "1"}, {}),
    ("torch build lacks the GPU", "warning", "GPU 0 (NVIDIA H100 80GB HBM3) is here", {},
     {"build.version": "2.13.0+cpu", "build.cuda": None}),
    ("torch build lacks the GPU", "warning", "Instinct",
     {"gpu.pci": [], "gpu.devices": [{"vendor": "AMD", "index": 0, "name": "AMD Instinct MI300X"}]}, {}),
    ("torch build lacks the GPU", "warning", "an Intel GPU", INTEL_GPU, {}),
    ("torch build lacks the GPU", "warning", "without MPS",
     {**APPLE_GPU, "python.architecture": "arm64"}, {}),
    ("GPU without driver", "warning", "NVIDIA", {"gpu.devices": []}, {}),
    ("driver too old", "warning", "up to 12.4; torch was built for CUDA 13.0", {}, {"build.cuda": "13.0"}),
    ("torch finds no GPU", "warning", "CUDA_VISIBLE_DEVICES=''",
     {"environment.CUDA_VISIBLE_DEVICES": ""}, {"devices.cuda_available": False}),
    ("torch finds no GPU", "warning", "MPS", {}, {"devices.mps_built": True}),
    ("no kernels for the GPU", "warning", "12.0", {f"{GPU}.compute_capability": "12.0"}, {}),
    ("no kernels for the GPU", "warning", "6.1", {f"{GPU}.compute_capability": "6.1"}, {}),
    ("GPU is shared", "warning", "used by python3 (pid 4121, 4.0 GiB), 0% busy",
     {f"{GPU}.processes": [{"pid": 4121, "name": "python3", "memory_bytes": 4 << 30}]}, {}),
    ("GPU is shared", "problem", "97% busy.", {f"{GPU}.utilization": 0.97}, {}),
    ("GPU memory is taken", "note", "40.0 GiB of 80.0 GiB", {f"{GPU}.memory_used_bytes": 40 << 30}, {}),
    ("GPU is throttled", "warning", "1980 MHz): power", {f"{GPU}.throttle_reasons": ["power cap"]}, {}),
    ("GPU is hot", "warning", "88 °C", {f"{GPU}.temperature_celsius": 88}, {}),
    ("GPU clock was set", "note", "345 of 1980", {f"{GPU}.throttle_reasons": ["application clocks set"]}, {}),
    ("GPU power is limited", "note", "400 W of its usual 700 W", {f"{GPU}.power_limit_watts": 400}, {}),
    ("GPU is sliced", "note", "MIG", {f"{GPU}.mig": True}, {}),
    ("GPU driver is not kept loaded", "note", "is off", {f"{GPU}.persistence": False}, {}),
]  # fmt: skip


def test_a_clean_machine_has_no_findings() -> None:
    assert diagnose(CLEAN, TORCH) == []
    assert diagnose(CLEAN) == []


@pytest.mark.parametrize(
    ("name", "severity", "figure", "host", "torch"),
    CASES,
    ids=[f"{case[0]}-{number}" for number, case in enumerate(CASES)],
)
def test_each_finding(name: str, severity: str, figure: str, host: Change, torch: Change) -> None:
    found = diagnose(changed(CLEAN, host), changed(TORCH, torch))
    assert [(finding.name, finding.severity) for finding in found] == [(name, severity)]
    assert figure in found[0].what
    assert found[0].what.endswith((".", "!")), "a sentence"
    assert found[0].remedy


def test_every_rule_is_among_the_cases() -> None:
    views = [(View(changed(CLEAN, host)), View(changed(TORCH, torch))) for _, _, _, host, torch in CASES]
    silent = [rule.__name__ for rule in RULES if not any(list(rule(host, torch)) for host, torch in views)]
    assert silent == []


@pytest.mark.parametrize(
    ("host", "torch"),
    [
        ({"gpu.pci": [{"vendor": "Intel", "driver": "i915", "integrated": True}], "gpu.devices": []}, {}),
        ({f"{GPU}.compute_capability": "8.9"}, {}),
        ({f"{GPU}.compute_capability": "12.0"}, {"devices.cuda_architectures": ["sm_90", "compute_90"]}),
        ({f"{GPU}.cuda_driver": "12.2"}, {}),
        ({"environment.CUDA_LAUNCH_BLOCKING": "0"}, {}),
        ({"cpu.quota_cores": 8.0}, {}),
        ({"environment.OMP_NUM_THREADS": "8,2"}, {}),
        ({"cpu.vendor": "AMD"}, {"libraries.blas": "OpenBLAS"}),
        ({"cpu.performance_cores": 8, "cpu.efficiency_cores": 4}, {}),
    ],
    ids=[
        "old integrated graphics",
        "a later minor version",
        "PTX for later cards",
        "an older minor CUDA",
        "blocking switched off",
        "a quota of all cores",
        "nested threads",
        "OpenBLAS on AMD",
        "the fast cores alone",
    ],
)
def test_what_is_no_trouble(host: Change, torch: Change) -> None:
    assert diagnose(changed(CLEAN, host), changed(TORCH, torch)) == []


def test_the_worst_comes_first_and_a_problem_decides_the_exit_code() -> None:
    host = changed(CLEAN, {"system.virtual_machine": "KVM", "load.steal": 0.3, "cpu.governor": "ondemand"})
    found = diagnose(host, TORCH)
    assert [finding.severity for finding in found] == ["problem", "warning", "note"]
    assert exit_code(found) == 3
    assert exit_code(found[1:]) == 0
    assert exit_code([]) == 0


def test_a_severity_must_be_known() -> None:
    with pytest.raises(ValueError, match="unknown severity 'fatal'"):
        Finding("name", "fatal", "what", "remedy")


_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


def _places(facts: Any, prefix: str = "") -> list[str]:
    pairs = facts.items() if isinstance(facts, dict) else enumerate(facts) if isinstance(facts, list) else ()
    inner = [place for key, value in pairs for place in _places(value, f"{prefix}{key}.")]
    return [*inner, prefix.rstrip(".")] if prefix else inner


def _foreign(facts: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Facts with any value in up to three places."""

    def replace(changes: dict[str, Any]) -> dict[str, Any]:
        # The deepest first: a changed group may no longer have the places in it.
        result = facts
        for name in sorted(changes, key=lambda name: -name.count(".")):
            result = changed(result, {name: changes[name]})
        return result

    return st.dictionaries(st.sampled_from(_places(facts)), _VALUE, max_size=3).map(replace)


_EXTRA = {
    "cpu.quota_cores": 2,
    "power.on_battery": True,
    "product_flops_per_second": {"torch": 1.0, "numpy": 2.0},
}


@given(_foreign(changed(CLEAN, _EXTRA)), _foreign(changed(TORCH, _EXTRA)))
def test_facts_of_any_shape_never_raise(host: dict[str, Any], torch: dict[str, Any]) -> None:
    for finding in diagnose(host, torch):
        assert finding.severity in SEVERITIES
        assert finding.what


@given(_VALUE, _VALUE)
def test_even_no_facts_at_all_never_raise(host: Any, torch: Any) -> None:
    assert diagnose(host, torch) == []
