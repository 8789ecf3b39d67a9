"""Facts of a machine with nothing to complain of, and a way to change some of them."""

import copy
from typing import Any

CLEAN: dict[str, Any] = {
    "cpu": {
        "model": "Intel(R) Xeon(R) Platinum 8480+",
        "vendor": "Intel",
        "instruction_sets": ["avx2", "fma", "avx512f", "amx_tile", "amx_bf16"],
        "base_frequency_hertz": 2_000_000_000,
        "frequency_now_hertz": 2_000_000_000,
        "frequency_maximum_hertz": 2_000_000_000,
        "frequency_limit_hertz": 2_000_000_000,
        "frequency_driver": "intel_pstate",
        "governor": "performance",
        "boost": False,
        "smt": False,
        "logical_cores": 8,
        "physical_cores": 8,
        "affinity": "0-7",
        "affinity_cores": 8,
        "allowed_cores": 8,
        "numa_nodes": 1,
        "last_level_cache_bytes": 105 << 20,
    },
    "system": {
        "os": "Linux 6.8",
        "kernel": "6.8.0-49-generic",
        "distribution": "Ubuntu 24.04",
        "architecture": "x86_64",
        "aslr": 2,
        "transparent_huge_pages": "madvise",
        "clock_source": "tsc",
    },
    "memory": {
        "total_bytes": 256 << 30,
        "available_bytes": 240 << 30,
        "swap_total_bytes": 0,
        "swap_used_bytes": 0,
        "swapped_bytes": 0,
    },
    "python": {
        "version": "3.12.4",
        "implementation": "CPython",
        "architecture": "x86_64",
        "debug_build": False,
        "observers": [],
    },
    "environment": {"OMP_NUM_THREADS": "8"},
    "load": {
        "average": 0.31,
        "busy_elsewhere": 0.004,
        "steal": 0.0,
        "processes": [],
        "cpu_pressure": 0.001,
        "memory_pressure": 0.0,
    },
    "power": {"temperature_celsius": 41.0, "throttle_events": 0, "throttle_events_since_start": 0},
    "gpu": {
        "pci": [{"vendor": "NVIDIA", "driver": "nvidia", "integrated": False}],
        "devices": [
            {
                "vendor": "NVIDIA",
                "index": 0,
                "name": "NVIDIA H100 80GB HBM3",
                "driver": "550.54.15",
                "cuda_driver": "12.4",
                "compute_capability": "9.0",
                "memory_bytes": 80 << 30,
                "memory_used_bytes": 1 << 28,
                "utilization": 0.0,
                "temperature_celsius": 34,
                "power_watts": 71.2,
                "power_limit_watts": 700,
                "power_default_limit_watts": 700,
                "clock_hertz": 345_000_000,
                "clock_maximum_hertz": 1_980_000_000,
                "throttle_reasons": ["idle"],
                "ecc": True,
                "mig": False,
                "persistence": True,
                "processes": [],
            }
        ],
    },
    "sources": {},
    "unread": {},
}

TORCH: dict[str, Any] = {
    "build": {
        "version": "2.13.0+cu126",
        "git": "cf30153c4c13",
        "cuda": "12.6",
        "debug": False,
    },
    "libraries": {
        "mkl": "2024.2",
        "onednn": "3.12.0",
        "blas": "MKL",
        "build_type": "Release",
        "cpu_capability": "AVX512",
    },
    "threads": {
        "intra_op": 8,
        "inter_op": 8,
        "backend": "OpenMP",
        "pools": [
            {"user_api": "blas", "internal_api": "openblas", "prefix": "libscipy_openblas", "num_threads": 8},
            {"user_api": "openmp", "internal_api": "openmp", "prefix": "libgomp", "num_threads": 8},
        ],
    },
    "precision": {
        "float32_matmul": "highest",
        "cuda_matmul_tf32": False,
        "cudnn_tf32": True,
        "cudnn_benchmark": False,
        "deterministic": False,
    },
    "devices": {
        "mps_built": False,
        "mps_available": False,
        "accelerator": "cuda",
        "cuda_available": True,
        "cuda_architectures": ["sm_80", "sm_86", "sm_90"],
    },
    "unread": {},
}


def changed(facts: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A copy with some facts changed, by dotted name; a number is an index into a list, None takes away."""
    copied = copy.deepcopy(facts)
    for name, value in changes.items():
        *path, last = name.split(".")
        place: Any = copied
        for part in path:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if isinstance(place, list):
            place[int(last)] = value
        elif value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return copied
