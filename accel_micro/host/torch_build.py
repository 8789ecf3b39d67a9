"""What this torch is: build, libraries, threads, precision modes, and which accelerators it can use.

Imports torch; call it only where torch may be loaded.
"""

import contextlib
import re
import time
import warnings
from collections.abc import Callable
from typing import Any

from accel_micro.host.gather import Gathered
from accel_micro.host.processor import Put

_SETTINGS = (
    "BLAS_INFO",
    "LAPACK_INFO",
    "BUILD_TYPE",
    "USE_CUDA",
    "USE_ROCM",
    "USE_XPU",
    "USE_MKLDNN",
    "USE_OPENMP",
)


def torch_facts() -> dict[str, Any]:
    """Everything about the importable torch, grouped as `host.facts` are. Never raises; plain data for JSON.

    A torch that cannot be imported leaves the reason in `unread`.
    """
    gathered = Gathered()
    for group, gather in (
        ("build", _gather_build),
        ("libraries", _gather_libraries),
        ("threads", _gather_threads),
        ("precision", _gather_precision),
        ("devices", _gather_devices),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gathered.run(group, gather)
    return gathered.grouped()


def _gather_build(put: Put) -> None:
    import torch

    version = torch.version
    put("build.version", torch.__version__, "torch.__version__")
    put("build.git", version.git_version, "torch.version")
    for name in ("cuda", "hip", "xpu", "debug"):
        put(f"build.{name}", getattr(version, name, None), "torch.version")


def _gather_libraries(put: Put) -> None:
    import torch

    for name, value in parse_config(torch.__config__.show()).items():
        put(f"libraries.{name}", value, "torch.__config__.show")
    put("libraries.cpu_capability", torch.backends.cpu.get_cpu_capability(), "torch.backends.cpu")


def _gather_threads(put: Put) -> None:
    import torch

    put("threads.intra_op", torch.get_num_threads(), "torch.get_num_threads")
    put("threads.inter_op", torch.get_num_interop_threads(), "torch.get_num_interop_threads")
    parallel = parse_parallel(torch.__config__.parallel_info())
    put("threads.backend", parallel, "torch.__config__.parallel_info")
    put("threads.pools", _pools(), "threadpoolctl")


def _pools() -> list[dict[str, Any]]:
    import threadpoolctl

    shown = (
        "user_api",
        "internal_api",
        "prefix",
        "version",
        "num_threads",
        "threading_layer",
        "architecture",
    )
    return [
        {name: pool[name] for name in shown if pool.get(name) is not None}
        for pool in threadpoolctl.threadpool_info()
    ]


def _gather_precision(put: Put) -> None:
    import torch

    backends = torch.backends
    questions: dict[str, Callable[[], Any]] = {
        "float32_matmul": torch.get_float32_matmul_precision,
        "cuda_matmul_tf32": lambda: backends.cuda.matmul.allow_tf32,
        "cudnn_tf32": lambda: backends.cudnn.allow_tf32,
        "cudnn_benchmark": lambda: backends.cudnn.benchmark,
        "cudnn_deterministic": lambda: backends.cudnn.deterministic,
        "deterministic": torch.are_deterministic_algorithms_enabled,
    }
    for name, question in questions.items():
        # Where TF32 was set through torch's newer names, asking by the older ones raises.
        with contextlib.suppress(RuntimeError):
            put(f"precision.{name}", question(), "torch.backends")


def _gather_devices(put: Put) -> None:
    import torch

    mps = torch.backends.mps
    put("devices.mps_built", mps.is_built(), "torch.backends.mps")
    put("devices.mps_available", mps.is_available(), "torch.backends.mps")
    accelerator = getattr(torch, "accelerator", None)
    current = accelerator.current_accelerator() if accelerator is not None else None
    put("devices.accelerator", None if current is None else current.type, "torch.accelerator")
    put("devices.cuda_available", torch.cuda.is_available(), "torch.cuda")
    if torch.cuda.is_available():
        put("devices.cuda_count", torch.cuda.device_count(), "torch.cuda")
        put("devices.cuda_architectures", torch.cuda.get_arch_list(), "torch.cuda.get_arch_list")
        put("devices.cudnn", torch.backends.cudnn.version(), "torch.backends.cudnn")  # type: ignore[no-untyped-call]


def parse_config(text: str) -> dict[str, str]:
    """`torch.__config__.show()` → versions of the libraries and the build settings that change speed."""
    found: dict[str, str] = {}
    for name, pattern in (
        ("mkl", r"Math Kernel Library Version ([\d.]+)"),
        ("onednn", r"MKL-DNN v?(\S+)"),
        ("openmp", r"OpenMP (\d+)"),
        ("cpu_capability", r"CPU capability usage: (\S+)"),
        ("cuda_runtime", r"CUDA Runtime (\S+)"),
        ("cudnn", r"CuDNN (\S+)"),
    ):
        match = re.search(pattern, text)
        if match:
            found[name] = match[1].rstrip(",")
    for name, value in re.findall(r"\b([A-Z_]+)=([^,\n]*)", text):
        if name in _SETTINGS and value.strip():
            found.setdefault(name.lower(), value.strip())
    blas = {
        "mkl": "MKL",
        "open": "OpenBLAS",
        "openblas": "OpenBLAS",
        "accelerate": "Accelerate",
        "veclib": "Accelerate",
    }
    if "blas_info" in found:
        found["blas"] = blas.get(found["blas_info"].lower(), found["blas_info"])
    elif "mkl" in found:
        found["blas"] = "MKL"
    return found


def parse_parallel(text: str) -> str | None:
    """`torch.__config__.parallel_info()` → what runs the threads of an op: OpenMP or native."""
    match = re.search(r"ATen parallel backend: (\S.*)", text)
    return match[1].strip() if match else None


def compare_blas(size: int = 512, rounds: int = 7) -> dict[str, float]:
    """float32 product by torch's BLAS and NumPy's, a thread each, in turns: `torch` and `numpy` in FLOP/s.

    For the doctor, where a processor meets the library of its rival. Takes about 0.3 s. The best round
    counts: whatever else runs only slows down.
    """
    import numpy as np
    import threadpoolctl
    import torch

    flops, calls = 2.0 * size**3, 4
    generator = np.random.default_rng(0)
    left, right = (generator.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    first, second = torch.from_numpy(left), torch.from_numpy(right)

    def seconds(call: Callable[[], Any]) -> float:
        call()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - start) / calls

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        with threadpoolctl.threadpool_limits(1):
            pairs = [(seconds(lambda: first @ second), seconds(lambda: left @ right)) for _ in range(rounds)]
    finally:
        torch.set_num_threads(threads)
    return {"torch": flops / min(pair[0] for pair in pairs), "numpy": flops / min(pair[1] for pair in pairs)}
